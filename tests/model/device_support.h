#pragma once

// What the tests of a device's kernels share: operands of a group in the device's memory.

#include <memory>
#include <string>
#include <vector>

#include "model/backend/device/device.h"
#include "tests/model/op_support.h"

namespace troupe::model {

// The device that tests compute on; null, with a failure, where it cannot be opened.
std::shared_ptr<device::Device> open_device();

// Whether the micro-batches of a group have this operand in common.
bool is_shared(const std::string& name);

// Runs the kernel for the operands of a group's micro-batches, in place, between guards that must
// stay as they were, with poison in scratch memory.
void run_as_group(device::Device& device, const Kernel& kernel, const Operation& operation,
                  std::vector<Operands<float>>& micro_batches,
                  const runtime::RandomPosition& random = {});

}  // namespace troupe::model

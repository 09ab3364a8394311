#pragma once

// Kernels on a device, with the bits of the portable backend.

#include <cstdint>
#include <memory>

#include "model/backend.h"
#include "model/backend/device/device.h"
#include "runtime/base/error.h"

namespace troupe::model::device {

// Computes groups of up to `group` micro-batches. Errors (kUsage) name what the device lacks for
// the bits that portable kernels promise.
runtime::Result<std::unique_ptr<Backend>> make_portable_backend(std::shared_ptr<Device> device,
                                                                std::int64_t group,
                                                                Precision precision);

}  // namespace troupe::model::device

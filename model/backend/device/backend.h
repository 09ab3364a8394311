#pragma once

// Kernels on a device.

#include <cstdint>
#include <memory>

#include "model/backend.h"
#include "model/backend/device/device.h"
#include "runtime/base/error.h"

namespace troupe::model::device {

// The two compute groups of up to `group` micro-batches. Errors (kUsage) name what the device lacks
// for the bits that portable kernels promise.

// With the bits of the portable backend of the host.
runtime::Result<std::unique_ptr<Backend>> make_portable_backend(std::shared_ptr<Device> device,
                                                                std::int64_t group,
                                                                Precision precision);

// What makes the products of convolutions.
enum class Products : std::uint8_t {
  kTensorCores,        // where the device has them
  kPlayedTensorCores,  // their kernels, in ordinary arithmetic: for tests on devices without
};
// With products by tensor cores of factors that are rounded to bfloat16 or, with kFp32, to tf32.
// Convolutions of upsampled images are in fp32. The bits do not depend on the group; they are those
// of devices with tensor cores of the same generation. The portable backend in fp32, and its class,
// where the device has none.
runtime::Result<std::unique_ptr<Backend>> make_fastest_backend(
    std::shared_ptr<Device> device, std::int64_t group, Precision precision,
    Products products = Products::kTensorCores);

}  // namespace troupe::model::device

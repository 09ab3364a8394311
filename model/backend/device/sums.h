#pragma once

// Sums of vectors in a device's memory, made there: a sum comes to the host once, however many
// micro-batches are in it. They are made beside what the device computes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "model/backend/device/operation_kernel.h"
#include "model/vector_sums.h"

namespace troupe::model::device {

// Allocates only where a sum is larger than those before.
class DeviceSums final : public VectorSums {
 public:
  explicit DeviceSums(Device& device);

  void add_exactly(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                   std::uint32_t micro_batches, std::span<std::int64_t> sum,
                   std::span<QuantiseReport> reports) const override;
  void add_floats(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                  std::span<float> sum, std::span<QuantiseReport> reports) const override;

 private:
  // Calls launch(part, the kernel's arguments) for each part of each block, and reads the sums into
  // made_. Returns the bits of each part's largest magnitude, which stand behind them.
  template <class T, class Launch>
  std::span<const std::uint32_t> make(std::span<const Vectors> vectors,
                                      std::span<const SumPart> parts, std::size_t elements,
                                      const Launch& launch) const;

  Device& device_;
  const Launcher zero_fill_, add_exactly_, add_floats_;
  // Memory of the sum that is being made: on the device, and here.
  mutable std::mutex mutex_;
  mutable std::size_t bytes_ = 0;
  mutable std::shared_ptr<std::byte> there_;
  mutable std::shared_ptr<std::byte> made_;
};

}  // namespace troupe::model::device

#pragma once

// A network's optimiser in a device's memory. It works beside what the device computes, which may
// be the next step's part that reads no weight of this network.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "model/backend/device/operation_kernel.h"
#include "model/optimiser.h"

namespace troupe::model::device {

class DeviceOptimiser final : public PlacedOptimiser {
 public:
  DeviceOptimiser(std::shared_ptr<Device> device, const OptimiserOptions& options,
                  std::int64_t weights);

  void place(std::span<const float> weights, std::span<const float> arrays) override;
  std::span<float> gradients() override {
    return {floats(gradients_), static_cast<std::size_t>(size_)};
  }
  void update(const UpdateFactors& factors, std::span<float> weights,
              std::span<float> arrays) override;
  const float* weights() const override { return floats(values_); }

 private:
  static float* floats(const std::shared_ptr<std::byte>& memory) {
    return reinterpret_cast<float*>(memory.get());
  }
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(float); }

  std::shared_ptr<Device> device_;
  OptimiserOptions options_;
  std::int64_t size_;
  Launcher update_weights_;
  std::shared_ptr<std::byte> values_;           // there: the weights, and the arrays behind them
  std::shared_ptr<std::byte> gradients_there_;  // copies of gradients_
  std::shared_ptr<std::byte> gradients_;
};

}  // namespace troupe::model::device

#include "model/backend/device/backend.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/backend/device/operation_kernel.h"
#include "model/backend/device/optimiser.h"
#include "model/backend/device/sums.h"
#include "model/backend/float_environment.h"

namespace troupe::model::device {
namespace {

using runtime::Result;

class DeviceBackend final : public Backend {
 public:
  DeviceBackend(std::shared_ptr<Device> device, const Maker& maker, std::string numerics_class)
      : device_(std::move(device)),
        maker_(maker),
        class_(std::move(numerics_class)),
        sums_(*device_) {}

  DataType data_type() const override { return DataType::kFloat32; }
  Result<std::unique_ptr<Kernel>> make_kernel(const Operation& operation) const override {
    try {
      return std::visit([&](const auto& each) { return device::make_kernel(maker_, each); },
                        operation);
    } catch (const LayerTooLarge&) {
      return runtime::Error{
          runtime::ErrorKind::kUsage,
          fmt::format("{} has more than 2^31 elements, which is too many for device {}; "
                      "train.micro_batch can be smaller",
                      operation_name(operation), device_->facts().word)};
    }
  }
  std::string numerics_class() const override { return class_; }
  Memory& memory() const override { return *device_; }
  const VectorSums& sums() const override { return sums_; }
  std::unique_ptr<PlacedOptimiser> place_optimiser(const OptimiserOptions& options,
                                                   std::int64_t weights) const override {
    return std::make_unique<DeviceOptimiser>(device_, options, weights);
  }
  std::int64_t group() const override { return maker_.group; }
  void prepare_thread() const override { set_float_environment(); }

 private:
  std::shared_ptr<Device> device_;
  Maker maker_;
  std::string class_;
  DeviceSums sums_;
};

Result<std::unique_ptr<Backend>> make_backend(std::shared_ptr<Device> device, const Maker& maker,
                                              std::string numerics_class) {
  const DeviceFacts& facts = device->facts();
  if (!facts.lacks.empty()) {
    return runtime::Error{
        runtime::ErrorKind::kUsage,
        fmt::format("device {} ({}) cannot compute: {}", facts.word, facts.name, facts.lacks)};
  }
  return std::unique_ptr<Backend>(
      std::make_unique<DeviceBackend>(std::move(device), maker, std::move(numerics_class)));
}

}  // namespace

Result<std::unique_ptr<Backend>> make_portable_backend(std::shared_ptr<Device> device,
                                                       std::int64_t group, Precision precision) {
  const Maker maker{*device, group, precision, std::nullopt};
  // The host's: a member with a device and one without are members of one run.
  return make_backend(std::move(device), maker, portable_class(precision));
}

Result<std::unique_ptr<Backend>> make_fastest_backend(std::shared_ptr<Device> device,
                                                      std::int64_t group, Precision precision,
                                                      Products products) {
  const int generation = device->facts().tensor_cores;
  const bool played = generation == 0 && products == Products::kPlayedTensorCores;
  // In fp32: ordinary arithmetic has to play bfloat16, which takes time.
  if (!played && generation == 0) {
    return make_portable_backend(std::move(device), group, Precision::kFp32);
  }
  const Maker maker{*device, group, Precision::kFp32, precision};
  return make_backend(
      std::move(device), maker,
      fmt::format("fastest {} 3 {}", precision == Precision::kBf16 ? "bfloat16" : "tf32",
                  played ? "played tensor cores" : fmt::format("tensor cores sm_{}", generation)));
}

}  // namespace troupe::model::device

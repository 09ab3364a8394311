#include "model/backend/device/backend.h"

#include <utility>

#include <fmt/format.h>

#include "model/backend/device/operation_kernel.h"
#include "model/backend/device/sums.h"
#include "model/backend/float_environment.h"

namespace troupe::model::device {
namespace {

class DeviceBackend final : public Backend {
 public:
  DeviceBackend(std::shared_ptr<Device> device, std::int64_t group, Precision precision)
      : device_(std::move(device)), group_(group), precision_(precision), sums_(*device_) {}

  DataType data_type() const override { return DataType::kFloat32; }
  runtime::Result<std::unique_ptr<Kernel>> make_kernel(const Operation& operation) const override {
    const Maker make{*device_, group_, precision_};
    return std::visit([&](const auto& each) { return device::make_kernel(make, each); }, operation);
  }
  // The portable backend's: a member with a device and one without are members of one run.
  std::string numerics_class() const override { return portable_class(precision_); }
  Memory& memory() const override { return *device_; }
  const VectorSums& sums() const override { return sums_; }
  std::int64_t group() const override { return group_; }
  void prepare_thread() const override { set_float_environment(); }

 private:
  std::shared_ptr<Device> device_;
  std::int64_t group_;
  Precision precision_;
  DeviceSums sums_;
};

}  // namespace

runtime::Result<std::unique_ptr<Backend>> make_portable_backend(std::shared_ptr<Device> device,
                                                                std::int64_t group,
                                                                Precision precision) {
  const DeviceFacts& facts = device->facts();
  if (!facts.lacks.empty()) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          fmt::format("device {} ({}) cannot compute with `kernels: portable`: {}",
                                      facts.word, facts.name, facts.lacks)};
  }
  return std::unique_ptr<Backend>(
      std::make_unique<DeviceBackend>(std::move(device), group, precision));
}

}  // namespace troupe::model::device

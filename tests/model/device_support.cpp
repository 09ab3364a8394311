#include "tests/model/device_support.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/tested_device.h"

namespace troupe::model {

using device::Device;

std::shared_ptr<Device> open_device() {
  static const auto opened = device::open(tested_device());
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  return opened.ok() ? *opened : nullptr;
}

bool is_shared(const std::string& name) {
  for (const char* shared : {"kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance"}) {
    if (name == shared) return true;
  }
  return false;
}

namespace {

constexpr std::size_t kGuard = 64;  // elements
constexpr float kGuardValue = -7.25f;

// An operand of all micro-batches of a group, in the device's memory, between guards.
class GroupOperand {
 public:
  GroupOperand(Device& device, std::size_t size, bool shared, std::size_t group)
      : device_(device), size_(size), copies_(shared ? 1 : group) {
    values_.assign(copies_ * size_ + 2 * kGuard, kGuardValue);
    memory_ = device.allocate(values_.size() * sizeof(float));
  }
  void set(std::size_t micro_batch, const std::vector<float>& values) {
    if (micro_batch < copies_) {
      std::copy(values.begin(), values.end(), begin() + micro_batch * size_);
    }
  }
  void write() { device_.write(values_.data(), memory_.get(), values_.size() * sizeof(float)); }
  void read() { device_.read(memory_.get(), values_.data(), values_.size() * sizeof(float)); }
  void* address() const { return size_ == 0 ? nullptr : memory_.get() + kGuard * sizeof(float); }
  std::int64_t stride() const { return copies_ == 1 ? 0 : static_cast<std::int64_t>(size_); }
  std::vector<float> get(std::size_t micro_batch) const {
    const float* first = values_.data() + kGuard + (copies_ == 1 ? 0 : micro_batch) * size_;
    return {first, first + size_};
  }
  bool guards_stand() const {
    return std::all_of(values_.begin(), values_.begin() + kGuard,
                       [](float value) { return value == kGuardValue; }) &&
           std::all_of(values_.end() - kGuard, values_.end(),
                       [](float value) { return value == kGuardValue; });
  }

 private:
  float* begin() { return values_.data() + kGuard; }

  Device& device_;
  std::size_t size_, copies_;
  std::vector<float> values_;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace

void run_as_group(Device& device, const Kernel& kernel, const Operation& operation,
                  std::vector<Operands<float>>& micro_batches,
                  const runtime::RandomPosition& random) {
  const auto described = operands_of(operation);
  const std::size_t group = micro_batches.size();
  std::vector<GroupOperand> operands;
  std::vector<void*> addresses;
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < described.size(); ++i) {
    operands.emplace_back(device, micro_batches[0][i].size(), is_shared(described[i].name), group);
    for (std::size_t m = 0; m < group; ++m) operands[i].set(m, micro_batches[m][i]);
    operands[i].write();
    addresses.push_back(operands[i].address());
    strides.push_back(operands[i].stride());
  }
  const std::vector<std::byte> poison(kernel.scratch_bytes() + 64, std::byte{0xff});
  const auto scratch = device.allocate(poison.size());
  device.write(poison.data(), scratch.get(), poison.size());
  std::vector<std::uint32_t> indices;
  for (std::size_t m = 0; m < group; ++m) indices.push_back(3 + static_cast<std::uint32_t>(m));
  const auto places = device.allocate(indices.size() * sizeof(std::uint32_t));
  device.write(indices.data(), places.get(), indices.size() * sizeof(std::uint32_t));
  const Group of{static_cast<std::int64_t>(group),
                 reinterpret_cast<const std::uint32_t*>(places.get()), 0};
  kernel.run_group(addresses, strides, random, of, scratch.get());
  for (std::size_t i = 0; i < described.size(); ++i) {
    operands[i].read();
    EXPECT_TRUE(operands[i].guards_stand()) << "around " << described[i].name;
    for (std::size_t m = 0; m < group; ++m) micro_batches[m][i] = operands[i].get(m);
  }
  std::vector<std::byte> end(64);
  device.read(scratch.get() + kernel.scratch_bytes(), end.data(), end.size());
  EXPECT_EQ(end, std::vector<std::byte>(64, std::byte{0xff})) << "beyond the scratch";
}

}  // namespace troupe::model

// Where the time of an iteration goes on a device: each kernel of the program, waited for and timed
// by itself, beside whole iterations without waiting. Checks that both find the same bits.
//
//   bench_device [--small] [MODEL DEVICE PRECISION KERNELS EVENTS]
//
// Without words: gan3d_12 on opencl:0, fp32 portable, 16 events a step in micro-batches of 8. With
// --small toy. Says so and ends well where there is no device.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "model/backend/device/backend.h"
#include "runtime/base/buffer.h"
#include "tests/training/alone.h"

namespace troupe::bench {
namespace {

using model::device::Arguments;
using model::device::Device;
using model::device::Grid;
using model::device::Queue;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A device that waits for each kernel and copy, and keeps account of their time.
class TimedDevice final : public Device {
 public:
  struct Account {
    std::size_t launches = 0;
    double seconds = 0;
  };

  explicit TimedDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~TimedDevice() override { end_staging(); }

  const model::device::DeviceFacts& facts() const override { return device_->facts(); }
  int kernel(std::string_view name) override {
    const int number = device_->kernel(name);
    names_[number] = name;
    return number;
  }
  void launch(Queue, int kernel, const Grid& grid, const Arguments& arguments) override {
    timed(names_.at(kernel), [&] { device_->launch(Queue::kMain, kernel, grid, arguments); });
  }
  void read(Queue, const void* from, void* to, std::size_t bytes) override {
    timed("read", [&] { device_->read(Queue::kMain, from, to, bytes); });
  }
  void write_pinned(Queue, const std::byte* from, void* to, std::size_t bytes) override {
    timed("write", [&] { device_->write_pinned(Queue::kMain, from, to, bytes); });
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    timed("copy", [&] { device_->copy(from, to, bytes); });
  }
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    return device_->allocate(bytes);
  }
  void* mark() override { return device_->mark(); }
  void wait_for(void* mark) override { device_->wait_for(mark); }

  std::map<std::string, Account> take_accounts() { return std::exchange(accounts_, {}); }

 private:
  std::byte* allocate_pinned(std::size_t bytes) override {
    auto memory = device_->allocate_host(bytes);
    std::byte* const first = memory.get();
    pinned_[first] = std::move(memory);
    return first;
  }
  void free_pinned(std::byte* first) override { pinned_.erase(first); }
  template <class Work>
  void timed(const std::string& name, const Work& work) {
    const double begin = seconds();
    work();
    device_->wait_for(device_->mark());
    Account& account = accounts_[name];
    ++account.launches;
    account.seconds += seconds() - begin;
  }

  std::shared_ptr<Device> device_;
  std::map<int, std::string> names_;
  std::map<std::string, Account> accounts_;
  std::map<std::byte*, std::shared_ptr<std::byte>> pinned_;
};

constexpr std::uint32_t kMicroBatch = 8;

struct Case {
  std::string model = "gan3d_12", device = "opencl:0", precision = "fp32", kernels = "portable";
  std::uint32_t events = 16;
};

// Iterations of the case on one device, all of the same events.
class Iterations {
 public:
  Iterations(const Case& of, const std::shared_ptr<Device>& device)
      : alone_(training_test::zoo_topology(
                   of.model, {fmt::format("train.micro_batch={}", kMicroBatch),
                              fmt::format("train.micro_batches={}", of.events / kMicroBatch)}),
               backend(of, device)),
        state_(alone_.initial_state()) {
    alone_.computer().place(state_);
    for (std::uint32_t i = 0; i < of.events / kMicroBatch; ++i) {
      events_.push_back(alone_.micro_batch(i, i));
    }
  }

  // Seconds of its steps, the state's hash included and what the host makes of the sums left out.
  double run() {
    double all = 0;
    for (std::size_t slot = 0; slot < alone_.options().schedule.size(); ++slot) {
      const double begin = seconds();
      const pipeline::StepRecord record = alone_.reduce_step(state_, events_);
      all += seconds() - begin;
      const auto applied = pipeline::apply(alone_.gan(), alone_.options(), record, state_,
                                           alone_.computer().optimisers());
      CHECK(applied.ok(), applied.error().message);
    }
    return all;
  }
  std::string hash() const { return pipeline::hash_of_state(state_).text(); }

 private:
  static std::unique_ptr<model::Backend> backend(const Case& of,
                                                 const std::shared_ptr<Device>& device) {
    const auto precision =
        of.precision == "bf16" ? model::Precision::kBf16 : model::Precision::kFp32;
    const std::int64_t group = of.events / kMicroBatch;
    auto made = of.kernels == "portable"
                    ? model::device::make_portable_backend(device, group, precision)
                    : model::device::make_fastest_backend(device, group, precision);
    CHECK(made.ok(), made.error().message);
    return std::move(*made);
  }

  training_test::Alone alone_;
  pipeline::TrainingState state_;
  std::vector<pipeline::MicroBatch> events_;
};

int measure(const Case& of, std::size_t repetitions) {
  auto opened = model::device::open(of.device);
  if (!opened.ok()) {
    std::cout << opened.error().message << "\n";
    return 0;
  }
  const std::shared_ptr<Device> device = *opened;
  std::cout << fmt::format("{} ({}), {} {} {}, {} events a step\n", device->facts().word,
                           device->facts().name, of.model, of.precision, of.kernels, of.events);
  const auto timed_device = std::make_shared<TimedDevice>(device);
  Iterations whole(of, device), timed(of, timed_device);
  whole.run(), timed.run();
  if (whole.hash() != timed.hash()) {
    std::cout << "the device computes other bits when it is waited for\n";
    return 1;
  }
  timed_device->take_accounts();
  std::vector<double> whole_times, timed_times;
  for (std::size_t i = 0; i < repetitions; ++i) {
    whole_times.push_back(whole.run());
    timed_times.push_back(timed.run());
  }
  const auto accounts = timed_device->take_accounts();
  std::vector<std::pair<std::string, TimedDevice::Account>> ranking(accounts.begin(),
                                                                    accounts.end());
  std::ranges::sort(ranking, std::greater{}, [](const auto& each) { return each.second.seconds; });
  double all = 0;
  for (const auto& [name, account] : ranking) all += account.seconds;
  const auto each = static_cast<double>(repetitions);
  for (const auto& [name, account] : ranking) {
    std::cout << fmt::format("{:<32} {:>7.0f} times {:>10.3f} ms {:>5.1f} %\n", name,
                             static_cast<double>(account.launches) / each,
                             1e3 * account.seconds / each, 100.0 * account.seconds / all);
  }
  const Spread without = spread_of(whole_times), with = spread_of(timed_times);
  std::cout << fmt::format(
      "an iteration {:.3f} ms [{:.3f}, {:.3f}], {:.1f} events/s; waiting for each kernel "
      "{:.3f} ms, of these on the device {:.3f} ms\n",
      1e3 * without.median, 1e3 * without.lowest, 1e3 * without.highest, of.events / without.median,
      1e3 * with.median, 1e3 * all / each);
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using troupe::bench::Case;
  troupe::runtime::keep_freed_memory();  // as the program does
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words == std::vector<std::string>{"--small"}) {
    return troupe::bench::measure({.model = "toy"}, 2);
  }
  if (words.empty()) return troupe::bench::measure({}, 3);
  const auto is = [&](std::size_t i, const char* one, const char* other) {
    return words[i] == one || words[i] == other;
  };
  if (words.size() != 5 || !is(2, "fp32", "bf16") || !is(3, "portable", "fastest") ||
      std::strtoul(words[4].c_str(), nullptr, 10) < troupe::bench::kMicroBatch) {
    std::cerr << "usage: bench_device [--small] [MODEL DEVICE PRECISION KERNELS EVENTS]\n";
    return 2;
  }
  return troupe::bench::measure(
      {words[0], words[1], words[2], words[3], static_cast<std::uint32_t>(std::stoul(words[4]))},
      5);
}

#include "launch/run/backend_choice.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/backend/device/backend.h"

namespace troupe::launch {
namespace {

using config::kGpu;
using model::device::Device;
using model::device::DeviceFacts;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// All are of one driver, so that no card is among them twice: NVIDIA's where it shows any.
std::vector<DeviceFacts> usable_gpus(const model::device::Devices& devices) {
  std::vector<DeviceFacts> usable;
  for (const DeviceFacts& each : devices.found) {
    if (!each.is_gpu || !each.lacks.empty()) continue;
    const auto driver = [](const DeviceFacts& of) { return of.word.substr(0, of.word.find(':')); };
    if (usable.empty() || driver(each) == driver(usable.front())) usable.push_back(each);
  }
  return usable;
}

// "gpu": the card with the most free memory. "gpu:N": card N of this machine, counted round.
Result<std::string> chosen_gpu(std::string_view word) {
  const model::device::Devices devices = model::device::devices();
  const std::vector<DeviceFacts> usable = usable_gpus(devices);
  if (!usable.empty() && word == kGpu) {
    return std::ranges::max(usable, {}, &DeviceFacts::free_bytes).word;
  }
  if (!usable.empty()) {
    std::size_t number = 0;
    const char* const end = word.data() + word.size();
    CHECK(std::from_chars(word.data() + word.find(':') + 1, end, number).ptr == end,
          "a word of the topology");
    return usable[number % usable.size()].word;
  }
  std::string has = devices.missing;
  for (const DeviceFacts& each : devices.found) {
    has += fmt::format("{}{} is {}{}{}", has.empty() ? "" : ", ", each.word, each.name,
                       each.lacks.empty() ? "" : ", but ", each.lacks);
  }
  return Error{ErrorKind::kUsage,
               fmt::format("there is no GPU on this machine that can compute: {}", has)};
}

// Shared by all that have it at a time, as compiling its program takes seconds. The card that `gpu`
// stands for is the same one as long as somebody has it.
Result<std::shared_ptr<Device>> open_shared(const std::string& word) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Device>> opened;
  const std::scoped_lock lock(mutex);
  if (auto device = opened[word].lock()) return device;
  std::string chosen = word;
  if (word == kGpu || word.starts_with(std::string(kGpu) + ":")) {
    ASSIGN_OR_RETURN(chosen, chosen_gpu(word));
  }
  auto device = opened[chosen].lock();
  if (device == nullptr) {
    ASSIGN_OR_RETURN(device, model::device::open(chosen));
  }
  opened[word] = opened[chosen] = device;
  return device;
}

}  // namespace

Result<std::unique_ptr<model::Backend>> make_backend(const config::Topology& topology,
                                                     std::int64_t group) {
  const config::ModelSection& section = topology.model;
  const std::string& device = topology.replica.device;
  const bool portable = section.kernels == config::Kernels::kPortable;
  if (device == config::kProcessor) {
    // The library's are for fp32.
    if (!portable && section.precision == model::Precision::kFp32) return model::make_cpu_backend();
    return model::make_portable_backend(section.precision);
  }
  ASSIGN_OR_RETURN(auto opened, open_shared(device));
  if (portable) {
    return model::device::make_portable_backend(std::move(opened), group, section.precision);
  }
  return model::device::make_fastest_backend(std::move(opened), group, section.precision);
}

}  // namespace troupe::launch

#include "launch/run/backend_choice.h"

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "model/backend/device/backend.h"

namespace troupe::launch {
namespace {

using model::device::Device;
using model::device::DeviceFacts;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// The card with the most memory; of one that two drivers show, NVIDIA's.
Result<std::string> largest_gpu() {
  const model::device::Devices devices = model::device::devices();
  const DeviceFacts* largest = nullptr;
  for (const DeviceFacts& each : devices.found) {
    if (!each.is_gpu || !each.lacks.empty()) continue;
    if (largest == nullptr || each.memory_bytes > largest->memory_bytes) {
      largest = &each;
    }
  }
  if (largest != nullptr) return largest->word;
  std::string has = devices.missing;
  for (const DeviceFacts& each : devices.found) {
    has += fmt::format("{}{} is {}{}{}", has.empty() ? "" : ", ", each.word, each.name,
                       each.lacks.empty() ? "" : ", but ", each.lacks);
  }
  return Error{ErrorKind::kUsage,
               fmt::format("there is no GPU on this machine that can compute: {}", has)};
}

// Shared by all that have it at a time, as compiling its program takes seconds.
Result<std::shared_ptr<Device>> open_shared(std::string word) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Device>> opened;
  if (word == "gpu") {
    ASSIGN_OR_RETURN(word, largest_gpu());
  }
  const std::scoped_lock lock(mutex);
  if (auto device = opened[word].lock()) return device;
  ASSIGN_OR_RETURN(auto device, model::device::open(word));
  opened[word] = device;
  return device;
}

}  // namespace

Result<std::unique_ptr<model::Backend>> make_backend(const config::Topology& topology,
                                                     std::int64_t group) {
  const config::ModelSection& section = topology.model;
  const std::string& device = topology.replica.device;
  const bool portable = section.kernels == config::Kernels::kPortable;
  if (device == config::kProcessor) {
    if (!portable) return model::make_cpu_backend();
    return model::make_portable_backend(section.precision);
  }
  // A member may have been given a device that the topology does not name.
  if (!portable) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} computes with `kernels: portable` alone", device)};
  }
  ASSIGN_OR_RETURN(auto opened, open_shared(device));
  return model::device::make_portable_backend(std::move(opened), group, section.precision);
}

}  // namespace troupe::launch

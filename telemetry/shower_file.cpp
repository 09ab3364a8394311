#include "telemetry/shower_file.h"

#include <filesystem>

#include <fmt/format.h>

#include "runtime/base/disk.h"

namespace troupe::telemetry {
namespace {

constexpr std::size_t kMostBytes = 4u << 20;

}  // namespace

std::string showers_file_name(std::uint64_t step) { return fmt::format("step-{:012}.json", step); }

runtime::Result<std::string> read_showers(const std::string& run_folder, std::uint64_t step) {
  using runtime::Error;
  using runtime::ErrorKind;
  const std::string path = fmt::format("{}/showers/{}", run_folder, showers_file_name(step));
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown) && !unknown) {
    return Error{ErrorKind::kData, fmt::format("there are no showers of step {}: \"showers\" of "
                                               "the run's history lists those there are",
                                               step)};
  }
  return runtime::read_file(path, kMostBytes);
}

}  // namespace troupe::telemetry

#include "telemetry/shower_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <fmt/format.h>

namespace troupe::telemetry {
namespace {

constexpr std::size_t kMostBytes = 4u << 20;

}  // namespace

std::string showers_file_name(std::uint64_t step) { return fmt::format("step-{:012}.json", step); }

runtime::Result<std::string> read_showers(const std::string& run_folder, std::uint64_t step) {
  using runtime::Error;
  using runtime::ErrorKind;
  const std::string path = fmt::format("{}/showers/{}", run_folder, showers_file_name(step));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (file == nullptr && errno == ENOENT) {
    return Error{ErrorKind::kData, fmt::format("there are no showers of step {}: \"showers\" of "
                                               "the run's history lists those there are",
                                               step)};
  }
  if (file == nullptr) {
    return Error{ErrorKind::kData,
                 fmt::format("{}: {}", path, std::generic_category().message(errno))};
  }
  std::string text(kMostBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return Error{ErrorKind::kData, fmt::format("{}: cannot be read", path)};
  }
  if (text.size() > kMostBytes) {
    return Error{ErrorKind::kData,
                 fmt::format("{}: larger than {} bytes, so it is not of a run", path, kMostBytes)};
  }
  return text;
}

}  // namespace troupe::telemetry

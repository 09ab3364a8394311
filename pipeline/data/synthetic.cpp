#include "pipeline/data/synthetic.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "runtime/base/hash.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

// Two calls in one process may also write at the same time.
std::string unique_suffix() {
  static std::atomic<std::uint64_t> calls{0};
  return fmt::format("{}-{}", ::getpid(), calls++);
}

}  // namespace

std::string synthetic_path(const SyntheticOptions& options) {
  const ShowerOptions& showers = options.showers;
  const Detector& kind = detector(showers.detector);
  std::string name = fmt::format("synthetic-{}-v{}-{}-seed{}", kind.name, kShowerVersion,
                                 options.events, showers.seed);
  const ShowerOptions usual;
  const std::string rest =
      fmt::format("{} {} {} {} {}", showers.min_energy_gev, showers.max_energy_gev,
                  showers.min_angle_rad.value_or(kind.min_angle_rad),
                  showers.max_angle_rad.value_or(kind.max_angle_rad), showers.threshold_gev);
  const std::string usual_rest =
      fmt::format("{} {} {} {} {}", usual.min_energy_gev, usual.max_energy_gev, kind.min_angle_rad,
                  kind.max_angle_rad, usual.threshold_gev);
  if (rest != usual_rest) name += fmt::format("-{:.12}", runtime::hash_of(rest).text());
  return fmt::format("{}/{}.h5", options.folder.empty() ? "." : options.folder, name);
}

Result<std::string> make_synthetic(const SyntheticOptions& options, runtime::ThreadTeam& team,
                                   const Progress& progress) {
  const std::string path = synthetic_path(options);
  std::error_code cause;
  if (std::filesystem::exists(path, cause)) return path;
  if (!options.folder.empty()) {
    runtime::FileDisk disk;
    RETURN_IF_ERROR(disk.make_folder(options.folder));
  }
  const ShowerDatasetOptions file{options.showers, options.events};
  const std::string own = fmt::format("{}.{}.h5", path, unique_suffix());
  ASSIGN_OR_RETURN(const auto written, write_shower_dataset(file, own, team, progress));
  std::filesystem::rename(written.front(), path, cause);
  if (cause) {
    std::error_code ignored;
    std::filesystem::remove(own, ignored);
    return Error{ErrorKind::kData,
                 fmt::format("cannot rename {} to {}: {}", own, path, cause.message())};
  }
  return path;
}

}  // namespace troupe::pipeline

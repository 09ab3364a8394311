#include "pipeline/data/shower_dataset.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/data/shower_file.h"
#include "runtime/base/disk.h"
#include "runtime/base/hash.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

Result<void> check_options(const ShowerDatasetOptions& options, const std::string& path) {
  const auto refuse = [](std::string message) {
    return Error{ErrorKind::kUsage, std::move(message)};
  };
  if (path.empty()) return refuse("no name for the file of showers");
  if (options.events == 0) return refuse("a dataset of 0 showers; expected 1 or more");
  if (options.files == 0 || options.files > options.events) {
    return refuse(fmt::format("{} files for {} showers; expected 1 to {}", options.files,
                              options.events, options.events));
  }
  if (options.gzip_level < 0 || options.gzip_level > 9) {
    return refuse(fmt::format("gzip level {}; expected 0 to 9", options.gzip_level));
  }
  return {};
}

// "electron+pion".
std::string particles_text(const ShowerOptions& showers) {
  std::vector<std::string_view> names;
  for (const Particle particle : showers.particles) names.push_back(text(particle));
  return fmt::format("{}", fmt::join(names, "+"));
}

ShowerFileOptions file_options(const ShowerDatasetOptions& options, const Detector& detector) {
  ShowerFileOptions file;
  file.schema = detector.schema;
  file.shape = detector.shape;
  file.events = options.events;
  file.gzip_level = options.gzip_level;
  file.chunk_events = options.chunk_events;
  file.attributes = {
      {"threshold", options.showers.threshold_gev * detector.units_per_gev},
      {"scale", detector.units_per_gev},
      {"generator", fmt::format("troupe showers {} {}", kShowerVersion, detector.name)},
      {"seed", options.showers.seed}};
  file.particles = options.showers.particles != ShowerOptions().particles;
  if (file.particles) file.attributes.emplace_back("particles", particles_text(options.showers));
  return file;
}

// Two calls in one process may also write at the same time.
std::string unique_suffix() {
  static std::atomic<std::uint64_t> calls{0};
  return fmt::format("{}-{}", ::getpid(), calls++);
}

}  // namespace

Result<std::vector<std::string>> write_shower_dataset(const ShowerDatasetOptions& options,
                                                      const std::string& path,
                                                      runtime::ThreadTeam& team,
                                                      const Progress& progress) {
  RETURN_IF_ERROR(check_options(options, path));
  ASSIGN_OR_RETURN(const ShowerGenerator generator, ShowerGenerator::create(options.showers));
  const ShowerSource showers = [&](std::uint64_t first, std::span<Primary> primaries,
                                   std::span<float> cells, std::span<double>) {
    generator.generate(first, primaries, cells, team);
  };
  return write_shower_files(file_options(options, generator.detector()), options.files, showers,
                            path, team, progress);
}

std::vector<std::string> synthetic_columns(DataSchema schema, const ShowerOptions& showers) {
  return written_columns(schema, showers.particles != ShowerOptions().particles);
}

std::string synthetic_path(const SyntheticOptions& options) {
  const ShowerOptions& showers = options.showers;
  const Detector& kind = detector(showers.detector);
  std::string name = fmt::format("synthetic-{}-v{}-{}-seed{}", kind.name, kShowerVersion,
                                 options.events, showers.seed);
  // Options that are not the usual ones are in the name as a hash of them all.
  const ShowerOptions usual;
  const std::string rest =
      fmt::format("{} {} {} {} {}", showers.min_energy_gev, showers.max_energy_gev,
                  showers.min_angle_rad.value_or(kind.min_angle_rad),
                  showers.max_angle_rad.value_or(kind.max_angle_rad), showers.threshold_gev);
  const std::string usual_rest =
      fmt::format("{} {} {} {} {}", usual.min_energy_gev, usual.max_energy_gev, kind.min_angle_rad,
                  kind.max_angle_rad, usual.threshold_gev);
  if (showers.particles != usual.particles) name += fmt::format("-{}", particles_text(showers));
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

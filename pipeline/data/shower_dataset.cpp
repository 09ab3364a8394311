#include "pipeline/data/shower_dataset.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/shower_file.h"
#include "runtime/base/hash.h"

namespace troupe::pipeline {

using runtime::Buffer;
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

ShowerFileOptions file_options(const ShowerDatasetOptions& options, const Detector& detector,
                               std::uint64_t events) {
  ShowerFileOptions file;
  file.schema = detector.schema;
  file.shape = detector.shape;
  file.events = events;
  file.gzip_level = options.gzip_level;
  file.chunk_events = options.chunk_events;
  file.attributes = {
      {"threshold", options.showers.threshold_gev * detector.units_per_gev},
      {"scale", detector.units_per_gev},
      {"generator", fmt::format("troupe showers {} {}", kShowerVersion, detector.name)},
      {"seed", options.showers.seed}};
  return file;
}

// Two calls in one process may also write at the same time.
std::string unique_suffix() {
  static std::atomic<std::uint64_t> calls{0};
  return fmt::format("{}-{}", ::getpid(), calls++);
}

}  // namespace

std::string shower_file_name(const std::string& path, std::uint32_t file, std::uint32_t files) {
  if (files == 1) return path;
  const bool suffixed = path.size() > 3 && path.ends_with(".h5");
  const std::size_t digits = fmt::format("{}", files - 1).size();
  return fmt::format("{}_{:0{}}.h5", suffixed ? path.substr(0, path.size() - 3) : path, file,
                     digits);
}

Result<std::vector<std::string>> write_shower_dataset(const ShowerDatasetOptions& options,
                                                      const std::string& path,
                                                      runtime::ThreadTeam& team,
                                                      const Progress& progress,
                                                      runtime::Disk* disk) {
  RETURN_IF_ERROR(check_options(options, path));
  ASSIGN_OR_RETURN(const ShowerGenerator generator, ShowerGenerator::create(options.showers));
  runtime::FileDisk file_disk;
  runtime::Disk& target = disk != nullptr ? *disk : file_disk;
  std::vector<std::string> paths;
  for (std::uint32_t file = 0; file < options.files; ++file) {
    // The sizes of files differ by one event at most. Events have numbers over all files, so a
    // shower does not depend on how many there are.
    const std::uint64_t first = options.events * file / options.files;
    const std::uint64_t end = options.events * (file + 1) / options.files;
    const ShowerSource showers = [&](std::uint64_t in_file, std::span<Primary> primaries,
                                     std::span<float> cells) {
      generator.generate(first + in_file, primaries, cells, team);
    };
    const Progress report = [&](std::uint64_t done, std::uint64_t) -> Result<void> {
      return progress ? progress(first + done, options.events) : Result<void>{};
    };
    paths.push_back(shower_file_name(path, file, options.files));
    Result<Buffer> image = compose_shower_file(
        file_options(options, generator.detector(), end - first), showers, team, report);
    if (!image.ok()) {
      return Error{image.error().kind, fmt::format("{}: {}", paths.back(), image.error().message)};
    }
    RETURN_IF_ERROR(target.replace(paths.back(), image->bytes()));
  }
  return paths;
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

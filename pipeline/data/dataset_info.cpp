#include "pipeline/data/dataset_info.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/dataset_file.h"
#include "pipeline/data/dataset_index.h"
#include "pipeline/data/dataset_paths.h"
#include "pipeline/data/hdf5_file.h"
#include "runtime/base/utf8.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

constexpr std::size_t kExamples = 8;

// Smallest, largest and sum of values that come one by one.
class Gauge {
 public:
  void add(double value) {
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    sum_ += value;
    ++count_;
  }
  double sum() const { return sum_; }
  Range range() const {
    if (count_ == 0) return {};
    return {min_, max_, sum_ / static_cast<double>(count_)};
  }

 private:
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

struct Gauges {
  Gauge energy;
  Gauge theta;
  Gauge ecal;
  Gauge occupied;
};

std::optional<DataSchema> schema_of(const EventContainer& file) {
  for (const SchemaFacts& facts : all_schemas()) {
    const DatasetNames& names = facts.names;
    const auto has = [&](const std::string& name) { return name.empty() || file.contains(name); };
    if (facts.format != file.format() || names.energy.empty()) continue;
    const bool measured = facts.schema == DataSchema::kLcdAngle && file.contains("mtheta");
    if (std::ranges::all_of(names.images, has) && has(names.energy) &&
        (has(names.angle) || measured)) {
      return facts.schema;
    }
  }
  return std::nullopt;
}

std::string looked_for(const FileInfo& file) {
  std::vector<std::string> names;
  for (const PartInfo& entry : file.datasets) names.push_back(entry.name);
  std::vector<std::string> schemas;
  for (const SchemaFacts& facts : all_schemas()) {
    if (facts.format != file.format || facts.names.energy.empty()) continue;
    schemas.push_back(fmt::format("{} ({})", facts.text, facts.parts));
  }
  return fmt::format(
      "{}: {} of no schema that is known here: {}; it has {}. Name its parts: troupe data info "
      "--image NAME --energy NAME; a topology does by data.schema custom and data.names",
      runtime::printable(file.path), text(file.format), fmt::join(schemas, ", "),
      names_text(names));
}

Result<FileInfo> describe_file(const std::string& path, const DescribeOptions& options,
                               std::vector<std::string>& notes) {
  ASSIGN_OR_RETURN(const auto file, open_container(path));
  FileInfo info;
  info.path = path;
  std::error_code cause;
  info.bytes = std::filesystem::file_size(path, cause);
  info.format = file->format();
  info.attributes = file->attributes();
  ASSIGN_OR_RETURN(PartList list, file->parts());
  info.datasets = std::move(list.parts);
  if (!list.note.empty()) notes.push_back(list.note);
  if (options.schema) {
    info.schema = options.schema;
  } else {
    info.schema = options.names ? DataSchema::kCustom : schema_of(*file);
  }
  if (info.schema) {
    const FileLayout layout = options.layout(*info.schema);
    ASSIGN_OR_RETURN(const auto images, file->images(layout.names.images.front(), 0));
    info.events = images->rows();
  }
  return info;
}

// Adds a file's events to the gauges, in order of rows so that the means do not depend on threads.
Result<void> measure_file(const FileInfo& file, const DescribeOptions& options,
                          runtime::ThreadTeam& team,
                          const std::function<Result<void>(std::uint64_t rows)>& add_rows,
                          Gauges& gauges, DatasetInfo& info) {
  ASSIGN_OR_RETURN(const DatasetFile opened,
                   DatasetFile::open(file.path, options.layout(*file.schema), options.shape));
  const std::size_t cells = opened.images().row_size();
  ReadScratch scratch;
  std::vector<std::uint32_t> occupied(opened.rows());
  const auto count = [&](std::uint32_t block, std::span<const EventState> states,
                         std::span<const float> images) -> Result<void> {
    const std::size_t first = opened.images().first_row(block);
    for (std::size_t i = 0; i < states.size(); ++i) {
      const auto image = images.subspan(i * cells, cells);
      occupied[first + i] = static_cast<std::uint32_t>(
          std::count_if(image.begin(), image.end(), [](float cell) { return cell > 0.0f; }));
    }
    return add_rows(states.size());
  };
  ASSIGN_OR_RETURN(const FileIndex index, scan_file(opened, Preprocessing{}, team, scratch, count));
  for (std::size_t row = 0; row < index.rows(); ++row) {
    if (index.states[row] == EventState::kBad) continue;
    gauges.energy.add(100.0 * static_cast<double>(index.energies[row]));
    gauges.theta.add(static_cast<double>(index.angles[row]));
    gauges.ecal.add(static_cast<double>(index.ecals[row]));
    gauges.occupied.add(occupied[row]);
  }
  info.bad_events += index.bad;
  for (const std::string& event : index.bad_events) {
    if (info.bad_event_examples.size() < kExamples) info.bad_event_examples.push_back(event);
  }
  if (!opened.images().note().empty()) info.notes.push_back(opened.images().note());
  info.shape = opened.shape();
  return {};
}

}  // namespace

FileLayout DescribeOptions::layout(DataSchema of) const {
  return {of, names.value_or(default_names(of)),
          of == DataSchema::kCaloChallenge ? binning : std::string()};
}

Result<DataSchema> find_schema(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(const auto files, expand_paths(paths));
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(const FileInfo first, describe_file(files.front(), {}, notes));
  if (first.schema) return *first.schema;
  return runtime::Error{runtime::ErrorKind::kData, looked_for(first)};
}

Result<DatasetInfo> describe_dataset(const std::vector<std::string>& paths,
                                     const DescribeOptions& options, runtime::ThreadTeam& team,
                                     const Progress& progress) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, expand_paths(paths));
  DatasetInfo info;
  for (const std::string& path : files) {
    ASSIGN_OR_RETURN(FileInfo file, describe_file(path, options, info.notes));
    info.events += file.events;
    info.files.push_back(std::move(file));
  }
  // The files are described first, so that progress can be told as a part of all their events.
  Gauges gauges;
  std::mutex mutex;
  std::uint64_t done = 0;
  const auto add_rows = [&](std::uint64_t rows) -> Result<void> {
    const std::scoped_lock lock(mutex);
    done += rows;
    return progress ? progress(done, info.events) : Result<void>{};
  };
  for (const FileInfo& file : info.files) {
    if (file.schema) {
      RETURN_IF_ERROR(measure_file(file, options, team, add_rows, gauges, info));
    } else {
      info.not_understood.push_back(looked_for(file));
    }
  }
  info.schema = info.files.front().schema;
  for (const FileInfo& file : info.files) {
    if (file.schema != info.schema) info.schema.reset();
  }
  info.energy_gev = gauges.energy.range();
  info.theta_rad = gauges.theta.range();
  info.ecal = gauges.ecal.range();
  info.occupied_cells = gauges.occupied.range();
  if (gauges.energy.sum() > 0) info.ecal_per_energy = gauges.ecal.sum() / gauges.energy.sum();
  return info;
}

}  // namespace troupe::pipeline

#include "pipeline/data/conversion.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/data/calo_binning.h"
#include "pipeline/data/data_error.h"
#include "pipeline/data/idx_file.h"
#include "pipeline/data/shower_file.h"
#include "pipeline/data/stored_events.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

using Attributes = std::vector<std::pair<std::string, std::string>>;

// Angles that differ less from 90 degrees were meant to be 90 degrees.
constexpr double kRightAngleRad = 1e-5;
constexpr std::size_t kNamesTold = 20;

bool holds_angles(DataSchema schema) {
  return schema == DataSchema::kLcdAngle || schema == DataSchema::kTfRecord;
}

// The file to be made says by this where it comes from.
Attributes origin_of(const StoredEvents& events, const std::string& program) {
  std::vector<std::string> names;
  for (const std::string& path : events.paths()) {
    if (names.size() < kNamesTold) names.push_back(std::filesystem::path(path).filename().string());
  }
  std::string sources = fmt::format("{}", fmt::join(names, ", "));
  if (names.size() < events.paths().size()) {
    sources += fmt::format(" and {} more", events.paths().size() - names.size());
  }
  Attributes origin{{"converted_by", program},
                    {"source", sources},
                    {"source_schema", std::string(text(events.schema()))},
                    {"source_events_hash", events.content().text()}};
  for (const auto& [name, value] : events.attributes()) {
    // A file that was converted before tells its whole way.
    if (name != "power" && name != "scale") origin.emplace_back("source_" + name, value);
  }
  return origin;
}

// Takes events in the units of the sources and gives them in those of the schema.
class Converter {
 public:
  Converter(StoredEvents& events, DataSchema to)
      : events_(events),
        to_(to),
        factor_(static_cast<float>(facts_of(to).units_per_gev /
                                   facts_of(events.schema()).units_per_gev)) {}

  // Tells which of the sources' columns are written.
  std::vector<ShowerColumn> columns() {
    std::vector<ShowerColumn> all = events_.columns();
    std::vector<std::size_t> order(all.size());  // the particle before others of its name
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto is_particle = [&](std::size_t i) {
      return events_.columns()[i].name == species_column(DataSchema::kLcdAngle);
    };
    std::stable_partition(order.begin(), order.end(), is_particle);
    std::vector<std::string> taken = written_parts(to_);
    is_kept_.assign(all.size(), false);
    for (const std::size_t i : order) {
      if (is_particle(i)) all[i].name = species_column(to_);
      const auto collides = [&](const std::string& other) { return collide(all[i].name, other); };
      is_kept_[i] = to_ != DataSchema::kIdx && std::ranges::none_of(taken, collides);
      if (is_kept_[i]) taken.push_back(all[i].name);
    }
    std::vector<ShowerColumn> kept;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (is_kept_[i]) kept.push_back(std::move(all[i]));
    }
    return kept;
  }

  void take(std::uint64_t first, std::span<Primary> primaries, std::span<float> cells,
            std::span<double> columns) {
    if (error_) return;
    std::size_t numbers = 0;
    for (const ShowerColumn& column : events_.columns()) numbers += column.numbers();
    stored_.resize(primaries.size() * numbers);
    const Result<void> read = events_.next(primaries, cells, stored_);
    give(columns);
    if (!read.ok()) {
      error_ = read.error();
      return;
    }
    for (float& cell : cells) cell *= factor_;
    const auto lost = std::ranges::find_if(cells, [](float cell) { return !std::isfinite(cell); });
    if (lost != cells.end()) {
      const std::size_t values = cells.size() / primaries.size();
      error_ = data_error(
          fmt::format("event {} has a cell that is beyond a float in the units of {}",
                      first + static_cast<std::size_t>(lost - cells.begin()) / values, text(to_)));
    }
    for (std::size_t i = 0; i < primaries.size(); ++i) check(first + i, primaries[i]);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  // Whether a file has no place for both. In HDF5 a name may be a folder of another one.
  bool collide(const std::string& a, const std::string& b) const {
    if (facts_of(to_).format != FileFormat::kHdf5) return a == b;
    return a == b || a.starts_with(b + "/") || b.starts_with(a + "/");
  }

  void give(std::span<double> columns) {
    auto to = columns.begin();
    for (auto from = stored_.begin(); from != stored_.end();) {
      for (std::size_t i = 0; i < is_kept_.size(); ++i) {
        const auto end = from + static_cast<std::ptrdiff_t>(events_.columns()[i].numbers());
        if (is_kept_[i]) to = std::copy(from, end, to);
        from = end;
      }
    }
  }

  void check(std::uint64_t event, const Primary& primary) {
    const double theta = static_cast<double>(primary.theta_rad);
    if (error_ || holds_angles(to_) || std::abs(theta - std::numbers::pi / 2) < kRightAngleRad) {
      return;
    }
    error_ = data_error(
        fmt::format("event {} comes at {:.4g} degrees, and {} has no angles; convert to lcd-angle "
                    "or tfrecord",
                    event, theta * 180.0 / std::numbers::pi, text(to_)));
  }

  StoredEvents& events_;
  DataSchema to_;
  float factor_;
  std::vector<bool> is_kept_;   // of each of the sources' columns
  std::vector<double> stored_;  // of those
  std::optional<Error> error_;
};

// The voxels of what is a box in memory, for calochallenge.
Result<std::optional<CaloBinning>> binning_of(const ConversionOptions& options,
                                              const StoredEvents& events) {
  const ImageShape& shape = events.shape();
  if (options.from.binning.empty()) {
    if (shape.space[1] == 1 && shape.space[2] == 1) return std::optional<CaloBinning>();
    return data_error(
        fmt::format("images of {} are no rows of voxels; give the XML file of the binning whose "
                    "box they are: --binning",
                    shape.text()));
  }
  ASSIGN_OR_RETURN(const auto binnings, read_binnings(options.from.binning));
  std::vector<std::string> boxes;
  for (const CaloBinning& binning : binnings) {
    if (binning.box() == shape) return std::optional(binning);
    boxes.push_back(binning.box().text());
  }
  return data_error(fmt::format("{}: its boxes are {}; the images are {}", options.from.binning,
                                fmt::join(boxes, ", "), shape.text()));
}

Result<ShowerFileOptions> file_options(const ConversionOptions& options,
                                       const StoredEvents& events) {
  ShowerFileOptions file;
  file.schema = options.to;
  file.shape = events.shape().space;
  file.channels = events.shape().channels;
  file.events = events.size();
  file.gzip_level = options.gzip_level;
  // Bytes stay bytes where no unit changes them.
  file.bytes = events.of_bytes() && facts_of(events.schema()).units_per_gev == 1;
  file.labels = file.bytes && events.schema() == DataSchema::kIdx;
  file.angles = events.has_angles();
  if (facts_of(options.to).format == FileFormat::kHdf5 && file.channels > 1) {
    return data_error(
        fmt::format("images of {} have {} channels, and {} has one; convert to "
                    "tfrecord or idx",
                    events.shape().text(), file.channels, text(options.to)));
  }
  if (options.to == DataSchema::kCaloChallenge) {
    ASSIGN_OR_RETURN(file.binning, binning_of(options, events));
  }
  file.attributes = {{"scale", facts_of(options.to).units_per_gev}};
  return file;
}

}  // namespace

std::vector<std::string> converted_files(DataSchema to, const std::string& path) {
  std::vector<std::string> files{path};
  if (to == DataSchema::kIdx) {
    if (auto labels = idx_labels_path(path)) files.push_back(*std::move(labels));
  }
  if (facts_of(to).format != FileFormat::kHdf5) files.push_back(path + ".origin.json");
  return files;
}

Result<std::uint64_t> convert_dataset(const ConversionOptions& options, const std::string& path,
                                      runtime::ThreadTeam& team, const Progress& progress) {
  CHECK(options.to != DataSchema::kCustom, "custom is no schema to write");
  ASSIGN_OR_RETURN(StoredEvents events, StoredEvents::open(options.paths, options.from, team));
  ASSIGN_OR_RETURN(ShowerFileOptions file, file_options(options, events));
  file.last_attributes = [&] { return origin_of(events, options.program); };
  Converter converter(events, options.to);
  file.columns = converter.columns();
  file.particles = std::ranges::any_of(file.columns, [&](const ShowerColumn& column) {
    return column.name == species_column(options.to);
  });
  const ShowerSource source = [&](std::uint64_t first, std::span<Primary> primaries,
                                  std::span<float> cells, std::span<double> columns) {
    converter.take(first, primaries, cells, columns);
  };
  // An error of reading ends the writing here.
  const Progress watch = [&](std::uint64_t done, std::uint64_t total) -> Result<void> {
    if (converter.error()) return *converter.error();
    return progress ? progress(done, total) : Result<void>{};
  };
  RETURN_IF_ERROR(write_shower_file(file, source, path, team, watch));
  return events.size();
}

}  // namespace troupe::pipeline

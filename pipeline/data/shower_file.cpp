#include "pipeline/data/shower_file.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/data/chunk_codec.h"
#include "pipeline/data/flat_shower_file.h"
#include "pipeline/data/hdf5_writer.h"
#include "runtime/base/math.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

constexpr std::size_t kChunkBytes = 1u << 20;
// Images made between two writes.
constexpr std::size_t kRoundBytes = 32u << 20;

// The facts of an event besides its cells.
struct EventFacts {
  Primary primary;
  double particle = 0;        // PDG number
  double measured_angle = 0;  // lcd-angle only
  double sum = 0;             // of its cells
};

// A dataset of conditions: `width` numbers of an event, 0 for a dataset of one axis.
struct ColumnFormat {
  const char* name;
  std::size_t width;
  bool wide;  // 64 bits
  double (*value)(const EventFacts& event, std::size_t column);
};

double energy_of(const EventFacts& event, std::size_t) { return event.primary.energy_gev; }
double theta_of(const EventFacts& event, std::size_t) { return event.primary.theta_rad; }
double sum_of(const EventFacts& event, std::size_t) { return event.sum; }
double number_of(const EventFacts& event, std::size_t) { return event.particle; }

// In the order in which they are written.
std::span<const ColumnFormat> columns_of(DataSchema schema, bool particles) {
  static constexpr ColumnFormat kFixed[] = {
      {"target", 2, false, [](const EventFacts& event, std::size_t column) -> double {
         return column == 0 ? number_of(event, 0) : event.primary.energy_gev;
       }}};
  static constexpr ColumnFormat kAngle[] = {
      {"energy", 0, false, energy_of},
      {"theta", 0, false, theta_of},
      {"mtheta", 0, true,
       [](const EventFacts& event, std::size_t) { return event.measured_angle; }},
      {"sum", 0, false, sum_of},
      {"pdg", 0, false, number_of}};
  static constexpr ColumnFormat kNnlo[] = {
      {"y/a", 0, false, [](const EventFacts&, std::size_t) { return 1.0; }},
      {"y/b", 0, false,
       [](const EventFacts& event, std::size_t) { return event.primary.energy_gev / 100.0; }},
      {"y/c", 0, false, sum_of}};
  static constexpr ColumnFormat kCalo[] = {
      {"incident_energies", 1, false,
       [](const EventFacts& event, std::size_t) { return event.primary.energy_gev * 1000.0; }}};
  switch (schema) {
    case DataSchema::kLcdFixed:
      return kFixed;
    case DataSchema::kLcdAngle:
      return std::span(kAngle).first(particles ? 5 : 4);
    case DataSchema::kNnlo:
      return kNnlo;
    case DataSchema::kCaloChallenge:
      return kCalo;
    default:
      CHECK(false, "no schema that is written as HDF5");
  }
}

class FileWriter {
 public:
  FileWriter(const ShowerFileOptions& options, const ShowerSource& source,
             runtime::ThreadTeam& team)
      : options_(options),
        source_(source),
        team_(team),
        columns_(columns_of(options.schema, options.particles)),
        events_(options.events) {
    for (const ShowerColumn& column : options.columns) {
      if (column.name == species_column(options.schema)) species_ = numbers_;
      numbers_ += column.numbers();
    }
    const std::size_t image_bytes = values() * sizeof(float);
    const std::uint64_t asked = options.chunk_events;
    chunk_events_ = std::min<std::uint64_t>(
        events_, asked > 0 ? asked : std::max<std::size_t>(1, kChunkBytes / image_bytes));
    round_chunks_ = std::max<std::size_t>(1, kRoundBytes / (chunk_events_ * image_bytes));
  }

  Result<void> write(Hdf5Writer& file, const Progress& progress) {
    add_attributes(file);
    const Hdf5Target images =
        file.add_chunked(default_names(options_.schema).images.front(), images_of(events_),
                         images_of(chunk_events_), options_.gzip_level);
    const std::vector<Hdf5Target> columns = add_columns(file);
    for (std::uint64_t done = 0; done < events_;) {
      const std::uint64_t count = std::min(events_ - done, round_chunks_ * chunk_events_);
      generate(done, count);
      write_chunks(file, images, done);
      write_columns(file, columns, done);
      RETURN_IF_ERROR(file.result());
      done += count;
      if (progress) RETURN_IF_ERROR(progress(done, events_));
    }
    return {};
  }

 private:
  std::size_t cells() const {
    return std::size_t{options_.shape[0]} * options_.shape[1] * options_.shape[2];
  }
  // Numbers of an event in the file: its cells, or the voxels of the box that they are.
  std::size_t values() const { return options_.binning ? options_.binning->voxels() : cells(); }
  bool tilted() const { return options_.schema == DataSchema::kLcdAngle; }
  std::vector<std::int64_t> images_of(std::uint64_t events) const {
    const auto& shape = options_.shape;
    std::vector<std::int64_t> extents{static_cast<std::int64_t>(events)};
    if (options_.schema == DataSchema::kCaloChallenge) {
      extents.push_back(static_cast<std::int64_t>(values()));
    } else {
      extents.insert(extents.end(), shape.begin(), shape.end());
    }
    if (options_.schema == DataSchema::kNnlo) extents.push_back(1);
    return extents;
  }

  void add_attributes(Hdf5Writer& file) const {
    file.add_attribute("/", "power", 1.0);
    if (options_.schema == DataSchema::kLcdFixed || tilted()) {
      file.add_attribute("/", "angle", std::string(tilted() ? "theta" : "fixed"));
    }
    for (const auto& [name, value] : options_.attributes) {
      std::visit(
          [&file, &key = name](const auto& content) { file.add_attribute("/", key, content); },
          value);
    }
  }

  // Events [done, done + count) of the file, padded with zeros to whole chunks.
  void generate(std::uint64_t done, std::uint64_t count) {
    const std::uint64_t chunks = (count + chunk_events_ - 1) / chunk_events_;
    images_.assign(chunks * chunk_events_ * cells(), 0.0f);
    std::vector<Primary> primaries(count);
    const std::span<float> used = std::span(images_).first(count * cells());
    further_.assign(count * numbers_, 0.0);
    source_(done, primaries, used, further_);
    facts_.assign(count, {});
    team_.run(static_cast<std::int64_t>(count), [&](std::int64_t index, int) {
      const auto i = static_cast<std::size_t>(index);
      const std::span<const float> image = used.subspan(i * cells(), cells());
      EventFacts& facts = facts_[i];
      facts.primary = primaries[i];
      facts.particle = species_ ? further_[i * numbers_ + *species_]
                                : static_cast<double>(primaries[i].particle);
      for (const float cell : image) facts.sum += static_cast<double>(cell);
      if (tilted()) facts.measured_angle = measure_angle(image, options_.shape);
    });
    if (options_.binning) take_voxels(chunks * chunk_events_, count);
  }

  // Replaces boxes by rows of voxels.
  void take_voxels(std::uint64_t places, std::uint64_t count) {
    std::vector<float> rows(places * values(), 0.0f);
    for (std::uint64_t i = 0; i < count; ++i) {
      options_.binning->from_box(std::span<const float>(images_).subspan(i * cells(), cells()),
                                 std::span(rows).subspan(i * values(), values()));
    }
    images_ = std::move(rows);
  }

  void write_chunks(Hdf5Writer& file, const Hdf5Target& images, std::uint64_t done) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span<const float>(images_));
    const std::size_t chunk_bytes = chunk_events_ * values() * sizeof(float);
    const std::size_t chunks = bytes.size() / chunk_bytes;
    std::vector<std::vector<std::byte>> packed(chunks);
    if (options_.gzip_level > 0) compress(bytes, chunk_bytes, packed);
    for (std::size_t i = 0; i < chunks; ++i) {
      std::vector<std::int64_t> offset(images_of(1).size(), 0);
      offset[0] = static_cast<std::int64_t>(done + i * chunk_events_);
      file.write_chunk(images, offset,
                       options_.gzip_level > 0 ? std::span<const std::byte>(packed[i])
                                               : bytes.subspan(i * chunk_bytes, chunk_bytes));
    }
  }

  void compress(std::span<const std::byte> bytes, std::size_t chunk_bytes,
                std::vector<std::vector<std::byte>>& packed) {
    while (deflaters_.size() < static_cast<std::size_t>(team_.threads())) {
      deflaters_.emplace_back(options_.gzip_level);
    }
    team_.run(static_cast<std::int64_t>(packed.size()), [&](std::int64_t index, int thread) {
      const auto i = static_cast<std::size_t>(index);
      Deflater& deflater = deflaters_[static_cast<std::size_t>(thread)];
      packed[i].resize(deflater.bound(chunk_bytes));
      packed[i].resize(deflater.deflate(bytes.subspan(i * chunk_bytes, chunk_bytes), packed[i]));
    });
  }

  std::vector<Hdf5Target> add_columns(Hdf5Writer& file) const {
    std::vector<Hdf5Target> targets;
    for (const ColumnFormat& column : columns_) {
      std::vector<std::int64_t> rows{static_cast<std::int64_t>(events_)};
      if (column.width > 0) rows.push_back(static_cast<std::int64_t>(column.width));
      targets.push_back(column.wide ? file.add_rows<double>(column.name, rows)
                                    : file.add_rows<float>(column.name, rows));
    }
    for (const ShowerColumn& column : options_.columns) {
      std::vector<std::int64_t> rows{static_cast<std::int64_t>(events_)};
      if (column.width > 0) rows.push_back(static_cast<std::int64_t>(column.width));
      if (is_written_apart(column)) targets.push_back(file.add_rows<double>(column.name, rows));
    }
    return targets;
  }
  // Not as a number of the schema's own part.
  bool is_written_apart(const ShowerColumn& column) const {
    const bool has_species =
        options_.schema == DataSchema::kLcdFixed || (tilted() && options_.particles);
    return !has_species || column.name != species_column(options_.schema);
  }

  template <class T>
  std::vector<T> values_of(const ColumnFormat& column) const {
    std::vector<T> all;
    for (const EventFacts& event : facts_) {
      for (std::size_t i = 0; i < std::max<std::size_t>(1, column.width); ++i) {
        all.push_back(static_cast<T>(column.value(event, i)));
      }
    }
    return all;
  }

  void write_columns(Hdf5Writer& file, const std::vector<Hdf5Target>& targets,
                     std::uint64_t done) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].wide) {
        file.write_rows(targets[i], done, values_of<double>(columns_[i]));
      } else {
        file.write_rows(targets[i], done, values_of<float>(columns_[i]));
      }
    }
    std::size_t target = columns_.size();
    std::size_t first = 0;
    for (const ShowerColumn& column : options_.columns) {
      if (is_written_apart(column)) {
        std::vector<double> all;
        for (std::size_t at = first; at < further_.size(); at += numbers_) {
          all.insert(all.end(), further_.begin() + static_cast<std::ptrdiff_t>(at),
                     further_.begin() + static_cast<std::ptrdiff_t>(at + column.numbers()));
        }
        file.write_rows(targets[target++], done, all);
      }
      first += column.numbers();
    }
  }

  const ShowerFileOptions& options_;
  const ShowerSource& source_;
  runtime::ThreadTeam& team_;
  std::span<const ColumnFormat> columns_;
  std::uint64_t events_;
  std::uint64_t chunk_events_ = 1;
  std::uint64_t round_chunks_ = 1;
  std::vector<float> images_;
  std::vector<EventFacts> facts_;
  std::size_t numbers_ = 0;             // of an event in further_
  std::optional<std::size_t> species_;  // where the particle's stands among these
  std::vector<double> further_;
  std::vector<Deflater> deflaters_;
};

}  // namespace

Result<void> write_shower_file(const ShowerFileOptions& options, const ShowerSource& source,
                               const std::string& path, runtime::ThreadTeam& team,
                               const Progress& progress) {
  switch (facts_of(options.schema).format) {
    case FileFormat::kTfRecord:
      return write_record_file(options, source, path, progress);
    case FileFormat::kIdx:
      return write_idx_file(options, source, path, progress);
    case FileFormat::kHdf5:
      break;
  }
  ASSIGN_OR_RETURN(runtime::NewFile file, runtime::NewFile::create(path));
  {
    Hdf5Writer writer(Hdf5Writer::Order::kByName, file);
    RETURN_IF_ERROR(FileWriter(options, source, team).write(writer, progress));
    if (options.last_attributes) {
      for (const auto& [name, value] : options.last_attributes()) {
        writer.add_attribute("/", name, value);
      }
    }
    RETURN_IF_ERROR(writer.close());
  }
  return file.finish();
}

std::vector<std::string> written_columns(DataSchema schema, bool particles) {
  std::vector<std::string> names;
  if (facts_of(schema).format != FileFormat::kHdf5 || schema == DataSchema::kCustom) return names;
  for (const ColumnFormat& column : columns_of(schema, particles)) {
    if (column.width < 2) names.emplace_back(column.name);
    for (std::size_t i = 0; column.width > 1 && i < column.width; ++i) {
      names.push_back(fmt::format("{}.{}", column.name, i));
    }
  }
  return names;
}

std::vector<std::string> written_parts(DataSchema schema) {
  const DatasetNames names = default_names(schema);
  std::vector<std::string> parts{names.images.front(), names.energy};
  if (schema == DataSchema::kTfRecord) parts.insert(parts.end(), {"shape", "theta"});
  if (facts_of(schema).format != FileFormat::kHdf5 || schema == DataSchema::kCustom) return parts;
  for (const ColumnFormat& column : columns_of(schema, false)) parts.emplace_back(column.name);
  return parts;
}

std::string species_column(DataSchema schema) {
  return schema == DataSchema::kLcdFixed ? "target.0" : "pdg";
}

std::string shower_file_name(const std::string& path, std::uint32_t file, std::uint32_t files) {
  if (files == 1) return path;
  const bool suffixed = path.size() > 3 && path.ends_with(".h5");
  const std::size_t digits = fmt::format("{}", files - 1).size();
  return fmt::format("{}_{:0{}}.h5", suffixed ? path.substr(0, path.size() - 3) : path, file,
                     digits);
}

Result<std::vector<std::string>> write_shower_files(const ShowerFileOptions& options,
                                                    std::uint32_t files, const ShowerSource& source,
                                                    const std::string& path,
                                                    runtime::ThreadTeam& team,
                                                    const Progress& progress) {
  CHECK(files >= 1 && files <= options.events);
  std::vector<std::string> paths;
  for (std::uint32_t file = 0; file < files; ++file) {
    const std::uint64_t first = options.events * file / files;
    ShowerFileOptions part = options;
    part.events = options.events * (file + 1) / files - first;
    const ShowerSource showers = [&](std::uint64_t in_file, std::span<Primary> primaries,
                                     std::span<float> cells, std::span<double> columns) {
      source(first + in_file, primaries, cells, columns);
    };
    const Progress report = [&](std::uint64_t done, std::uint64_t) -> Result<void> {
      return progress ? progress(first + done, options.events) : Result<void>{};
    };
    paths.push_back(shower_file_name(path, file, files));
    RETURN_IF_ERROR(write_shower_file(part, showers, paths.back(), team, report));
  }
  return paths;
}

double measure_angle(std::span<const float> cells, std::array<std::uint32_t, 3> shape) {
  struct Sums {
    double energy = 0, x = 0, y = 0;
  };
  std::vector<Sums> layers(shape[2]);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] == 0.0f) continue;
    const double energy = static_cast<double>(cells[i]);
    Sums& layer = layers[i % shape[2]];
    layer.energy += energy;
    layer.x += energy * (static_cast<double>(i / shape[2] / shape[1]) + 0.5);
    layer.y += energy * (static_cast<double>(i / shape[2] % shape[1]) + 0.5);
  }
  Sums all;
  double all_z = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    all.energy += layers[i].energy;
    all.x += layers[i].x;
    all.y += layers[i].y;
    all_z += layers[i].energy * (static_cast<double>(i) + 0.5);
  }
  if (all.energy == 0) return 100.0;
  double angles = 0;
  double weights = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].energy == 0) continue;
    const double z = static_cast<double>(i) + 0.5;
    const double dx = layers[i].x / layers[i].energy - all.x / all.energy;
    const double dy = layers[i].y / layers[i].energy - all.y / all.energy;
    const double dz = z - all_z / all.energy;
    // The direction from the centre to a layer in front of it points backwards, so its slope is
    // turned round. The least square keeps a layer at the centre from dividing by 0.
    const double slope = dy / std::sqrt(std::max(dx * dx + dz * dz, 1e-7));
    angles += (std::numbers::pi / 2 - runtime::math::atan(dz < 0 ? -slope : slope)) * z;
    weights += z;
  }
  return angles / weights;
}

}  // namespace troupe::pipeline

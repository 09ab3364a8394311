#include "pipeline/data/shower_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include <fmt/format.h>

#include "pipeline/data/chunk_codec.h"
#include "pipeline/data/hdf5_writer.h"
#include "runtime/base/math.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

constexpr std::size_t kChunkBytes = 1u << 20;
// Images made between two writes.
constexpr std::size_t kRoundBytes = 32u << 20;
// PDG number of the electron.
constexpr float kElectron = 11.0f;

// The conditions of a round of events.
struct Columns {
  std::vector<float> energies;
  std::vector<float> thetas;
  std::vector<double> measured;
  std::vector<float> sums;
};

// Where they go. lcd-fixed has `target` alone, lcd-angle the others.
struct ColumnTargets {
  Hdf5Target target, energy, theta, measured, sum;
};

class FileWriter {
 public:
  FileWriter(const ShowerFileOptions& options, const ShowerSource& source,
             runtime::ThreadTeam& team)
      : options_(options), source_(source), team_(team), events_(options.events) {
    const std::size_t image_bytes = cells() * sizeof(float);
    const std::uint64_t asked = options.chunk_events;
    chunk_events_ = std::min<std::uint64_t>(
        events_, asked > 0 ? asked : std::max<std::size_t>(1, kChunkBytes / image_bytes));
    round_chunks_ = std::max<std::size_t>(1, kRoundBytes / (chunk_events_ * image_bytes));
  }

  Result<void> write(Hdf5Writer& file, const Progress& progress) {
    add_attributes(file);
    const Hdf5Target images =
        file.add_chunked("ECAL", images_of(events_), images_of(chunk_events_), options_.gzip_level);
    const ColumnTargets columns = add_columns(file);
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
  bool tilted() const { return options_.schema == DataSchema::kLcdAngle; }
  std::array<std::int64_t, 4> images_of(std::uint64_t events) const {
    const auto& shape = options_.shape;
    return {static_cast<std::int64_t>(events), shape[0], shape[1], shape[2]};
  }

  void add_attributes(Hdf5Writer& file) const {
    file.add_attribute("/", "power", 1.0);
    file.add_attribute("/", "angle", std::string(tilted() ? "theta" : "fixed"));
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
    source_(done, primaries, used);
    columns_ = {};
    columns_.measured.resize(count);
    columns_.sums.resize(count);
    for (const Primary& primary : primaries) {
      columns_.energies.push_back(primary.energy_gev);
      columns_.thetas.push_back(primary.theta_rad);
    }
    if (!tilted()) return;
    team_.run(static_cast<std::int64_t>(count), [&](std::int64_t index, int) {
      const auto i = static_cast<std::size_t>(index);
      const std::span<const float> image = used.subspan(i * cells(), cells());
      double sum = 0;
      for (const float cell : image) sum += static_cast<double>(cell);
      columns_.sums[i] = static_cast<float>(sum);
      columns_.measured[i] = measure_angle(image, options_.shape);
    });
  }

  void write_chunks(Hdf5Writer& file, const Hdf5Target& images, std::uint64_t done) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span<const float>(images_));
    const std::size_t chunk_bytes = chunk_events_ * cells() * sizeof(float);
    const std::size_t chunks = bytes.size() / chunk_bytes;
    std::vector<std::vector<std::byte>> packed(chunks);
    if (options_.gzip_level > 0) compress(bytes, chunk_bytes, packed);
    for (std::size_t i = 0; i < chunks; ++i) {
      const std::int64_t offset[] = {static_cast<std::int64_t>(done + i * chunk_events_), 0, 0, 0};
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

  ColumnTargets add_columns(Hdf5Writer& file) const {
    const auto events = static_cast<std::int64_t>(events_);
    const std::int64_t rows[] = {events};
    const std::int64_t pairs[] = {events, 2};
    ColumnTargets targets;
    if (tilted()) {
      targets.energy = file.add_rows<float>("energy", rows);
      targets.theta = file.add_rows<float>("theta", rows);
      targets.measured = file.add_rows<double>("mtheta", rows);
      targets.sum = file.add_rows<float>("sum", rows);
    } else {
      targets.target = file.add_rows<float>("target", pairs);
    }
    return targets;
  }

  void write_columns(Hdf5Writer& file, const ColumnTargets& targets, std::uint64_t done) const {
    if (tilted()) {
      file.write_rows(targets.energy, done, columns_.energies);
      file.write_rows(targets.theta, done, columns_.thetas);
      file.write_rows(targets.measured, done, columns_.measured);
      file.write_rows(targets.sum, done, columns_.sums);
      return;
    }
    std::vector<float> target;
    for (const float energy : columns_.energies) target.insert(target.end(), {kElectron, energy});
    file.write_rows(targets.target, done, target);
  }

  const ShowerFileOptions& options_;
  const ShowerSource& source_;
  runtime::ThreadTeam& team_;
  std::uint64_t events_;
  std::uint64_t chunk_events_ = 1;
  std::uint64_t round_chunks_ = 1;
  std::vector<float> images_;
  Columns columns_;
  std::vector<Deflater> deflaters_;
};

}  // namespace

Result<void> write_shower_file(const ShowerFileOptions& options, const ShowerSource& source,
                               const std::string& path, runtime::ThreadTeam& team,
                               const Progress& progress) {
  ASSIGN_OR_RETURN(runtime::NewFile file, runtime::NewFile::create(path));
  {
    Hdf5Writer writer(Hdf5Writer::Order::kByName, file);
    RETURN_IF_ERROR(FileWriter(options, source, team).write(writer, progress));
    RETURN_IF_ERROR(writer.close());
  }
  return file.finish();
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
                                     std::span<float> cells) {
      source(first + in_file, primaries, cells);
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

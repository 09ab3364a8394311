#include "pipeline/data/shower_file.h"

#include <algorithm>
#include <vector>

#include "pipeline/data/chunk_codec.h"
#include "pipeline/data/hdf5_output.h"
#include "pipeline/data/shower_angle.h"

namespace troupe::pipeline {

using runtime::Buffer;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::size_t kChunkBytes = 1u << 20;
// Images made between two writes.
constexpr std::size_t kRoundBytes = 32u << 20;
// PDG number of the electron.
constexpr float kElectron = 11.0f;

// The conditions of a file's events.
struct Columns {
  std::vector<float> energies;
  std::vector<float> thetas;
  std::vector<double> measured;
  std::vector<float> sums;
};

class FileWriter {
 public:
  FileWriter(const ShowerFileOptions& options, ShowerSource& source, runtime::ThreadTeam& team)
      : options_(options), source_(source), team_(team), events_(options.events) {
    const std::size_t image_bytes = cells() * sizeof(float);
    const std::uint64_t asked = options.chunk_events;
    chunk_events_ = std::min<std::uint64_t>(
        events_, asked > 0 ? asked : std::max<std::size_t>(1, kChunkBytes / image_bytes));
    round_chunks_ = std::max<std::size_t>(1, kRoundBytes / (chunk_events_ * image_bytes));
  }

  Result<Buffer> compose(const Progress& progress) {
    ASSIGN_OR_RETURN(Hdf5Output output, Hdf5Output::create());
    RETURN_IF_ERROR(add_attributes(output));
    const auto& shape = options_.shape;
    const std::uint64_t extents[] = {events_, shape[0], shape[1], shape[2]};
    const std::uint64_t chunk[] = {chunk_events_, shape[0], shape[1], shape[2]};
    ASSIGN_OR_RETURN(const Hdf5ChunkedOutput images,
                     output.add_chunked("ECAL", extents, chunk, options_.gzip_level));
    for (std::uint64_t done = 0; done < events_;) {
      const std::uint64_t count = std::min(events_ - done, round_chunks_ * chunk_events_);
      generate(done, count);
      RETURN_IF_ERROR(write_chunks(output, images, done));
      done += count;
      if (progress) RETURN_IF_ERROR(progress(done, events_));
    }
    RETURN_IF_ERROR(add_columns(output));
    return output.image();
  }

 private:
  std::size_t cells() const {
    return std::size_t{options_.shape[0]} * options_.shape[1] * options_.shape[2];
  }
  bool tilted() const { return options_.schema == DataSchema::kLcdAngle; }

  Result<void> add_attributes(Hdf5Output& output) const {
    RETURN_IF_ERROR(output.add_attribute("power", 1.0));
    RETURN_IF_ERROR(output.add_attribute("angle", std::string(tilted() ? "theta" : "fixed")));
    for (const auto& [name, value] : options_.attributes) {
      RETURN_IF_ERROR(std::visit(
          [&output, &key = name](const auto& content) {
            return output.add_attribute(key, content);
          },
          value));
    }
    return {};
  }

  // Events [done, done + count) of the file, padded with zeros to whole chunks.
  void generate(std::uint64_t done, std::uint64_t count) {
    const std::uint64_t chunks = (count + chunk_events_ - 1) / chunk_events_;
    images_.assign(chunks * chunk_events_ * cells(), 0.0f);
    std::vector<Primary> primaries(count);
    const std::span<float> used = std::span(images_).first(count * cells());
    source_.make(done, primaries, used);
    const std::size_t before = columns_.energies.size();
    columns_.measured.resize(before + count);
    columns_.sums.resize(before + count);
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
      columns_.sums[before + i] = static_cast<float>(sum);
      columns_.measured[before + i] = measure_angle(image, options_.shape);
    });
  }

  Result<void> write_chunks(Hdf5Output& output, const Hdf5ChunkedOutput& images,
                            std::uint64_t done) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span<const float>(images_));
    const std::size_t chunk_bytes = chunk_events_ * cells() * sizeof(float);
    const std::size_t chunks = bytes.size() / chunk_bytes;
    std::vector<std::vector<std::byte>> packed(chunks);
    if (options_.gzip_level > 0) compress(bytes, chunk_bytes, packed);
    for (std::size_t i = 0; i < chunks; ++i) {
      const std::uint64_t offset[] = {done + i * chunk_events_, 0, 0, 0};
      RETURN_IF_ERROR(output.write_chunk(images, offset,
                                         options_.gzip_level > 0
                                             ? std::span<const std::byte>(packed[i])
                                             : bytes.subspan(i * chunk_bytes, chunk_bytes)));
    }
    return {};
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

  Result<void> add_columns(Hdf5Output& output) const {
    const std::uint64_t rows[] = {events_};
    if (!tilted()) {
      std::vector<float> target;
      for (const float energy : columns_.energies) target.insert(target.end(), {kElectron, energy});
      const std::uint64_t pairs[] = {events_, 2};
      return output.add_dataset("target", pairs, std::span<const float>(target));
    }
    RETURN_IF_ERROR(output.add_dataset("energy", rows, std::span<const float>(columns_.energies)));
    RETURN_IF_ERROR(output.add_dataset("theta", rows, std::span<const float>(columns_.thetas)));
    RETURN_IF_ERROR(output.add_dataset("mtheta", rows, std::span<const double>(columns_.measured)));
    return output.add_dataset("sum", rows, std::span<const float>(columns_.sums));
  }

  const ShowerFileOptions& options_;
  ShowerSource& source_;
  runtime::ThreadTeam& team_;
  std::uint64_t events_;
  std::uint64_t chunk_events_ = 1;
  std::uint64_t round_chunks_ = 1;
  std::vector<float> images_;
  Columns columns_;
  std::vector<Deflater> deflaters_;
};

}  // namespace

Result<Buffer> compose_shower_file(const ShowerFileOptions& options, ShowerSource& source,
                                   runtime::ThreadTeam& team, const Progress& progress) {
  return FileWriter(options, source, team).compose(progress);
}

}  // namespace troupe::pipeline

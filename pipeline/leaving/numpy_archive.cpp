#include "pipeline/leaving/numpy_archive.h"

#include <zip.h>

#include <array>
#include <bit>
#include <ctime>
#include <deque>
#include <memory>

#include <fmt/format.h>

namespace troupe::pipeline {
namespace {

using runtime::Result;

static_assert(std::endian::native == std::endian::little, "the header says little endian");

// Format 1.0 of numpy.lib.format: magic, version, length of the header, a Python dictionary that
// ends at a multiple of 64 bytes, the values in C order.
std::string npy(const std::string& type, const std::vector<std::int64_t>& shape,
                std::string_view values) {
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kBefore = 10;
  const std::string dimensions = shape.size() == 1 ? fmt::format("({},)", shape[0])
                                                   : fmt::format("({})", fmt::join(shape, ", "));
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, dimensions);
  header.append(kAlignment - (kBefore + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file += values;
  return file;
}

// A zip file in memory. Contents that were added live until bytes() has been called.
class Archive {
 public:
  Archive() {
    zip_error_init(&error_);
    source_ = zip_source_buffer_create(nullptr, 0, 0, &error_);
    if (source_ == nullptr) return;
    zip_source_keep(source_);  // the archive takes one hold, and bytes() reads by the other
    archive_ = zip_open_from_source(source_, ZIP_TRUNCATE, &error_);
  }
  ~Archive() {
    if (archive_ != nullptr) zip_discard(archive_);
    if (source_ != nullptr) zip_source_free(source_);
    zip_error_fini(&error_);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // Stored as it is: weights do not compress. The time is the least that a zip file can have.
  void add(const std::string& name, std::string content) {
    if (archive_ == nullptr) return;
    contents_.push_back(std::move(content));
    const std::string& kept = contents_.back();
    zip_source_t* source = zip_source_buffer(archive_, kept.data(), kept.size(), 0);
    const auto index = zip_file_add(archive_, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    const bool added = index >= 0;
    if (!added) zip_source_free(source);
    const auto entry = static_cast<zip_uint64_t>(index);
    constexpr zip_uint16_t kDay1 = 1 << 5 | 1;  // 1980-01-01, in MS-DOS' way
    good_ = good_ && added && zip_set_file_compression(archive_, entry, ZIP_CM_STORE, 0) == 0 &&
            zip_file_set_dostime(archive_, entry, 0, kDay1, 0) == 0;
  }

  Result<std::string> bytes() {
    if (archive_ == nullptr || !good_ || zip_close(archive_) != 0) return refusal();
    archive_ = nullptr;
    zip_stat_t stat;
    if (zip_source_stat(source_, &stat) != 0 || zip_source_open(source_) != 0) return refusal();
    std::string all(stat.size, '\0');
    const auto got = zip_source_read(source_, all.data(), all.size());
    zip_source_close(source_);
    if (got != static_cast<zip_int64_t>(all.size())) return refusal();
    return all;
  }

 private:
  runtime::Error refusal() {
    return {
        runtime::ErrorKind::kInternal,
        fmt::format("libzip cannot make an archive: {}",
                    archive_ != nullptr ? zip_strerror(archive_) : zip_error_strerror(&error_))};
  }

  zip_error_t error_;
  zip_source_t* source_ = nullptr;
  zip_t* archive_ = nullptr;
  std::deque<std::string> contents_;
  bool good_ = true;
};

}  // namespace

Result<std::string> numpy_archive(const TrainedModel& trained) {
  Archive archive;
  const std::array networks{&trained.gan.generator, &trained.gan.discriminator};
  const std::array states{&trained.state.generator, &trained.state.discriminator};
  const bool has_one = trained.gan.task != model::Task::kGan;
  for (std::size_t i = has_one ? kDiscriminator : 0; i < networks.size(); ++i) {
    const char* const name = has_one ? "network" : kNetworkNames[i];
    const NetworkParameters parameters(*networks[i], *states[i]);
    for (const NamedParameter& each : parameters.all()) {
      const auto* values = reinterpret_cast<const char*>(each.values);
      archive.add(fmt::format("{}/{}.npy", name, each.tensor->name),
                  npy("<f4", each.tensor->shape,
                      {values, static_cast<std::size_t>(each.tensor->size) * sizeof(float)}));
    }
  }
  for (const auto& [name, value] : trained.facts) {
    // A byte string of fixed length; NumPy has none of length 0.
    const std::string text = value.empty() ? std::string(1, '\0') : value;
    archive.add(fmt::format("facts/{}.npy", name), npy(fmt::format("|S{}", text.size()), {}, text));
  }
  return archive.bytes();
}

}  // namespace troupe::pipeline

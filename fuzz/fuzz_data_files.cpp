// Data files of IDX and TFRecord, binning files of CaloChallenge, kept events, and answers of
// servers that list files. The first byte of an input says what the rest is. HDF5 files are the
// library's to interpret, and are not among them.

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "fuzz/memory_meter.h"
#include "pipeline/data/calo_binning.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/dataset_info.h"
#include "pipeline/data/packed_events.h"
#include "pipeline/data/remote_request.h"
#include "runtime/base/tf_record.h"

namespace {

using namespace troupe;

// Threads, blocks of 1 MiB and their packed events; and what 4 KiB of gzip can unpack to.
constexpr std::size_t kConstantBytes = std::size_t{24} << 20;
// Larger boxes take longer than they teach.
constexpr std::size_t kMostCells = 100'000;

class Files {
 public:
  Files() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fuzz-data-XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  ~Files() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string write(const std::string& name, std::string_view content) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  std::string folder_;
};

// A file that opens can be read; one that does not says why.
void use_data(const std::string& path, pipeline::DataSchema schema) {
  pipeline::DatasetOptions options;
  options.paths = {path};
  options.schema = schema;
  options.preprocessing.emplace();
  options.on_bad_event = pipeline::BadEventPolicy::kSkip;
  options.cache = pipeline::CacheMode::kNone;
  auto dataset = pipeline::Dataset::open(options);
  runtime::ThreadTeam team(1);
  pipeline::DescribeOptions named;
  named.schema = schema;
  const auto info = pipeline::describe_dataset({path}, named, team);
  if (!dataset.ok()) {
    CHECK(dataset.error().kind == runtime::ErrorKind::kData, dataset.error().message);
    return;
  }
  CHECK(info.ok() && info->events == dataset->report().rows &&
        info->bad_events == dataset->report().bad);
  std::vector<std::uint64_t> ids(std::min<std::uint64_t>(dataset->size(), 100));
  std::iota(ids.begin(), ids.end(), 0u);
  pipeline::Batch batch;
  CHECK(dataset->read(ids, batch).ok());
}

// The first two bytes say how many events of how many cells they may be.
void use_packed(const std::string& input) {
  if (input.size() < 2) return;
  const std::size_t events = static_cast<unsigned char>(input[0]) % 8;
  std::vector<float> cells(static_cast<unsigned char>(input[1]) + 1u, 7.0f);
  const auto bytes = std::as_bytes(std::span(input)).subspan(2);
  const auto packed =
      pipeline::PackedEvents::of(runtime::Buffer::copy_of(bytes), events, cells.size());
  for (std::size_t i = 0; packed && i < events; ++i) packed->unpack(i, cells);
}

void use_binning(const std::string& path) {
  const auto found = pipeline::read_binnings(path);
  if (!found.ok()) return;
  for (const pipeline::CaloBinning& binning : *found) {
    if (binning.box().size() > kMostCells) continue;
    std::vector<float> row(binning.voxels()), back(binning.voxels());
    std::iota(row.begin(), row.end(), 1.0f);
    std::vector<float> box(binning.box().size());
    binning.to_box(row, box);
    binning.from_box(box, back);
    CHECK(row == back);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Files kFiles;
  static const std::string kLabels{"\0\0\x08\x01\0\0\0\x03\1\2\3", 11};
  static const std::string kImages{"\0\0\x08\x03\0\0\0\x03\0\0\0\1\0\0\0\1\1\2\3", 19};
  if (size == 0) return 0;
  const std::string input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const fuzz::MemoryMeter meter;
  switch (data[0] % 8) {
    case 0:
      kFiles.write("labels", kLabels);
      use_data(kFiles.write("images", input), pipeline::DataSchema::kIdx);
      break;
    case 1:
      kFiles.write("labels", input);
      use_data(kFiles.write("images", kImages), pipeline::DataSchema::kIdx);
      break;
    case 2:
      use_data(kFiles.write("a.tfrecord", input), pipeline::DataSchema::kTfRecord);
      break;
    case 3:  // a message in records with right checksums
      use_data(kFiles.write("a.tfrecord", runtime::tf_record(input) + runtime::tf_record(input)),
               pipeline::DataSchema::kTfRecord);
      break;
    case 5:
      use_packed(input);
      break;
    case 6:
      if (const auto page = pipeline::read_bucket_page(input)) CHECK(page->keys.size() <= size);
      break;
    default:
      use_binning(kFiles.write("a.xml", input));
  }
  meter.check(size, kConstantBytes);
  return 0;
}

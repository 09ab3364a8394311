// Images of which an event has several, in parts of one file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <utility>

#include "pipeline/data/dataset.h"
#include "pipeline/data/dataset_index.h"
#include "pipeline/data/dataset_info.h"
#include "pipeline/data/example_message.h"
#include "runtime/base/tf_record.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/format_fixture.h"
#include "tests/support/fails_with.h"

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;
using testing::HasSubstr;

constexpr std::size_t kEvents = 23;  // no multiple of any chunk

// One part of a file: images of 3 x 4 x 5, or of fewer numbers.
struct Part {
  std::string name;
  std::vector<hsize_t> extents;
  StorageLayout layout;

  std::size_t values() const {
    return std::accumulate(extents.begin(), extents.end(), std::size_t{1}, std::multiplies{});
  }
  // The numbers of all events, unlike those of other parts.
  std::vector<float> cells(std::size_t events = kEvents) const {
    std::vector<float> all(events * values());
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<float>((i * 7 + values()) % 127);
    }
    return all;
  }
  void write(Hdf5Scribe& file, std::size_t events = kEvents) const {
    std::vector<hsize_t> shape{events};
    shape.insert(shape.end(), extents.begin(), extents.end());
    file.add(name, shape, cells(events), layout);
  }
};

std::vector<std::string> names_of(const std::vector<Part>& parts) {
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.name);
  return names;
}

// The numbers of the parts, one part behind the other in each event.
std::vector<float> joined(const std::vector<Part>& parts) {
  std::vector<float> all;
  for (std::size_t event = 0; event < kEvents; ++event) {
    for (const Part& part : parts) {
      const std::vector<float> cells = part.cells();
      const auto first = cells.begin() + static_cast<std::ptrdiff_t>(event * part.values());
      all.insert(all.end(), first, first + static_cast<std::ptrdiff_t>(part.values()));
    }
  }
  return all;
}

void write_target(Hdf5Scribe& file, std::size_t events = kEvents) {
  std::vector<float> target;
  for (std::size_t i = 0; i < events; ++i) {
    target.insert(target.end(), {11.0f, 10.0f + static_cast<float>(i)});
  }
  file.add("target", {events, 2}, target);
}

class JoinedImages : public testing::Test {
 protected:
  void write(const std::vector<Part>& parts) const {
    Hdf5Scribe file(path_);
    for (const Part& part : parts) part.write(file);
    write_target(file);
  }
  static DatasetOptions options(const std::string& path, const std::vector<std::string>& names) {
    DatasetOptions options;
    options.paths = {path};
    options.names = default_names(DataSchema::kLcdFixed);
    options.names->images = names;
    return options;
  }
  static std::vector<float> images_of(Dataset& dataset) {
    std::vector<std::uint64_t> ids(dataset.size());
    std::iota(ids.begin(), ids.end(), 0u);
    Batch batch;
    const auto read = dataset.read(ids, batch);
    EXPECT_TRUE(read.ok()) << read.error().message;
    const auto images = batch.images.as<float>();
    return {images.begin(), images.end()};
  }
  // Why a file with these parts and a target is refused.
  runtime::Result<void> refusal(const std::vector<std::string>& names) const {
    const auto dataset = Dataset::open(options(path_, names));
    if (dataset.ok()) return {};
    return dataset.error();
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "a.h5";
};

TEST_F(JoinedImages, RowsAreThoseOfThePartsWhateverTheirLayoutsCacheAndThreads) {
  const Part ecal{"ECAL", {3, 4, 5}, {}}, hcal{"deep/HCAL", {2, 3, 2}, {}}, tail{"T", {4}, {}};
  const StorageLayout whole{}, small{.chunk = {2, 3, 4, 5}, .gzip = 2},
      pieces{.chunk = {5, 2, 2, 3}, .shuffle = true, .gzip = 1};
  const StorageLayout of_hcal[] = {
      {},
      {.chunk = {7, 2, 3, 2}, .gzip = 2},
      {.chunk = {4, 1, 2, 2}, .shuffle = true, .gzip = 1, .type = StoredType::kFloat64},
      {.chunk = {3, 2, 3, 2}, .fletcher = true},
      {.chunk = {23, 2, 3, 2}, .type = StoredType::kByte}};
  for (const StorageLayout& large : {whole, small, pieces}) {
    for (const StorageLayout& layout : of_hcal) {
      std::vector<Part> parts{ecal, hcal, tail};
      parts[0].layout = large;
      parts[1].layout = layout;
      write(parts);
      const std::vector<float> want = joined(parts);
      for (const auto& [cache, threads] :
           {std::pair(CacheMode::kMemory, 3), std::pair(CacheMode::kDisk, 1),
            std::pair(CacheMode::kDisk, 2), std::pair(CacheMode::kNone, 3)}) {
        DatasetOptions asked = options(path_, names_of(parts));
        asked.cache = cache;
        asked.cache_folder = folder_ / "cache";
        asked.threads = threads;
        asked.window_bytes = 1;
        auto dataset = Dataset::open(asked);
        ASSERT_TRUE(dataset.ok()) << dataset.error().message;
        EXPECT_EQ(dataset->shape(), (ImageShape{{76, 1, 1}}));
        EXPECT_EQ(images_of(*dataset), want) << text(cache);
      }
    }
  }
}

// A block holds about as many numbers as the largest one of a part, in whole blocks of the part
// with the largest rows.
TEST_F(JoinedImages, BlocksFollowThePartWithTheLargestRows) {
  const auto block_rows = [&](hsize_t of_ecal, hsize_t of_hcal) {
    const std::vector<Part> parts{{"HCAL", {12}, {.chunk = {of_hcal, 12}}},
                                  {"ECAL", {3, 4, 5}, {.chunk = {of_ecal, 3, 4, 5}}}};
    write(parts);
    const FileLayout layout{DataSchema::kLcdFixed, *options(path_, names_of(parts)).names, "", {}};
    const auto file = DatasetFile::open(path_, layout, {});
    CHECK(file.ok(), file.ok() ? "" : file.error().message);
    return file->images().block_rows();
  };
  EXPECT_EQ(block_rows(4, 4), 4u);
  EXPECT_EQ(block_rows(4, 2), 4u);
  EXPECT_EQ(block_rows(4, 20), 4u);  // 240 numbers in each
  EXPECT_EQ(block_rows(1, 20), 4u);  // 12 x 20 numbers are 3 rows and a part of one
  EXPECT_EQ(block_rows(20, 4), 20u);
}

// So that data stored as one image, and in parts, are the same data.
TEST_F(JoinedImages, AreTheDataThatOnePartWithTheirRowsWouldBe) {
  const std::vector<Part> parts{{"ECAL", {3, 4, 5}, {.chunk = {4, 3, 4, 5}, .gzip = 1}},
                                {"HCAL", {2, 3, 2}, {}}};
  write(parts);
  const std::string one = folder_ / "one.h5";
  {
    Hdf5Scribe file(one);
    file.add("ECAL", {kEvents, 72}, joined(parts));
    write_target(file);
  }
  const auto several = Dataset::open(options(path_, names_of(parts)));
  ASSERT_TRUE(several.ok()) << several.error().message;
  EXPECT_EQ(several->fingerprint(), Dataset::open(options(one, {"ECAL"}))->fingerprint());
  DatasetOptions unfolded = options(path_, names_of(parts));
  unfolded.expected_shape = {{3, 4, 6}};
  EXPECT_EQ(Dataset::open(unfolded)->shape(), (ImageShape{{3, 4, 6}}));
  unfolded.expected_shape = {{3, 4, 5}};
  EXPECT_THAT(Dataset::open(unfolded),
              FailsWith(ErrorKind::kData,
                        path_ + ": dataset ECAL and HCAL: (23, 3, 4, 5) float32 and (23, 2, 3, 2) "
                                "float32; expected images of 3 x 4 x 5"));
}

TEST_F(JoinedImages, PartsThatCannotBeJoinedAreRefused) {
  {
    Hdf5Scribe file(path_);
    Part{"ECAL", {3, 4, 5}, {}}.write(file);
    Part{"HCAL", {2, 3, 2}, {}}.write(file, kEvents - 1);
    file.add_text("words", kEvents);
    write_target(file);
  }
  EXPECT_THAT(refusal({"ECAL", "HCAL"}),
              FailsWith(ErrorKind::kData,
                        path_ +
                            ": dataset HCAL: (22, 2, 3, 2) float32; expected 23 rows, as many "
                            "as " +
                            path_ + ": dataset ECAL has: (23, 3, 4, 5) float32"));
  EXPECT_THAT(refusal({"ECAL", "MCAL"}),
              FailsWith(ErrorKind::kData, path_ + ": no dataset MCAL; the file has ECAL, HCAL"));
  EXPECT_THAT(refusal({"ECAL", "words"}),
              FailsWith(ErrorKind::kData, path_ + ": dataset words: string; expected numbers"));
  EXPECT_THAT(refusal({"ECAL", ""}),
              FailsWith(ErrorKind::kData, "needs the names of the datasets"));
}

TEST_F(JoinedImages, BadCellNamesTheParts) {
  std::vector<float> cells(kEvents * 12, 1.0f);
  cells[12 * 5 + 3] = -1;
  {
    Hdf5Scribe file(path_);
    Part{"ECAL", {3, 4, 5}, {}}.write(file);
    file.add("HCAL", {kEvents, 12}, cells);
    write_target(file);
  }
  EXPECT_THAT(refusal({"ECAL", "HCAL"}),
              FailsWith(ErrorKind::kData,
                        path_ + ": dataset ECAL and HCAL, event 5: cell (63, 0, 0) is -1"));
}

TEST_F(JoinedImages, ChangeWithEachFileThatLinksLeadTo) {
  const auto write_hcal = [&](float value) {
    Hdf5Scribe file(folder_ / "hcal.h5");
    file.add("HCAL", {kEvents, 2}, std::vector<float>(kEvents * 2, value));
  };
  write_hcal(1);
  {
    Hdf5Scribe file(path_);
    Part{"ECAL", {3, 4, 5}, {}}.write(file);
    file.add_link("HCAL", folder_ / "hcal.h5");
    write_target(file);
  }
  DatasetOptions asked = options(path_, {"ECAL", "HCAL"});
  asked.index_folder = folder_ / "index";
  asked.cache = CacheMode::kDisk;
  asked.cache_folder = folder_ / "cache";
  const auto last_cell = [&] {
    auto dataset = Dataset::open(asked);
    CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
    return images_of(*dataset).back();
  };
  EXPECT_EQ(last_cell(), 1.0f);
  DatasetOptions uncached = asked;
  uncached.cache = CacheMode::kNone;
  auto before = Dataset::open(uncached);
  ASSERT_TRUE(before.ok()) << before.error().message;
  write_hcal(2);
  EXPECT_EQ(last_cell(), 2.0f);
  Batch batch;
  const std::vector<std::uint64_t> ids{0};
  EXPECT_THAT(before->read(ids, batch),
              FailsWith(ErrorKind::kData, "changed since the run opened it"));
}

// An index of one image has the name that it had before there were several.
TEST_F(JoinedImages, AreKeptApartByTheirNames) {
  const auto identity = [&](std::vector<std::string> names) {
    const IndexKey key{DataSchema::kLcdFixed, *options("", names).names, {}, "", {}};
    return index_identity(key, "/data/a.h5", {1, 2});
  };
  const std::vector<std::vector<std::string>> lists{
      {"ECAL"}, {"HCAL"}, {"ECAL", "HCAL"}, {"HCAL", "ECAL"}, {"ECALHCAL"}, {"ECAL", "HC", "AL"}};
  for (const auto& one : lists) {
    for (const auto& other : lists) EXPECT_EQ(identity(one) == identity(other), one == other);
  }
  EXPECT_EQ(identity({"ECAL"}).find(std::string("\4\0\0\0\0\0\0\0ECAL", 12)), 25u);
}

TEST_F(JoinedImages, AreOfBytesIfAllPartsAre) {
  const std::vector<Part> parts{{"a", {6}, {.type = StoredType::kByte}},
                                {"b", {4}, {.type = StoredType::kByte}},
                                {"c", {4}, {}}};
  write(parts);
  const auto of_bytes = [&](const std::vector<std::string>& names) {
    const FileLayout layout{DataSchema::kLcdFixed, *options(path_, names).names, "", {}};
    return DatasetFile::open(path_, layout, {})->images().of_bytes();
  };
  EXPECT_TRUE(of_bytes({"a", "b"}));
  EXPECT_FALSE(of_bytes({"a", "c"}));
  EXPECT_FALSE(of_bytes({"c", "a"}));
}

TEST_F(JoinedImages, FeaturesOfRecordsAreJoinedAndIdxHasOneImage) {
  const SmallData data(11);
  std::string all;
  for (std::size_t event = 0; event < data.events; ++event) {
    const float hcal[] = {static_cast<float>(event), 1, 2};
    const std::span<const float> cells(data.cells);
    all += runtime::tf_record(ExampleWriter()
                                  .floats("ECAL", cells.subspan(event * 60, 60))
                                  .floats("HCAL", hcal)
                                  .floats("energy", std::span(&data.target[2 * event + 1], 1))
                                  .message());
  }
  const std::string records = folder_ / "a.tfrecord";
  for (const std::string& content : {all, gzip_text(all)}) {
    write_text(records, content);
    DatasetOptions asked = options(records, {"HCAL", "ECAL"});
    asked.schema = DataSchema::kTfRecord;
    asked.names->energy = "energy";
    asked.names->energy_column = 0;
    auto dataset = Dataset::open(asked);
    ASSERT_TRUE(dataset.ok()) << dataset.error().message;
    const std::vector<float> images = images_of(*dataset);
    ASSERT_EQ(images.size(), 11u * 63);
    EXPECT_EQ(images[63 * 7], 7.0f);
    EXPECT_EQ(images[63 * 7 + 3], data.cells[60 * 7]);
    EXPECT_EQ(images[63 * 7 + 62], data.cells[60 * 7 + 59]);
    // A packed file is told once.
    EXPECT_EQ(dataset->report().notes.size(), content == all ? 0u : 1u);
  }
  const std::string digits = SmallDigits{5}.write(folder_.path(), "train");
  DatasetOptions asked = options(digits, {"images", "labels"});
  asked.schema = DataSchema::kIdx;
  EXPECT_THAT(Dataset::open(asked),
              FailsWith(ErrorKind::kData, digits + ": an IDX file has one image of each event; 2 "
                                                   "are named: images, labels"));
}

TEST_F(JoinedImages, AreDescribedBehindTheirParts) {
  write({{"ECAL", {3, 4, 5}, {.chunk = {4, 3, 4, 5}}}, {"HCAL", {2, 3, 2}, {}}});
  runtime::ThreadTeam team(2);
  DescribeOptions asked;
  asked.schema = DataSchema::kLcdFixed;
  asked.names = options(path_, {"ECAL", "HCAL"}).names;
  const auto info = describe_dataset({path_}, asked, team);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->events, kEvents);
  EXPECT_EQ(info->shape, (ImageShape{{72, 1, 1}}));
  ASSERT_EQ(info->files.at(0).datasets.size(), 3u);
  EXPECT_EQ(info->files[0].datasets[1].name, "HCAL");
  ASSERT_EQ(info->notes.size(), 1u);
  EXPECT_THAT(info->notes[0], HasSubstr("dataset HCAL is decoded by the HDF5 library"));
}

}  // namespace
}  // namespace troupe::pipeline

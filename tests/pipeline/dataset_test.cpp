#include "pipeline/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <set>

#include "pipeline/data/preprocessing.h"
#include "pipeline/data/sampler.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::pipeline {
namespace {

constexpr std::size_t kCells = SmallData::kCells;

Dataset open_dataset(const DatasetOptions& options) {
  auto dataset = Dataset::open(options);
  CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
  return std::move(dataset).value();
}

DatasetOptions options_for(const std::vector<std::string>& paths) {
  DatasetOptions options;
  options.paths = paths;
  return options;
}

Batch read_events(Dataset& dataset, const std::vector<std::uint64_t>& ids) {
  Batch batch;
  const auto result = dataset.read(ids, batch);
  CHECK(result.ok(), result.ok() ? "" : result.error().message);
  return batch;
}

std::vector<std::uint64_t> all_ids(const Dataset& dataset) {
  std::vector<std::uint64_t> ids(dataset.size());
  std::iota(ids.begin(), ids.end(), 0u);
  return ids;
}

std::vector<float> images_of(const Batch& batch) {
  const auto images = batch.images.as<float>();
  return {images.begin(), images.end()};
}

// Files of 20, 7 and 13 events in three layouts, as if they came from different writers.
class ThreeFiles : public testing::Test {
 protected:
  ThreeFiles() {
    const StorageLayout layouts[] = {{.chunk = {4, 3, 4, 5}, .shuffle = true, .gzip = 2},
                                     {},
                                     {.chunk = {5, 2, 2, 3}, .gzip = 2}};
    for (std::size_t i = 0; i < 3; ++i) {
      SmallData data(sizes_[i], i + 1);
      data.images = layouts[i];
      data.write(folder_ / "part_" + std::to_string(i) + ".h5");
      cells_.insert(cells_.end(), data.cells.begin(), data.cells.end());
      for (std::size_t row = 0; row < sizes_[i]; ++row) {
        energies_.push_back(data.target[2 * row + 1] / 100);
      }
    }
    options_ = options_for({folder_ / "part_*.h5"});
  }

  TemporaryFolder folder_;
  const std::size_t sizes_[3] = {20, 7, 13};
  std::vector<float> cells_;
  std::vector<float> energies_;
  DatasetOptions options_;
};

TEST_F(ThreeFiles, AreOneDatasetInOrderOfNamesWhateverTheCacheAndThreads) {
  for (const CacheMode cache : {CacheMode::kMemory, CacheMode::kNone}) {
    for (const int threads : {1, 3}) {
      options_.cache = cache;
      options_.threads = threads;
      Dataset dataset = open_dataset(options_);
      ASSERT_EQ(dataset.size(), 40u);
      EXPECT_EQ(dataset.shape(), (ImageShape{{3, 4, 5}}));
      const Batch batch = read_events(dataset, all_ids(dataset));
      EXPECT_EQ(batch.events, 40u);
      EXPECT_EQ(images_of(batch), cells_);
      for (std::size_t i = 0; i < 40; ++i) {
        EXPECT_EQ(batch.energies()[i], energies_[i]);
        EXPECT_EQ(batch.angles()[i], static_cast<float>(std::numbers::pi / 2));
        double sum = 0;
        for (std::size_t c = 0; c < kCells; ++c) sum += static_cast<double>(cells_[i * kCells + c]);
        EXPECT_NEAR(batch.ecals()[i], sum, 1e-4);
        EXPECT_EQ(dataset.energy(i), batch.energies()[i]);
      }
    }
  }
}

TEST_F(ThreeFiles, OpeningTellsHowFarItIsAndCanBeEnded) {
  options_.threads = 3;
  OpeningProgress last;
  const auto keep = [&](const OpeningProgress& progress) -> runtime::Result<void> {
    EXPECT_GT(progress.rows, last.rows);
    EXPECT_GE(progress.bytes_in_memory, last.bytes_in_memory);
    last = progress;
    return {};
  };
  const auto opened = Dataset::open(options_, keep);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(last.rows, 40u);
  EXPECT_EQ(last.all_rows, 40u);
  EXPECT_EQ(last.bytes_in_memory, opened->report().bytes_in_memory);

  int told = 0;
  const auto refuse = [&](const OpeningProgress& progress) -> runtime::Result<void> {
    if (progress.rows < 24) return {};
    ++told;
    return runtime::Error{runtime::ErrorKind::kUsage, "enough"};
  };
  const auto ended = Dataset::open(options_, refuse);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().message, "enough");
  EXPECT_GE(told, 1);
}

// Only the part of the split is read again of a file whose index is kept.
TEST_F(ThreeFiles, OtherSplitIsNotReadTwice) {
  options_.index_folder = folder_ / "index";
  ASSERT_TRUE(Dataset::open(options_).ok());
  options_.split = DataSplit::kTest;  // the last tenth of each file, in its last chunk
  std::vector<std::uint64_t> rows;
  const auto keep = [&](const OpeningProgress& progress) -> runtime::Result<void> {
    rows.push_back(progress.rows);
    return {};
  };
  const auto opened = Dataset::open(options_, keep);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->size(), 3u);
  // Chunks of 4 and 5 rows; the file of 7 has none for testing.
  EXPECT_EQ(rows, (std::vector<std::uint64_t>{4, 20 + 3}));
}

TEST_F(ThreeFiles, EventsComeInTheOrderAskedForAndMayRepeat) {
  options_.cache = CacheMode::kNone;
  Dataset dataset = open_dataset(options_);
  const std::vector<std::uint64_t> ids{39, 0, 21, 0, 26};
  const Batch batch = read_events(dataset, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(batch.event_ids.as<std::uint64_t>()[i], ids[i]);
    for (std::size_t c = 0; c < kCells; ++c) {
      ASSERT_EQ(batch.images.as<float>()[i * kCells + c], cells_[ids[i] * kCells + c]);
    }
  }
}

TEST_F(ThreeFiles, SmallWindowReloadsBlocksAndStillGivesEveryEvent) {
  options_.cache = CacheMode::kNone;
  options_.window_bytes = 1;  // one block at a time
  Dataset dataset = open_dataset(options_);
  EXPECT_EQ(dataset.window_blocks(), 1u);
  const std::vector<std::uint32_t>& blocks = dataset.blocks();
  EXPECT_EQ(std::accumulate(blocks.begin(), blocks.end(), 0u), 40u);
  const SamplerOptions sampling{.events = 40, .window_blocks = 1, .blocks = blocks};
  const EpochOrder order(sampling, 0);
  std::vector<bool> seen(40, false);
  for (std::uint64_t position = 0; position < 40; position += 8) {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t i = position; i < position + 8; ++i) ids.push_back(order.event(i));
    const Batch batch = read_events(dataset, ids);
    for (std::size_t i = 0; i < 8; ++i) {
      seen[ids[i]] = true;
      ASSERT_EQ(batch.images.as<float>()[i * kCells + 7], cells_[ids[i] * kCells + 7]);
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 40);
}

TEST_F(ThreeFiles, TrainAndTestShareEveryEvent) {
  options_.split = DataSplit::kTrain;
  Dataset train = open_dataset(options_);
  options_.split = DataSplit::kTest;
  Dataset test = open_dataset(options_);
  EXPECT_EQ(train.size(), 18u + 7u + 12u);
  EXPECT_EQ(test.size(), 2u + 1u);
  EXPECT_EQ(test.report().other_split, 37u);
  EXPECT_NE(train.fingerprint(), test.fingerprint());
  EXPECT_EQ(test.energy(0), energies_[18]);
  EXPECT_EQ(read_events(test, {2}).images.as<float>()[3], cells_[39 * kCells + 3]);
}

TEST_F(ThreeFiles, EachPartTestsOtherEventsAndTrainsOnTheRest) {
  const TemporaryFolder cache;
  for (const CacheMode mode : {CacheMode::kMemory, CacheMode::kDisk, CacheMode::kNone}) {
    options_.cache = mode;
    options_.cache_folder = cache.path();
    options_.test_one_in = 5;
    std::vector<float> tested;
    std::set<std::string> fingerprints;
    for (std::uint32_t part = 0; part < 5; ++part) {
      options_.test_part = part;
      options_.split = DataSplit::kTrain;
      Dataset train = open_dataset(options_);
      options_.split = DataSplit::kTest;
      Dataset test = open_dataset(options_);
      EXPECT_EQ(train.size() + test.size(), 40u);
      EXPECT_EQ(train.report().other_split, test.size());
      EXPECT_EQ(train.report().files, 3u);
      EXPECT_EQ(train.report().rows, 40u);
      fingerprints.insert(train.fingerprint().text());
      std::vector<float> images = images_of(read_events(train, all_ids(train)));
      const std::vector<float> others = images_of(read_events(test, all_ids(test)));
      tested.insert(tested.end(), others.begin(), others.end());
      // All events of the files, once.
      images.insert(images.end(), others.begin(), others.end());
      std::vector<float> all = cells_;
      std::ranges::sort(images);
      std::ranges::sort(all);
      EXPECT_EQ(images, all) << part;
    }
    EXPECT_EQ(fingerprints.size(), 5u);
    std::vector<float> all = cells_;
    std::ranges::sort(tested);
    std::ranges::sort(all);
    EXPECT_EQ(tested, all);
  }
}

TEST_F(ThreeFiles, FingerprintDependsOnContentAndRulesOnly) {
  const auto before = open_dataset(options_).fingerprint();
  options_.threads = 2;
  EXPECT_EQ(open_dataset(options_).fingerprint(), before);

  // Other chunks and compression, the same values.
  SmallData data(20, 1);
  data.images = {.chunk = {7, 3, 4, 5}};
  data.write(folder_ / "part_0.h5");
  EXPECT_EQ(open_dataset(options_).fingerprint(), before);

  DatasetOptions scaled = options_;
  scaled.preprocessing = default_preprocessing(DataSchema::kLcdFixed);
  scaled.preprocessing->scale = 100;
  EXPECT_NE(open_dataset(scaled).fingerprint(), before);

  data.cells[kCells * 3] += 0.25f;
  data.write(folder_ / "part_0.h5");
  EXPECT_NE(open_dataset(options_).fingerprint(), before);
}

// The sampler's order by blocks is one of chunks and windows.
TEST_F(ThreeFiles, FingerprintWithoutAMemoryCacheDependsOnBlocksAndWindowsToo) {
  options_.cache = CacheMode::kNone;
  EXPECT_EQ(open_dataset(options_).window_blocks(), 0u);  // one window has all
  options_.window_bytes = 4000;
  const auto before = open_dataset(options_).fingerprint();
  options_.threads = 2;
  EXPECT_EQ(open_dataset(options_).fingerprint(), before);

  DatasetOptions small = options_;
  small.window_bytes = 1;
  EXPECT_NE(open_dataset(small).fingerprint(), before);

  // The same values in other chunks.
  SmallData data(20, 1);
  data.images = {.chunk = {7, 3, 4, 5}};
  data.write(folder_ / "part_0.h5");
  EXPECT_NE(open_dataset(options_).fingerprint(), before);
}

TEST(Dataset, FingerprintTellsWhichRowsOfTheSameFilesAreTaken) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (std::uint64_t i = 0; i < 10; ++i) {
    paths.push_back(folder / "ele_" + std::to_string(i) + ".h5");
    SmallData(20, i + 1).write(paths.back());
  }
  DatasetOptions ten = options_for(paths);
  ten.split = DataSplit::kTrain;
  DatasetOptions nine = ten;
  nine.paths.pop_back();
  const Dataset without = open_dataset(nine);  // 18 events of each file
  const Dataset with = open_dataset(ten);      // all events of the same nine files
  EXPECT_EQ(without.size(), 162u);
  EXPECT_EQ(with.size(), 180u);
  EXPECT_NE(without.fingerprint(), with.fingerprint());
}

// An angle of pi/2 as float is what events without an angle have, though another number as double.
TEST(Dataset, FingerprintTakesConditionsAsTheFloatsThatTrainingSees) {
  const TemporaryFolder folder;
  const SmallData data(4);
  {
    Hdf5Scribe file(folder / "a.h5");
    file.add("ECAL", {4, 3, 4, 5}, data.cells);
    file.add("energy", {4}, {10, 20, 30, 40});
    file.add("theta", {4}, std::vector<float>(4, std::numbers::pi_v<float> / 2));
  }
  DatasetOptions options = options_for({folder / "a.h5"});
  options.schema = DataSchema::kCustom;
  options.names = DatasetNames{};
  options.names->energy = "energy";
  const auto without_angle = open_dataset(options).fingerprint();
  options.names->angle = "theta";
  EXPECT_EQ(open_dataset(options).fingerprint(), without_angle);
}

TEST_F(ThreeFiles, IndexIsFoundAgainAndForgottenWhenAFileChanges) {
  for (const CacheMode cache : {CacheMode::kMemory, CacheMode::kNone}) {
    options_.cache = cache;
    options_.index_folder.clear();
    const auto scanned = open_dataset(options_).fingerprint();
    options_.index_folder = folder_ / "index";
    for (int opening = 0; opening < 2; ++opening) {
      Dataset dataset = open_dataset(options_);
      EXPECT_EQ(dataset.fingerprint(), scanned);
      EXPECT_EQ(images_of(read_events(dataset, all_ids(dataset))), cells_);
    }
    EXPECT_TRUE(std::filesystem::exists(folder_ / "index"));
  }
  const auto scanned = open_dataset(options_).fingerprint();
  SmallData data(20, 99);
  data.write(folder_ / "part_0.h5");
  EXPECT_NE(open_dataset(options_).fingerprint(), scanned);
}

TEST_F(ThreeFiles, DamagedIndexIsMadeAnew) {
  options_.index_folder = folder_ / "index";
  const auto scanned = open_dataset(options_).fingerprint();
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "index")) {
    std::vector<std::byte> bytes = file_bytes(entry.path());
    bytes[bytes.size() / 2] ^= std::byte{1};
    write_file(entry.path(), bytes);
  }
  EXPECT_EQ(open_dataset(options_).fingerprint(), scanned);
}

TEST_F(ThreeFiles, UncommonLayoutIsReported) {
  const Dataset dataset = open_dataset(options_);
  ASSERT_EQ(dataset.report().notes.size(), 1u);
  EXPECT_NE(
      dataset.report().notes[0].find("part_1.h5: dataset ECAL is decoded by the HDF5 library"),
      std::string::npos)
      << dataset.report().notes[0];
}

// Also one that is open already, and of which other chunks have been read.
TEST_F(ThreeFiles, OpenFileThatIsOverwrittenIsAnErrorNotOtherData) {
  options_.cache = CacheMode::kNone;
  Dataset dataset = open_dataset(options_);
  Batch batch;
  ASSERT_TRUE(dataset.read(std::vector<std::uint64_t>{0}, batch).ok());
  std::vector<std::byte> bytes = file_bytes(folder_ / "part_0.h5");
  bytes.back() ^= std::byte{1};
  write_file(folder_ / "part_0.h5", bytes);
  const auto result = dataset.read(std::vector<std::uint64_t>{19}, batch);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, testing::HasSubstr("changed since the run opened it"));
}

TEST_F(ThreeFiles, FileThatChangesWhileInUseIsAnErrorNotOtherData) {
  options_.cache = CacheMode::kNone;
  Dataset dataset = open_dataset(options_);
  SmallData(21, 5).write(folder_ / "part_0.h5");
  Batch batch;
  const std::vector<std::uint64_t> ids{0};
  const auto result = dataset.read(ids, batch);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, testing::HasSubstr("changed since the run opened it"));
}

// A file that holds links only, as one that joins the datasets of several programs.
class LinkedFile : public testing::Test {
 protected:
  LinkedFile() {
    data_.images = {.chunk = {4, 3, 4, 5}};
    data_.write(folder_ / "real.h5");
    Hdf5Scribe file(folder_ / "links.h5");
    file.add_link("ECAL", folder_ / "real.h5");
    file.add_link("target", folder_ / "real.h5");
  }

  const TemporaryFolder folder_;
  SmallData data_{200};
  DatasetOptions options_ = options_for({folder_ / "links.h5"});
};

TEST_F(LinkedFile, IsReadLikeTheFileItLeadsTo) {
  Dataset linked = open_dataset(options_);
  EXPECT_EQ(linked.fingerprint(), open_dataset(options_for({folder_ / "real.h5"})).fingerprint());
  EXPECT_EQ(images_of(read_events(linked, all_ids(linked))), data_.cells);
}

TEST_F(LinkedFile, ChangesWithTheFileItLeadsTo) {
  options_.index_folder = folder_ / "index";
  options_.cache = CacheMode::kNone;
  Dataset before = open_dataset(options_);
  data_.target[1] = 77.0f;
  data_.write(folder_ / "real.h5");
  EXPECT_EQ(open_dataset(options_).energy(0), 0.77f);
  Batch batch;
  const std::vector<std::uint64_t> ids{0};
  const auto result = before.read(ids, batch);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, testing::HasSubstr("changed since the run opened it"));
}

TEST(Dataset, LcdAngleIsPreprocessedAsPublished) {
  const TemporaryFolder folder;
  SmallData data(6);
  for (float& cell : data.cells) cell *= 2;
  std::fill_n(data.cells.begin() + 2 * kCells, kCells, 0.1f);  // event 2: ecal 6
  {
    Hdf5Scribe file(folder / "a.h5");
    file.add("ECAL", {6, 3, 4, 5}, data.cells);
    file.add("energy", {6}, {50, 60, 70, 80, 90, 100});
    file.add("theta", {6}, {1.1f, 1.2f, 1.3f, 1.4f, 1.5f, 1.6f});
    file.attribute("scale", 50);
  }
  DatasetOptions options = options_for({folder / "a.h5"});
  options.schema = DataSchema::kLcdAngle;
  Dataset dataset = open_dataset(options);
  ASSERT_EQ(dataset.size(), 5u);
  EXPECT_EQ(dataset.report().cut, 1u);
  const Batch batch = read_events(dataset, {2});  // the third that is left: row 3
  EXPECT_EQ(batch.energies()[0], 0.8f);
  EXPECT_EQ(batch.angles()[0], 1.4f);
  double ecal = 0;
  for (std::size_t c = 0; c < kCells; ++c) {
    const float cell = data.cells[3 * kCells + c];
    ecal += static_cast<double>(cell);
    EXPECT_NEAR(batch.images.as<float>()[c], std::pow(cell, 0.85), 1e-6);
  }
  EXPECT_NEAR(batch.ecals()[0], ecal, 1e-4);
}

TEST(Dataset, MeasuredAngleStandsInForTheta) {
  const TemporaryFolder folder;
  const SmallData data(3);
  {
    Hdf5Scribe file(folder / "a.h5");
    file.add("ECAL", {3, 3, 4, 5}, data.cells);
    file.add("energy", {3, 1}, {50, 60, 70});
    file.add("mtheta", {3}, {1.1f, 1.2f, 1.3f}, {.type = StoredType::kFloat64});
  }
  DatasetOptions options = options_for({folder / "a.h5"});
  options.schema = DataSchema::kLcdAngle;
  Dataset dataset = open_dataset(options);
  EXPECT_EQ(read_events(dataset, all_ids(dataset)).angles()[1], 1.2f);
}

TEST(Dataset, CustomNamesReachIntoGroupsAndOtherUnits) {
  const TemporaryFolder folder;
  const SmallData data(4);
  {
    Hdf5Scribe file(folder / "a.h5");
    file.add("X", {4, 3, 4, 5, 1}, data.cells, {.chunk = {2, 3, 4, 5, 1}, .gzip = 1});
    file.add("y/b", {4, 1}, {0.5f, 1.0f, 1.5f, 2.0f});
  }
  DatasetOptions options = options_for({folder / "a.h5"});
  options.schema = DataSchema::kCustom;
  DatasetNames names;
  names.images = {"X"};
  names.energy = "y/b";
  names.energy_unit_gev = 100;
  options.names = names;
  Dataset dataset = open_dataset(options);
  EXPECT_EQ(dataset.energy(3), 2.0f);
  EXPECT_EQ(images_of(read_events(dataset, all_ids(dataset))), data.cells);
}

}  // namespace
}  // namespace troupe::pipeline

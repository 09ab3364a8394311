// Packed events that the processes of a machine share by files of a cache folder.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "pipeline/data/dataset.h"
#include "pipeline/data/packed_file.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/support/fails_with.h"
#include "tests/support/process.h"

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;
using runtime::Result;

// All that training sees of a dataset.
struct Content {
  std::vector<float> images, conditions;
  runtime::Hash128 fingerprint;

  bool operator==(const Content&) const = default;
};

Result<Content> content_of(Dataset& dataset) {
  std::vector<std::uint64_t> ids(dataset.size());
  std::iota(ids.rbegin(), ids.rend(), 0u);
  Batch batch;
  RETURN_IF_ERROR(dataset.read(ids, batch));
  const auto images = batch.images.as<float>();
  const auto conditions = batch.conditions.as<float>();
  return Content{{images.begin(), images.end()},
                 {conditions.begin(), conditions.end()},
                 dataset.fingerprint()};
}

class DiskCache : public testing::Test {
 protected:
  DiskCache() {
    const std::size_t sizes[] = {20, 7, 13};
    for (std::size_t i = 0; i < 3; ++i) {
      SmallData data(sizes[i], i + 1);
      if (i != 1) data.images = {.chunk = {4, 3, 4, 5}, .shuffle = true, .gzip = 2};
      data.write(folder_ / "part_" + std::to_string(i) + ".h5");
    }
    options_.paths = {folder_ / "part_*.h5"};
    options_.cache = CacheMode::kDisk;
    options_.cache_folder = folder_ / "cache";
  }

  Result<Content> content() const {
    ASSIGN_OR_RETURN(Dataset dataset, Dataset::open(options_));
    return content_of(dataset);
  }
  // The kept files and when they were written.
  std::map<std::string, std::filesystem::file_time_type> kept() const {
    std::map<std::string, std::filesystem::file_time_type> files;
    for (const auto& each : std::filesystem::directory_iterator(folder_ / "cache/packed")) {
      if (each.path().extension() == ".events") files[each.path()] = each.last_write_time();
    }
    return files;
  }

  TemporaryFolder folder_;
  DatasetOptions options_;
};

// So does no cache where one window covers all data.
TEST_F(DiskCache, GivesWhatMemoryGivesWithAnySplitIndexAndNumberOfThreads) {
  for (const DataSplit split : {DataSplit::kTrain, DataSplit::kTest, DataSplit::kAll}) {
    for (const std::uint64_t events : {0u, 2u, 22u}) {
      options_.split = split;
      options_.events = events;
      options_.cache = CacheMode::kMemory;
      const Content memory = content().value();
      for (const CacheMode cache : {CacheMode::kNone, CacheMode::kDisk, CacheMode::kDisk}) {
        for (const char* const index : {"", "index"}) {
          options_.cache = cache;
          options_.threads = *index == '\0' ? 1 : 3;
          options_.index_folder = *index == '\0' ? "" : folder_ / index;
          EXPECT_EQ(content().value(), memory) << text(split) << " " << text(cache) << index;
        }
      }
      options_.index_folder.clear();
    }
  }
  EXPECT_EQ(kept().size(), 3u);
  options_.split = DataSplit::kAll;
  options_.events = 0;
  const Dataset dataset = Dataset::open(options_).value();
  EXPECT_EQ(dataset.window_blocks(), 0u);
  EXPECT_EQ(dataset.report().bytes_in_memory, 0u);
  EXPECT_GT(dataset.report().bytes_on_disk, 40 * 60 * sizeof(float) / 2);
  // A file of which two ranges are taken is mapped once.
  options_.split = DataSplit::kTrain;
  options_.test_one_in = 5;
  options_.test_part = 2;
  EXPECT_EQ(Dataset::open(options_)->report().bytes_on_disk, dataset.report().bytes_on_disk);
}

TEST_F(DiskCache, IsWrittenByOneProcessAndMappedByTheOthers) {
  const auto open = [&] { return content().ok() ? 0 : 1; };
  ForkedProcess one(open), two(open), three(open);
  EXPECT_EQ(one.status(), 0);
  EXPECT_EQ(two.status(), 0);
  EXPECT_EQ(three.status(), 0);
  const auto before = kept();
  EXPECT_EQ(before.size(), 3u);
  ASSERT_TRUE(content().ok());
  EXPECT_EQ(kept(), before);
  // Nothing else is left behind but locks.
  for (const auto& each : std::filesystem::directory_iterator(folder_ / "cache/packed")) {
    EXPECT_TRUE(each.path().extension() == ".events" || each.path().extension() == ".lock");
  }
}

TEST_F(DiskCache, FileThatChangedIsPackedAnewInPlaceOfTheOldOne) {
  const Content before = content().value();
  SmallData(20, 77).write(folder_ / "part_0.h5");
  const Content after = content().value();
  EXPECT_NE(after.images, before.images);
  EXPECT_NE(after.fingerprint, before.fingerprint);
  EXPECT_EQ(kept().size(), 3u);
  options_.preprocessing = default_preprocessing(options_.schema);
  options_.preprocessing->power = 0.5;
  EXPECT_NE(content().value().images, after.images);
  EXPECT_EQ(kept().size(), 6u);
}

TEST_F(DiskCache, DamageIsRepairedOrToldAndNeverTrainedOn) {
  options_.paths = {folder_ / "part_0.h5"};
  const Content whole = content().value();
  const std::string path = kept().begin()->first;
  const std::vector<std::byte> good = file_bytes(path);
  int told = 0;
  for (std::size_t at = 0; at < good.size(); at += 13) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{0x41};
    write_file(path, bad);
    const auto read = content();
    if (read.ok()) {
      EXPECT_EQ(*read, whole) << at;
    } else {
      ++told;
      EXPECT_THAT(read, FailsWith(ErrorKind::kData, "are damaged; remove the file"));
    }
  }
  EXPECT_GT(told, 10);
  for (const std::size_t size : {std::size_t{0}, std::size_t{9}, good.size() / 2}) {
    write_file(path, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_EQ(content().value(), whole) << size;
  }
}

TEST_F(DiskCache, ItsBoundKeepsWhatIsInUse) {
  options_.paths = {folder_ / "part_0.h5"};
  auto used = Dataset::open(options_);
  ASSERT_TRUE(used.ok());
  const std::uint64_t bytes = used->report().bytes_on_disk;
  options_.paths = {folder_ / "part_2.h5"};
  ASSERT_TRUE(content().ok());
  options_.paths = {folder_ / "part_1.h5"};
  // Room for two: that which nobody uses goes.
  options_.cache_limit = 2 * bytes;
  ASSERT_TRUE(content().ok());
  EXPECT_EQ(kept().size(), 2u);
  options_.cache_limit = bytes;
  EXPECT_THAT(content(), FailsWith(ErrorKind::kData, "more than data.cache_limit"));
  EXPECT_TRUE(content_of(*used).ok());
}

TEST_F(DiskCache, FolderThatCannotBeWrittenIsAnError) {
  std::ofstream(folder_ / "file") << "no folder";
  options_.cache_folder = folder_ / "file";
  EXPECT_THAT(content(), FailsWith(ErrorKind::kData, folder_ / "file"));
  options_.cache_folder = "";
  EXPECT_THAT(content(), FailsWith(ErrorKind::kData, "needs a data.cache_folder"));
}

}  // namespace
}  // namespace troupe::pipeline

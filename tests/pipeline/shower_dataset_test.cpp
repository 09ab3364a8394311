#include "pipeline/data/shower_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numbers>
#include <numeric>

#include "pipeline/data/dataset.h"
#include "pipeline/data/hdf5_file.h"
#include "pipeline/data/shower_file.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/support/fails_with.h"
#include "tests/support/process_limits.h"

namespace troupe::pipeline {
namespace {

class ShowerDataset : public testing::Test {
 protected:
  ShowerDatasetOptions small(std::uint64_t events) const {
    ShowerDatasetOptions options;
    options.showers.detector = DetectorKind::kFixed12;
    options.showers.seed = 3;
    options.events = events;
    return options;
  }
  std::vector<std::string> write(const ShowerDatasetOptions& options, const std::string& name) {
    const auto paths = write_shower_dataset(options, folder_ / name, team_);
    CHECK(paths.ok(), paths.ok() ? "" : paths.error().message);
    return *paths;
  }
  // Every image, after preprocessing that changes nothing.
  std::vector<float> images(const std::vector<std::string>& paths, DataSchema schema) {
    DatasetOptions options;
    options.paths = paths;
    options.schema = schema;
    options.preprocessing = Preprocessing{};
    auto dataset = Dataset::open(options);
    CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
    std::vector<std::uint64_t> ids(dataset->size());
    std::iota(ids.begin(), ids.end(), 0u);
    Batch batch;
    CHECK(dataset->read(ids, batch).ok());
    const auto values = batch.images.as<float>();
    return {values.begin(), values.end()};
  }

  TemporaryFolder folder_;
  runtime::ThreadTeam team_{2};
};

TEST_F(ShowerDataset, LcdFixedHoldsTheGeneratedShowersInGev) {
  const auto options = small(30);
  const auto paths = write(options, "a.h5");
  EXPECT_EQ(paths, std::vector<std::string>{folder_ / "a.h5"});
  const auto generator = ShowerGenerator::create(options.showers);
  ASSERT_TRUE(generator.ok());
  const std::size_t cells = generator->detector().cells();
  std::vector<float> want(30 * cells);
  std::vector<Primary> primaries(30);
  generator->generate(0, primaries, want, team_);
  EXPECT_EQ(images(paths, DataSchema::kLcdFixed), want);

  const auto file = Hdf5File::open(paths[0]);
  ASSERT_TRUE(file.ok());
  const auto target = file->dataset("target");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->shape_text(), "(30, 2) float32");
  std::vector<float> rows(60);
  ASSERT_TRUE(target->read_rows(0, 30, rows.data()).ok());
  EXPECT_EQ(rows[2 * 7], 11.0f);
  EXPECT_EQ(rows[2 * 7 + 1], primaries[7].energy_gev);
}

TEST_F(ShowerDataset, AttributesSayHowItWasMade) {
  const auto paths = write(small(3), "a.h5");
  const auto file = Hdf5File::open(paths[0]);
  ASSERT_TRUE(file.ok());
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : file->attributes()) found[name] = value;
  EXPECT_EQ(found, (std::map<std::string, std::string>{
                       {"angle", "fixed"},
                       {"generator", "troupe showers 2 lcd-fixed-12"},
                       {"power", "1"},
                       {"scale", "1"},
                       {"seed", "3"},
                       {"threshold", "1e-06"},
                   }));
}

TEST_F(ShowerDataset, LcdAngleIsFiftyTimesGevWithBothAngles) {
  ShowerDatasetOptions options;
  options.showers.detector = DetectorKind::kAngle51;
  options.events = 5;
  const auto paths = write(options, "a.h5");
  const auto cells = images(paths, DataSchema::kLcdAngle);
  const auto file = Hdf5File::open(paths[0]);
  ASSERT_TRUE(file.ok());
  const auto walk = file->walk();
  ASSERT_TRUE(walk.ok());
  std::vector<std::string> names;
  for (const Hdf5Place& place : walk->datasets) names.push_back(place.name);
  EXPECT_EQ(names, (std::vector<std::string>{"ECAL", "energy", "mtheta", "sum", "theta"}));
  std::map<std::string, std::vector<double>> columns;
  for (const char* name : {"energy", "theta", "mtheta", "sum"}) {
    const auto dataset = file->dataset(name);
    ASSERT_TRUE(dataset.ok());
    columns[name].resize(5);
    ASSERT_TRUE(dataset->read_rows(0, 5, columns[name].data()).ok());
  }
  for (std::size_t i = 0; i < 5; ++i) {
    const std::span image(cells.data() + i * 65025, 65025);
    double sum = 0;
    for (const float cell : image) sum += static_cast<double>(cell);
    EXPECT_NEAR(columns["sum"][i], sum, 1e-3);
    // About 2 % of the energy, times 50.
    EXPECT_NEAR(sum / columns["energy"][i], 1.0, 0.35);
    EXPECT_EQ(columns["mtheta"][i], measure_angle(image, {51, 51, 25}));
    EXPECT_GE(columns["theta"][i], std::numbers::pi / 3 - 1e-6);
    EXPECT_LE(columns["theta"][i], 2 * std::numbers::pi / 3 + 1e-6);
  }
}

TEST_F(ShowerDataset, SameOptionsMakeTheSameBytesWhateverTheThreads) {
  write(small(40), "a.h5");
  runtime::ThreadTeam one(1);
  ASSERT_TRUE(write_shower_dataset(small(40), folder_ / "b.h5", one).ok());
  EXPECT_EQ(file_bytes(folder_ / "a.h5"), file_bytes(folder_ / "b.h5"));
}

TEST_F(ShowerDataset, SeveralFilesHoldTheEventsOfOneInOrder) {
  const auto whole = images(write(small(50), "one.h5"), DataSchema::kLcdFixed);
  auto options = small(50);
  options.files = 11;
  options.gzip_level = 0;
  options.chunk_events = 2;
  const auto paths = write(options, "many.h5");
  ASSERT_EQ(paths.size(), 11u);
  EXPECT_EQ(paths[0], folder_ / "many_00.h5");
  EXPECT_EQ(paths[10], folder_ / "many_10.h5");
  EXPECT_EQ(images({folder_ / "many_*.h5"}, DataSchema::kLcdFixed), whole);
}

TEST_F(ShowerDataset, ProgressReachesTheEndAndCanStop) {
  std::vector<std::uint64_t> seen;
  auto options = small(10);
  options.files = 2;
  ASSERT_TRUE(write_shower_dataset(options, folder_ / "a.h5", team_,
                                   [&](std::uint64_t done, std::uint64_t total) {
                                     EXPECT_EQ(total, 10u);
                                     seen.push_back(done);
                                     return runtime::Result<void>{};
                                   })
                  .ok());
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{5, 10}));
  const auto stopped =
      write_shower_dataset(small(10), folder_ / "b.h5", team_, [](std::uint64_t, std::uint64_t) {
        return runtime::Result<void>(runtime::Error{runtime::ErrorKind::kUsage, "enough"});
      });
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().message, testing::HasSubstr("enough"));
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"a_0.h5", "a_1.h5"}));
}

// The limits end the file within its chunks, within its columns, and where the library ends it.
TEST_F(ShowerDataset, FullDiskIsAnErrorAndLeavesTheOldFileAndNoPart) {
  write(small(5), "old.h5");
  const auto old = file_bytes(folder_ / "old.h5");
  write(small(200), "whole.h5");
  const std::uint64_t whole = file_bytes(folder_ / "whole.h5").size();
  for (const std::uint64_t room : {std::uint64_t{1000}, whole / 2, whole - 1700, whole - 1}) {
    const FileSizeLimit limit(room);
    ASSERT_THAT(write_shower_dataset(small(200), folder_ / "old.h5", team_),
                FailsWith(runtime::ErrorKind::kData, "old.h5.part: File too large"))
        << room << " of " << whole;
    EXPECT_EQ(file_bytes(folder_ / "old.h5"), old);
    EXPECT_EQ(folder_.names(), (std::vector<std::string>{"old.h5", "whole.h5"}));
  }
  // The library is as usable as before.
  EXPECT_EQ(images(write(small(4), "a.h5"), DataSchema::kLcdFixed).size(), 4u * 1728);
}

TEST_F(ShowerDataset, FolderThatDoesNotExistIsAnError) {
  const auto refused = write_shower_dataset(small(2), folder_ / "none/a.h5", team_);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("No such file or directory"));
}

TEST_F(ShowerDataset, ImpossibleOptionsAreRefused) {
  const auto message = [&](const ShowerDatasetOptions& options) {
    const auto result = write_shower_dataset(options, folder_ / "a.h5", team_);
    CHECK(!result.ok());
    EXPECT_EQ(result.error().kind, runtime::ErrorKind::kUsage);
    return result.error().message;
  };
  auto options = small(0);
  EXPECT_EQ(message(options), "a dataset of 0 showers; expected 1 or more");
  options = small(3);
  options.files = 4;
  EXPECT_EQ(message(options), "4 files for 3 showers; expected 1 to 3");
  options = small(3);
  options.gzip_level = 12;
  EXPECT_EQ(message(options), "gzip level 12; expected 0 to 9");
}

TEST_F(ShowerDataset, SyntheticIsMadeOnceAndFoundAgain) {
  SyntheticOptions options;
  options.showers.detector = DetectorKind::kFixed12;
  options.events = 20;
  options.folder = folder_ / "cache/data";
  int calls = 0;
  const Progress count = [&](std::uint64_t, std::uint64_t) {
    ++calls;
    return runtime::Result<void>{};
  };
  const auto first = make_synthetic(options, team_, count);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(*first, options.folder + "/synthetic-lcd-fixed-12-v2-20-seed1.h5");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(*make_synthetic(options, team_, count), *first);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(options.folder), {}), 1);
}

TEST_F(ShowerDataset, SyntheticNameTellsEverythingTheContentDependsOn) {
  const SyntheticOptions usual;
  std::vector<SyntheticOptions> others(6, usual);
  others[0].events = 5;
  others[1].showers.seed = 2;
  others[2].showers.detector = DetectorKind::kAngle51;
  others[3].showers.min_energy_gev = 20;
  others[4].showers.threshold_gev = 0;
  others[5].showers.max_energy_gev = 400;
  std::vector<std::string> paths{synthetic_path(usual)};
  for (const SyntheticOptions& other : others) paths.push_back(synthetic_path(other));
  std::sort(paths.begin(), paths.end());
  EXPECT_EQ(std::unique(paths.begin(), paths.end()), paths.end());
}

}  // namespace
}  // namespace troupe::pipeline

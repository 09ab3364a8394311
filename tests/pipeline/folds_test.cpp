// Each part of the events is for testing once, and trained on otherwise, whatever the format.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/data/dataset.h"
#include "tests/pipeline/small_files.h"
#include "tests/support/temporary_folder.h"

namespace troupe::pipeline {
namespace {

constexpr std::uint32_t kFolds = 3;

// The energies and cells of each event.
std::vector<std::vector<float>> events_of(DatasetOptions options, DataSplit split) {
  options.split = split;
  auto dataset = Dataset::open(options);
  CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
  std::vector<std::uint64_t> ids(dataset->size());
  std::iota(ids.begin(), ids.end(), 0u);
  Batch batch;
  CHECK(dataset->read(ids, batch).ok(), "the events are sound");
  const auto images = batch.images.as<float>();
  const std::size_t cells = images.size() / ids.size();
  std::vector<std::vector<float>> events;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::vector<float>& event = events.emplace_back(1, batch.energies()[i]);
    const auto own = images.subspan(i * cells, cells);
    event.insert(event.end(), own.begin(), own.end());
  }
  return events;
}

class Folds : public testing::TestWithParam<SmallFile> {};

TEST_P(Folds, AreDisjointCompleteAndOfOneSize) {
  const TemporaryFolder folder;
  DatasetOptions options;
  options.schema = GetParam().schema;
  GetParam().write(folder.path(), options);
  std::vector<std::vector<float>> all = events_of(options, DataSplit::kAll), tested;
  std::ranges::sort(all);
  ASSERT_EQ(std::ranges::adjacent_find(all), all.end()) << "no event is like another";
  options.test_one_in = kFolds;
  std::vector<std::size_t> sizes;
  for (options.test_part = 0; options.test_part < kFolds; ++options.test_part) {
    std::vector<std::vector<float>> both = events_of(options, DataSplit::kTrain);
    const std::vector<std::vector<float>> test = events_of(options, DataSplit::kTest);
    sizes.push_back(test.size());
    both.insert(both.end(), test.begin(), test.end());
    std::ranges::sort(both);
    EXPECT_EQ(both, all) << options.test_part;
    tested.insert(tested.end(), test.begin(), test.end());
  }
  std::ranges::sort(tested);
  EXPECT_EQ(tested, all);
  const auto [least, most] = std::ranges::minmax(sizes);
  EXPECT_GE(least, 1u);
  EXPECT_LE(most - least, 1u);
}

INSTANTIATE_TEST_SUITE_P(Formats, Folds, testing::ValuesIn(small_files()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::pipeline

// Further numbers of events: any part of a file by its name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "pipeline/data/dataset.h"
#include "pipeline/data/dataset_file.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/format_fixture.h"
#include "tests/support/fails_with.h"

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kRows = 12;

class Columns : public testing::Test {
 protected:
  // Every third event is a pion's.
  Columns() {
    options_.paths = {folder_ / "a.h5"};
    Hdf5Scribe file(options_.paths.front());
    const SmallData data(kRows);
    file.add("ECAL", {kRows, 3, 4, 5}, data.cells);
    std::vector<float> target, eta, one_hot;
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto n = static_cast<float>(i);
      target.insert(target.end(), {i % 3 == 2 ? 211.0f : 11.0f, 10.0f + n, n * n});
      eta.push_back(n / 10);
      for (std::size_t k = 0; k < 3; ++k) one_hot.push_back(k == i % 3 ? 1.0f : 0.0f);
    }
    file.add("target", {kRows, 3}, target);
    file.add("more/eta", {kRows, 1}, eta);
    file.add("odd.2", {kRows}, eta);
    file.add("labels", {kRows, 3}, one_hot);
    one_hot[3 * 4 + 2] = std::numeric_limits<float>::quiet_NaN();
    file.add("broken", {kRows, 3}, one_hot);
    file.add("short", {kRows - 1}, std::vector<float>(kRows - 1));
    file.add_text("words", kRows);
    options_.preprocessing.emplace();
  }

  Dataset open() const {
    auto dataset = Dataset::open(options_);
    CHECK(dataset.ok(), dataset.ok() ? "" : dataset.error().message);
    return std::move(dataset).value();
  }
  std::string refusal(std::vector<DataColumn> columns) {
    options_.columns = std::move(columns);
    const auto dataset = Dataset::open(options_);
    return dataset.ok() ? "" : dataset.error().message;
  }
  static std::vector<float> column(const Batch& batch, std::size_t index) {
    const auto numbers = batch.column(index);
    return {numbers.begin(), numbers.end()};
  }

  TemporaryFolder folder_;
  DatasetOptions options_;
};

TEST_F(Columns, ComeWithTheEventsInTheOrderInWhichTheyAreAskedFor) {
  options_.columns = {{"more/eta"}, {"target.2"}, {"target"}, {"odd.2"}};
  for (const CacheMode cache : {CacheMode::kMemory, CacheMode::kNone, CacheMode::kDisk}) {
    for (const char* const index : {"", "index", "index"}) {
      options_.cache = cache;
      options_.cache_folder = folder_ / "cache";
      options_.index_folder = *index == '\0' ? "" : folder_ / index;
      Dataset dataset = open();
      Batch batch;
      ASSERT_TRUE(dataset.read(std::vector<std::uint64_t>{3, 11, 0}, batch).ok());
      EXPECT_THAT(column(batch, 0), ElementsAre(0.3f, 1.1f, 0.0f));
      EXPECT_THAT(column(batch, 1), ElementsAre(9.0f, 121.0f, 0.0f));
      EXPECT_THAT(column(batch, 2), ElementsAre(11.0f, 211.0f, 11.0f));
      EXPECT_THAT(column(batch, 3), ElementsAre(0.3f, 1.1f, 0.0f));
      EXPECT_EQ(batch.ecals().size(), 3u);
    }
  }
}

TEST_F(Columns, OneHotLabelsTellTheirClass) {
  options_.columns = {{"labels.largest", {0, 1, 2}}};
  Dataset dataset = open();
  Batch batch;
  ASSERT_TRUE(dataset.read(std::vector<std::uint64_t>{3, 11, 1}, batch).ok());
  EXPECT_THAT(column(batch, 0), ElementsAre(0.0f, 2.0f, 1.0f));
  EXPECT_THAT(refusal({{"labels.largest", {0, 1}}}), HasSubstr("event 2: is 2; expected one of"));
  EXPECT_THAT(refusal({{"broken.largest"}}), HasSubstr("dataset broken, event 4: is nan"));
  EXPECT_THAT(refusal({{"odd.largest"}}), HasSubstr("no dataset odd"));
  EXPECT_THAT(refusal({{"more/eta.largest"}}), HasSubstr("expected (N, 2 or more)"));
}

// Runs from before there were columns go on, and a column is a part of what was trained on.
TEST_F(Columns, CountInTheFingerprintWhereThereAreSome) {
  const auto plain = open().fingerprint();
  options_.columns = {{"more/eta"}};
  const auto with = open().fingerprint();
  options_.columns = {{"target.2"}};
  const auto other = open().fingerprint();
  options_.columns = {};
  EXPECT_NE(with, plain);
  EXPECT_NE(with, other);
  EXPECT_EQ(open().fingerprint(), plain);
}

TEST_F(Columns, ThatAreNotThereAreToldWithThoseThatAre) {
  const std::string path = options_.paths.front();
  const std::string missing = refusal({{"mass"}});
  EXPECT_THAT(missing, HasSubstr(path + ": no dataset mass; the file has "));
  EXPECT_THAT(missing, HasSubstr("more/eta"));
  EXPECT_THAT(missing, HasSubstr("the model makes it, or asks for it as a condition or a target"));
  EXPECT_THAT(refusal({{"target.3"}}), HasSubstr("expected (N, 4 or more)"));
  EXPECT_THAT(refusal({{"target.x"}}), HasSubstr("no dataset target.x"));
  EXPECT_THAT(refusal({{"short"}}), HasSubstr("expected 12 rows, one per image"));
  EXPECT_THAT(refusal({{"words"}}), HasSubstr("expected numbers"));
}

TEST_F(Columns, OnlyClassesAreGoodWhereThereAreSome) {
  EXPECT_EQ(refusal({{"target.0", {}, false, 212}}), "");
  EXPECT_THAT(refusal({{"target.0", {}, false, 211}}),
              HasSubstr("event 2: is 211; expected a whole number from 0 to 210, a class of an "
                        "embedding (4 of 12 events"));
  EXPECT_THAT(refusal({{"more/eta", {}, false, 212}}), HasSubstr("a whole number from 0 to 211"));
}

TEST_F(Columns, OnlyTheNamedNumbersAreGood) {
  EXPECT_EQ(refusal({{"target.0", {11, 211}}}), "");
  EXPECT_THAT(refusal({{"target.0", {11, 22}}}),
              HasSubstr("dataset target, event 2: is 211; expected one of 11, 22 (4 of 12 events"));
  options_.on_bad_event = BadEventPolicy::kSkip;
  options_.columns = {{"target.0", {11}}};
  EXPECT_EQ(open().size(), 8u);
  // The same file, and an index that another choice left.
  options_.index_folder = folder_ / "index";
  EXPECT_EQ(open().size(), 8u);
  options_.columns = {{"target.0", {211}}};
  EXPECT_EQ(open().size(), 4u);
  options_.columns = {};
  EXPECT_EQ(open().size(), 12u);
}

TEST_F(Columns, OfABinaryCrossEntropyAreProbabilities) {
  EXPECT_THAT(refusal({{"target.0", {}, true}}),
              HasSubstr("event 0: is 11; expected 0 to 1, for a binary cross-entropy (12 of 12"));
  options_.on_bad_event = BadEventPolicy::kSkip;
  options_.columns = {{"more/eta", {}, true}};
  EXPECT_EQ(open().size(), 11u);  // the last one is 1.1
}

// What preprocessing leaves out is judged by nothing else.
TEST_F(Columns, OfEventsThatAreCutMayBeAnything) {
  options_.preprocessing->min_ecal = 1e9;
  EXPECT_THAT(refusal({{"target.0", {7}}}), testing::Not(HasSubstr("expected 7")));
}

TEST(NamesOfColumns, MeanTheFirstOfSeveralToo) {
  const std::vector<std::string> columns{"target.0", "target.1", "energy"};
  for (const char* name : {"target", "target.0", "target.1", "energy", "energy.0"}) {
    EXPECT_TRUE(names_column(name, columns)) << name;
  }
  for (const char* name : {"target.2", "energy.1", "energy.", "mass", ""}) {
    EXPECT_FALSE(names_column(name, columns)) << name;
  }
}

TEST_F(Columns, MustBeFinite) {
  {
    Hdf5Scribe file(folder_ / "b.h5");
    const SmallData data(3);
    file.add("ECAL", {3, 3, 4, 5}, data.cells);
    file.add("target", {3, 2}, data.target);
    file.add("eta", {3}, {0, NAN, 1});
  }
  options_.paths = {folder_ / "b.h5"};
  EXPECT_THAT(refusal({{"eta"}}), HasSubstr("dataset eta, event 1: is nan; expected a number"));
}

TEST_F(Columns, OfOtherFormats) {
  options_.schema = DataSchema::kIdx;
  options_.paths = {SmallDigits{kRows}.write(folder_.path(), "train")};
  options_.columns = {{"labels", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}};
  Dataset digits = open();
  Batch batch;
  ASSERT_TRUE(digits.read(std::vector<std::uint64_t>{4, 7}, batch).ok());
  EXPECT_THAT(column(batch, 0), ElementsAre(4.0f, 7.0f));
  EXPECT_THAT(refusal({{"mass"}}), HasSubstr("no part mass; an IDX file has images, and labels"));

  write_text(folder_ / "a.tfrecord", small_records(5));
  options_.schema = DataSchema::kTfRecord;
  options_.paths = {folder_ / "a.tfrecord"};
  options_.columns = {{"label"}};
  Dataset records = open();
  ASSERT_TRUE(records.read(std::vector<std::uint64_t>{0, 1}, batch).ok());
  EXPECT_EQ(batch.column(0).size(), 2u);
  EXPECT_THAT(refusal({{"mass"}}), HasSubstr("no feature mass; its records have"));
}

}  // namespace
}  // namespace troupe::pipeline

#include "study/optuna_storage.h"

#include <gmock/gmock.h>

#include "runtime/base/random.h"
#include "study/sqlite_database.h"
#include "tests/study/study_support.h"
#include "tests/support/fails_with.h"

namespace troupe::study {
namespace {

using runtime::ErrorKind;

class OptunaStorage : public testing::Test {
 protected:
  OptunaStorage() {
    loaded_.study = study_of(hanging_space(), MethodKind::kRandom, 6);
    loaded_.study.name = "search";
  }
  void run(std::uint32_t trial, const Point& point, std::optional<double> figure) {
    ASSERT_TRUE(book_.propose(point).ok());
    for (const JournalLine& line :
         {JournalLine(BeginLine{{trial}, "2026-11-27T06:04:01.458Z"}),
          JournalLine(EndLine{{trial},
                              {figure, figure ? "" : "diverged", "abc", 0, 1.0},
                              "2026-11-27T06:05:00.001Z"})}) {
      lines_.push_back(line);
      ASSERT_TRUE(tell(line, loaded_.study.space, book_).ok());
    }
  }
  std::string storage() const {
    const auto made = optuna_storage(loaded_, book_, lines_);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? *made : "";
  }

  LoadedStudy loaded_;
  const std::unique_ptr<Method> method_ = make_method(loaded_.study);
  TrialBook book_{loaded_.study, *method_, 1};
  std::vector<JournalLine> lines_;
};

TEST_F(OptunaStorage, CompleteTrialsAreReadAsTheyWereWritten) {
  const std::vector<Point> points{{0.0, 0.1, 0.25, kAbsent, kAbsent},
                                  {1.0, 0.123457, kAbsent, 0.0, kAbsent},
                                  {2.0, 1.0, kAbsent, 1.0, 3.0}};
  run(0, points[0], 0.1 + 0.2);
  run(1, points[1], {});
  run(2, points[2], 1.5);
  ASSERT_TRUE(book_.propose(points[1]).ok());  // it waits
  for (const char* name : {"", "search"}) {
    const auto found = read_optuna_storage(storage(), name, loaded_.study);
    ASSERT_TRUE(found.ok()) << found.error().message;
    ASSERT_EQ(found->size(), 2u);
    EXPECT_EQ(found->at(0).figure, 0.1 + 0.2);
    EXPECT_EQ(point_of(loaded_.study.space, found->at(0).settings), points[0]);
    EXPECT_EQ(found->at(1).figure, 1.5);
    EXPECT_EQ(point_of(loaded_.study.space, found->at(1).settings), points[2]);
  }
}

TEST_F(OptunaStorage, OtherStudiesAndSpacesAreRefused) {
  run(0, {0.0, 0.1, 0.25, kAbsent, kAbsent}, 1.0);
  const std::string bytes = storage();
  EXPECT_THAT(read_optuna_storage(bytes, "other", loaded_.study),
              FailsWith(ErrorKind::kUsage, "the storage has search; name one of them"));
  Study most = loaded_.study;
  most.objective = {{}, "merit"};
  EXPECT_THAT(read_optuna_storage(bytes, "", most),
              FailsWith(ErrorKind::kUsage, "does not maximise one figure"));
  Study other = loaded_.study;
  other.objective = {"peak_memory_bytes", {}};
  EXPECT_THAT(read_optuna_storage(bytes, "", other),
              FailsWith(ErrorKind::kUsage, "is merit; the one of this study is peak_memory_bytes"));
  Study less = loaded_.study;
  less.space.erase(less.space.begin() + 1);
  EXPECT_THAT(read_optuna_storage(bytes, "", less), FailsWith(ErrorKind::kUsage, "no field rate"));
  Study narrow = loaded_.study;
  narrow.space[1].linear = {0.2, 1.0};
  EXPECT_THAT(
      read_optuna_storage(bytes, "", narrow),
      FailsWith(ErrorKind::kUsage, "trial 0 of the storage is not of this space: rate has"));
  Study more = loaded_.study;
  more.space.push_back(linear("other", 0.0, 1.0));
  EXPECT_THAT(read_optuna_storage(bytes, "", more),
              FailsWith(ErrorKind::kUsage, "it lacks fields"));
}

TEST_F(OptunaStorage, DamagedBytesAreRefusedOrReadAndNeverTrusted) {
  run(0, {0.0, 0.1, 0.25, kAbsent, kAbsent}, 1.0);
  const std::string bytes = storage();
  for (const std::string& none :
       {std::string(), std::string("no database"), bytes.substr(0, 3000)}) {
    EXPECT_FALSE(read_optuna_storage(none, "", loaded_.study).ok());
  }
  for (std::uint32_t i = 0; i < 2000; ++i) {
    std::string damaged = bytes;
    for (std::uint32_t j = 0; j < 4; ++j) {
      const runtime::RandomPosition position{.seed = 8, .micro_batch = i};
      const double where = runtime::random_uniform(position, 2 * j);
      const double what = runtime::random_uniform(position, 2 * j + 1);
      damaged[static_cast<std::size_t>(where * static_cast<double>(damaged.size()))] =
          static_cast<char>(what * 256.0);
    }
    const auto found = read_optuna_storage(std::move(damaged), "", loaded_.study);
    if (!found.ok()) continue;
    for (const ForeignTrial& trial : *found) {
      EXPECT_TRUE(point_of(loaded_.study.space, trial.settings));
    }
  }
}

// A table that is a view without an end.
TEST_F(OptunaStorage, QueryWithoutAnEndIsEnded) {
  auto database = SqliteDatabase::create();
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE(database
                  ->run("CREATE VIEW studies AS WITH RECURSIVE r(study_id) AS (SELECT 1 UNION ALL "
                        "SELECT study_id FROM r) SELECT study_id, 'a' AS study_name FROM r WHERE "
                        "study_id > 1")
                  .ok());
  const auto bytes = database->bytes();
  ASSERT_TRUE(bytes.ok());
  EXPECT_THAT(read_optuna_storage(*bytes, "", loaded_.study),
              FailsWith(ErrorKind::kData, "interrupted"));
}

}  // namespace
}  // namespace troupe::study

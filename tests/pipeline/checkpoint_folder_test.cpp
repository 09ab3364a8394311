#include <gtest/gtest.h>

#include "pipeline/checkpoint/checkpoint_folder.h"

namespace troupe::pipeline {
namespace {

using Names = std::vector<std::string>;

TEST(CheckpointFolder, NamesSortByStep) {
  EXPECT_EQ(checkpoint_name(123), "step-000000000123.h5");
  EXPECT_LT(checkpoint_name(999), checkpoint_name(1000));
  EXPECT_EQ(checkpoint_name(UINT64_MAX), "step-18446744073709551615.h5");
}

TEST(CheckpointFolder, ListsCheckpointsNewestFirstAndNothingElse) {
  const Names names{"best.json",
                    "step-.h5",
                    "step-000000000004.h5",
                    "step-000000000004.h5.part",
                    "step-000000000012.h5",
                    "step-12.h5",
                    "step-1000000000000.h5",
                    "step-00000000000x.h5"};
  EXPECT_EQ(checkpoints_newest_first(names),
            (Names{"step-1000000000000.h5", "step-000000000012.h5", "step-000000000004.h5"}));
}

TEST(CheckpointFolder, NewestAndBestRemain) {
  struct Case {
    const char* what;
    std::uint32_t keep;
    std::uint64_t newest;
    std::optional<std::uint64_t> best;
    Names removed;
  };
  const auto name = checkpoint_name;
  const Case cases[] = {
      {"no best", 2, 5, {}, {name(3), name(2), name(1)}},
      {"an old best", 2, 5, 2, {name(3), name(1)}},
      {"the best among the newest", 2, 5, 5, {name(3), name(2), name(1)}},
      {"the best is not there", 2, 5, 9, {name(3), name(2), name(1)}},
      {"fewer than are kept", 9, 5, {}, {}},
      {"files of later steps, which could not be read", 1, 3, {}, {name(2), name(1)}},
      {"nothing but files of later steps", 1, 0, {}, {}},
  };
  Names names{"summary.json"};
  for (std::uint64_t step = 1; step <= 5; ++step) names.push_back(name(step));
  for (const Case& each : cases) {
    EXPECT_EQ(to_remove(names, each.keep, each.newest, each.best), each.removed) << each.what;
  }
  EXPECT_EQ(to_remove({}, 2, 5, 7), Names{});
}

TEST(BestCheckpoint, IsReadAsItWasWritten) {
  for (const BestCheckpoint& best :
       {BestCheckpoint{88, "merit", 0.1 + 0.2}, {0, "hits.wasserstein", 0.0}, {7, "", 1e-300}}) {
    EXPECT_EQ(parse_best(best_json(best)), best);
  }
  EXPECT_EQ(best_json({88, "merit", 0.5}),
            "{\"step\":88,\"figure\":\"merit\",\"distance\":0.5,"
            "\"file\":\"step-000000000088.h5\"}\n");
}

TEST(BestCheckpoint, AnyOtherTextIsNone) {
  const std::string whole = best_json({88, "merit", 0.5});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_best(whole.substr(0, length))) << length;
  }
  std::string other = whole;
  other.replace(other.find("0.5"), 3, "nan");
  EXPECT_FALSE(parse_best(other));
  EXPECT_FALSE(parse_best(whole + whole));
}

}  // namespace
}  // namespace troupe::pipeline

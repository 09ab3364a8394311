#include <gtest/gtest.h>

#include "pipeline/checkpoint.h"

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
  Names names{"summary.json"};
  for (std::uint64_t step = 1; step <= 5; ++step) names.push_back(checkpoint_name(step));
  EXPECT_EQ(to_remove(names, 2, {}),
            (Names{checkpoint_name(3), checkpoint_name(2), checkpoint_name(1)}));
  EXPECT_EQ(to_remove(names, 2, checkpoint_name(2)),
            (Names{checkpoint_name(3), checkpoint_name(1)}));
  EXPECT_EQ(to_remove(names, 2, checkpoint_name(5)),
            (Names{checkpoint_name(3), checkpoint_name(2), checkpoint_name(1)}));
  EXPECT_EQ(to_remove(names, 9, {}), Names{});
  EXPECT_EQ(to_remove({}, 2, checkpoint_name(7)), Names{});
}

}  // namespace
}  // namespace troupe::pipeline

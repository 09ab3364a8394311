// What a plan makes of a pace.

#include "launch/run/run_outlook.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace troupe::launch {
namespace {

class RunOutlookTest : public testing::Test {
 protected:
  RunOutlookTest() {
    std::ofstream(folder_ / "topology.yaml")
        << "name: planned\nmodel: {zoo: gan3d_12}\n"
           "data: {train: synthetic, synthetic: {events: 200}, preprocessing: {power: 0.35}}\n"
           "train: {micro_batch: 4, micro_batches: 8}\n"
           "cluster:\n  pools: [{name: hpc, launcher: slurm, most: 2, starts_in: 1s}]\n";
    pace_.speed = 8.0;
    pace_.busy_seconds = 1.0;
    pace_.micro_batches = 8;
    pace_.iterations_per_epoch = 5;
    pace_.iterations = std::vector<double>(12, 1.0);
  }

  // With both nodes.
  double iterations_per_second() const {
    const auto loaded = config::load_topology(folder_ / "topology.yaml");
    EXPECT_TRUE(loaded.ok());
    const auto told = run_outlook(*loaded, std::nullopt, pace_, "");
    EXPECT_TRUE(told.ok());
    for (const pipeline::OutlookLine& line : told->outlook.lines) {
      if (line.forecast.nodes == std::vector<std::uint32_t>{2}) return line.iterations_per_second;
    }
    ADD_FAILURE() << "no line has both nodes";
    return 0.0;
  }

  TemporaryFolder folder_;
  MeasuredPace pace_;
};

TEST_F(RunOutlookTest, CountsWhatSumsTakeOfAMember) {
  const double without = iterations_per_second();
  pace_.ring_bytes_per_second = 1e12;
  EXPECT_DOUBLE_EQ(iterations_per_second(), without) << "the line is slower";
  pace_.ring_bytes_per_second = 1e6;
  EXPECT_LT(iterations_per_second(), 0.5 * without);
}

TEST_F(RunOutlookTest, CountsHowUnevenIterationsAreAndNoSingleLongOne) {
  const double even = iterations_per_second();
  pace_.iterations.back() = 1.3;
  EXPECT_NEAR(iterations_per_second(), even, 0.05 * even);
  pace_.iterations = {0.7, 1.3, 0.7, 1.3, 0.7, 1.3, 0.7, 1.3, 0.7, 1.3, 0.7, 1.3};
  EXPECT_LT(iterations_per_second(), 0.9 * even);
}

}  // namespace
}  // namespace troupe::launch

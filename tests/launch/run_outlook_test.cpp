// What a plan makes of a pace.

#include "launch/run/run_outlook.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace troupe::launch {
namespace {

class RunOutlookTest : public testing::Test {
 protected:
  RunOutlookTest() {
    write("synchronous");
    pace_.speed = 8.0;
    pace_.busy_seconds = 1.0;
    pace_.micro_batches = 8;
    pace_.iterations_per_epoch = 5;
    pace_.iterations = std::vector<double>(12, 1.0);
  }

  void write(const std::string& strategy) {
    std::ofstream(folder_ / "topology.yaml")
        << "name: planned\nmodel: {zoo: gan3d_12}\n"
           "data: {train: synthetic, synthetic: {events: 200}, preprocessing: {power: 0.35}}\n"
           "train: {micro_batch: 4, micro_batches: 8, strategy: {kind: "
        << strategy
        << "}}\ncluster:\n  pools: [{name: hpc, launcher: slurm, most: 2, starts_in: 1s}]\n";
  }

  RunOutlook told() const {
    const auto loaded = config::load_topology(folder_ / "topology.yaml");
    EXPECT_TRUE(loaded.ok());
    auto told = run_outlook(*loaded, std::nullopt, pace_, "");
    EXPECT_TRUE(told.ok());
    return std::move(told).value();
  }

  // With both nodes.
  double iterations_per_second() const {
    const RunOutlook told = this->told();
    for (const pipeline::OutlookLine& line : told.outlook.lines) {
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

// With two sites each node has one to itself.
TEST_F(RunOutlookTest, CountsSumsWithinASite) {
  pace_.ring_bytes_per_second = 1e6;
  write("tree, sites: 2, steps: 2");
  const double none = iterations_per_second();
  write("tree, sites: 1, steps: 2");
  const double with_two_steps = iterations_per_second();
  write("tree, sites: 1, steps: 4");
  const double with_four_steps = iterations_per_second();
  EXPECT_LT(with_two_steps, 0.8 * none);
  // Seconds of the sums outside of sites, of computing and of two steps within them.
  EXPECT_NEAR(1.0 / with_four_steps - 1.0 / none, 2.0 * (1.0 / with_two_steps - 1.0 / none),
              0.01 / none);
}

TEST_F(RunOutlookTest, PartsOfWorkersHaveTheEventsOfAllTheirIterations) {
  write("tree, sites: 2, steps: 5");
  EXPECT_EQ(told().events_per_iteration, 5U * 8 * 4);
  EXPECT_DOUBLE_EQ(told().speed, 8.0 * 5 * 4);
}

}  // namespace
}  // namespace troupe::launch

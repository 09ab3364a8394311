#include "launch/folder/nodes_file.h"

#include <gmock/gmock.h>

#include <csignal>
#include <map>

#include "runtime/base/host_name.h"
#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

class NodesSettled : public testing::Test {
 protected:
  // As the head has left the file: itself, a member beside it and one of another host.
  void head_says(const char* head, const char* here, const char* away) {
    NodesFile file(path_, disk_);
    ASSERT_TRUE(file.set({"head", runtime::host_name(), "head", 1, head}).ok());
    ASSERT_TRUE(file.set({"member.0", runtime::host_name(), "member", 2, here, cause(here)}).ok());
    ASSERT_TRUE(file.set({"member.1", "far", "member", 3, away, cause(away)}).ok());
  }
  // The file afterwards: "state cause" of each node.
  std::map<std::string, std::string> after(const std::vector<EndedProcess>& ended) {
    EXPECT_TRUE(settle_nodes(path_, ended).ok());
    NodesFile file(path_, disk_);
    file.load();
    std::map<std::string, std::string> said;
    for (const telemetry::NodeFacts& entry : file.nodes()) {
      said[entry.name] = entry.state + (entry.cause.empty() ? "" : " " + entry.cause);
    }
    return said;
  }
  static std::string cause(std::string_view state) { return state == kDead ? "silence" : ""; }

  TemporaryFolder folder_;
  runtime::FileDisk disk_;
  const std::string path_ = folder_ / "nodes.json";
};

using Said = std::map<std::string, std::string>;
constexpr ChildEnd kWell{0, 0}, kKilled{0, SIGKILL}, kLost{5, 0};
constexpr const char* kDeadOfKill = "dead was killed by signal 9 (Killed)";

TEST_F(NodesSettled, NobodyRunsOnAfterAHeadThatWasKilled) {
  head_says(kRunning, kRunning, kRunning);
  EXPECT_EQ(after({{"head", 1, kKilled}, {"member.0", 2, kLost}}),
            (Said{{"head", kDeadOfKill},
                  {"member.0", "dead ended with exit code 5"},
                  {"member.1", "dead lost with the head, which was killed by signal 9 (Killed)"}}));
}

TEST_F(NodesSettled, WhatTheHeadHasSaidStays) {
  head_says(kEnded, kDead, kDead);
  EXPECT_EQ(after({{"head", 1, kLost}, {"member.0", 2, kLost}}),
            (Said{{"head", "ended"}, {"member.0", "dead silence"}, {"member.1", "dead silence"}}));
}

TEST_F(NodesSettled, AKilledMemberIsDeadWhateverTheHeadHasMadeOfIt) {
  for (const char* state : {kRunning, kEnded, kDead}) {
    head_says(kEnded, state, kEnded);
    EXPECT_EQ(after({{"head", 1, kWell}, {"member.0", 2, kKilled}}),
              (Said{{"head", "ended"}, {"member.0", kDeadOfKill}, {"member.1", "ended"}}));
  }
}

TEST_F(NodesSettled, AMemberThatNeverReachedTheHeadIsAdded) {
  head_says(kEnded, kEnded, kEnded);
  const Said said = after({{"head", 1, kWell}, {"member.2", 4, kLost}});
  EXPECT_EQ(said.at("member.2"), "dead ended with exit code 5");
}

TEST_F(NodesSettled, TheFileOfAnotherRunIsLeftAlone) {
  head_says(kRunning, kRunning, kRunning);
  const std::string before = read_text(path_);
  after({{"head", 99, kLost}, {"member.0", 98, kLost}});
  EXPECT_EQ(read_text(path_), before);
  std::filesystem::remove(path_);
  EXPECT_TRUE(settle_nodes(path_, {{"head", 1, kWell}}).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace troupe::launch

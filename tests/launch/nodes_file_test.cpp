#include "launch/folder/nodes_file.h"

#include <gmock/gmock.h>

#include <csignal>
#include <map>

#include "runtime/base/host_name.h"
#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

using std::chrono::milliseconds;

// Keeps what was written; can be full.
class CountingDisk : public runtime::FileDisk {
 public:
  runtime::Result<void> replace(const std::string& path,
                                std::span<const std::byte> bytes) override {
    ++writes;
    if (full) return runtime::Error{runtime::ErrorKind::kData, path + ": disk full"};
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  int writes = 0;
  bool full = false;
  std::string text;
};

class NodesFileTest : public testing::Test {
 protected:
  CountingDisk disk_;
  std::chrono::system_clock::time_point now_{milliseconds(1'738'323'296'789)};
  NodesFile file_{"run/nodes.json", disk_, [this] { return now_; }};
};

TEST_F(NodesFileTest, HasALineForEveryNodeInTheOrderTheyCame) {
  ASSERT_TRUE(file_.set({"head", "box", "head", 12, kRunning}).ok());
  ASSERT_TRUE(file_.set({"member.0", "b\"x", "member", 13, kEnded}).ok());
  EXPECT_EQ(disk_.text,
            R"([{"name":"head","host":"box","pid":12,"role":"head","state":"running",)"
            R"("since":"2025-01-31T11:34:56.789Z"},)"
            "\n "
            R"({"name":"member.0","host":"b\"x","pid":13,"role":"member","state":"ended",)"
            R"("since":"2025-01-31T11:34:56.789Z"}])"
            "\n");
}

TEST_F(NodesFileTest, ADeadNodeHasItsCauseAndTime) {
  ASSERT_TRUE(file_.set({"m", "box", "member", 1, kRunning}).ok());
  now_ += milliseconds(1500);
  ASSERT_TRUE(file_.set({"m", "", "member", 0, kDead, "was killed by signal 9"}).ok());
  EXPECT_EQ(disk_.text, R"([{"name":"m","host":"box","pid":1,"role":"member","state":"dead",)"
                        R"("since":"2025-01-31T11:34:58.289Z","cause":"was killed by signal 9"}])"
                        "\n");
}

// The device is told later than the node itself, and is no news of its state.
TEST_F(NodesFileTest, KeepsTheDeviceOfANodeUntilAnotherProcessHasItsName) {
  ASSERT_TRUE(file_.set({"m", "box", "member", 1, kRunning}).ok());
  telemetry::NodeFacts told{"m", "", "member", 0, kRunning};
  told.device = "cuda:1 (card)";
  ASSERT_TRUE(file_.set(told).ok());
  const testing::Matcher<std::string> has_device =
      testing::HasSubstr(R"-("device":"cuda:1 (card)")-");
  EXPECT_THAT(disk_.text, has_device);
  ASSERT_TRUE(file_.set({"m", "", "member", 0, kDead, "lost"}).ok());
  EXPECT_THAT(disk_.text, has_device);
  ASSERT_TRUE(file_.set({"m", "box", "member", 2, kRunning}).ok());
  EXPECT_THAT(disk_.text, testing::Not(has_device));
}

TEST_F(NodesFileTest, SinceIsThatOfTheState) {
  ASSERT_TRUE(file_.set({"m", "box", "member", 1, kRunning}).ok());
  now_ += milliseconds(1000);
  ASSERT_TRUE(file_.set({"m", "box", "member", 2, kRunning}).ok());
  EXPECT_THAT(disk_.text, testing::HasSubstr(R"("pid":2)"));
  EXPECT_THAT(disk_.text, testing::HasSubstr("11:34:56.789Z"));
}

TEST_F(NodesFileTest, WritesOnlyWhatChangedAndAgainWhatCouldNotBeWritten) {
  const telemetry::NodeFacts entry{"m", "box", "member", 1, kRunning};
  EXPECT_EQ(disk_.writes, 0);
  ASSERT_TRUE(file_.set(entry).ok());
  ASSERT_TRUE(file_.set(entry).ok());
  EXPECT_EQ(disk_.writes, 1);
  disk_.full = true;
  telemetry::NodeFacts ended = entry;
  ended.state = kEnded;
  EXPECT_FALSE(file_.set(ended).ok());
  disk_.full = false;
  ASSERT_TRUE(file_.set(ended).ok());
  EXPECT_EQ(disk_.writes, 3);
  EXPECT_THAT(disk_.text, testing::HasSubstr(R"("state":"ended")"));
}

TEST_F(NodesFileTest, AtTheEndThoseThatWereNotLostHaveEnded) {
  ASSERT_TRUE(file_.set({"head", "box", "head", 1, kRunning}).ok());
  ASSERT_TRUE(file_.set({"m", "box", "member", 2, kDead, "lost"}).ok());
  ASSERT_TRUE(file_.end_all().ok());
  EXPECT_EQ(file_.nodes().at(0).state, kEnded);
  EXPECT_EQ(file_.nodes().at(1).state, kDead);
}

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

TEST(HostName, IsThatOfThisMachine) {
  std::string known = read_text("/proc/sys/kernel/hostname");
  while (known.ends_with('\n')) known.pop_back();
  EXPECT_EQ(runtime::host_name(), known);
}

}  // namespace
}  // namespace troupe::launch

#include "launch/folder/nodes_file.h"

#include <gmock/gmock.h>

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

TEST(HostName, IsThatOfThisMachine) {
  std::string known = read_text("/proc/sys/kernel/hostname");
  while (known.ends_with('\n')) known.pop_back();
  EXPECT_EQ(runtime::host_name(), known);
}

}  // namespace
}  // namespace troupe::launch

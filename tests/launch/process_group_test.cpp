// A supervisor as a process of its own, which gets signals and is killed.

#include "launch/processes/process_group.h"

#include <gmock/gmock.h>

#include <csignal>

#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kLongGrace = "100000";

// Says what it gets, and runs until it is killed.
const std::string kStubborn =
    "trap 'echo got TERM' TERM; trap 'echo got USR1' USR1; echo ready; while :; do sleep 0.01; "
    "done";

std::string ends_on_interrupt(int code) {
  return "trap 'exit " + std::to_string(code) + "' INT; echo ready; while :; do sleep 0.01; done";
}

std::string waits_for(const std::string& path) {
  return "while [ ! -e " + path + " ]; do sleep 0.01; done";
}

class Group : public Talker {
 public:
  Group(const std::string& grace_ms, const std::vector<std::string>& scripts,
        const std::string& ask_ms = kLongGrace, const std::string& moment_ms = "0")
      : Talker(words(ask_ms, grace_ms, moment_ms, scripts)) {}

  pid_t pid(const std::string& name) { return pid_in(line_with("started " + name + " ")); }

 private:
  static std::vector<std::string> words(const std::string& ask, const std::string& grace,
                                        const std::string& moment,
                                        const std::vector<std::string>& scripts) {
    std::vector<std::string> words{TROUPE_LAUNCH_HELPER, "group", ask, grace, moment};
    words = words + scripts;
    return words;
  }
};

TEST(ProcessGroup, EndsAsItsHeadDoesOnceAllHaveEnded) {
  const TemporaryFolder folder;
  Group group(kLongGrace, {"echo hello; exit 7", waits_for(folder / "go") + "; echo bye", ""});
  group.line_with("head ended with exit code 7 lost=0 killed=0");
  group.line_with("head | hello");
  EXPECT_FALSE(group.child().end().has_value());
  std::ofstream(folder / "go") << "";
  EXPECT_EQ(group.wait(), (ChildEnd{7, 0}));
  group.line_with("member.0 | bye");
  group.line_with("member.0 ended with exit code 0 lost=0 killed=0");
  group.line_with("helper | end 7 ");
}

TEST(ProcessGroup, AMemberMayShareTheOutput) {
  Group group(kLongGrace, {"exit 0", "echo as it is"});
  group.wait();
  EXPECT_THAT(group.lines, testing::Contains("as it is"));
}

TEST(ProcessGroup, ALostMemberIsToldAndTheHeadGoesOn) {
  const TemporaryFolder folder;
  Group group(kLongGrace, {waits_for(folder / "go") + "; exit 5", "kill -9 $$", "exit 3"});
  EXPECT_THAT(group.line_with("warning"), HasSubstr("the head decides how the run goes on"));
  group.line_with("member.0 was killed by signal 9 (Killed) lost=1 killed=0");
  group.line_with("member.1 ended with exit code 3 lost=1 killed=0");
  EXPECT_FALSE(group.child().end().has_value());
  std::ofstream(folder / "go") << "";
  EXPECT_EQ(group.wait(), (ChildEnd{5, 0}));
}

TEST(ProcessGroup, ASignalReachesTheHeadAloneAndMembersAreKilledAfterTheGrace) {
  Group group("100", {ends_on_interrupt(130), kStubborn, ""});
  group.line_with("head | ready");
  group.line_with("member.0 | ready");
  group.child().send(SIGINT);
  EXPECT_EQ(group.wait(), (ChildEnd{130, 0}));
  group.line_with("member.0 was killed by signal 9 (Killed) lost=0 killed=1");
  group.line_with("the run has ended, and it has not");
  EXPECT_THAT(group.text(), Not(HasSubstr("member.0 | got TERM")));
}

// A start that fails: the members still dial, and would until they are killed.
TEST(ProcessGroup, MembersThatGoOnWithoutTheHeadAreAskedToEndAndNotCalledKilled) {
  const TemporaryFolder folder;
  const std::string ready = folder / "ready";
  Group group(
      kLongGrace,
      {waits_for(ready) + "; exit 3",
       "trap 'echo got TERM; exit 143' TERM; echo > " + ready + "; while :; do sleep 0.01; done",
       ""},
      "10");
  EXPECT_EQ(group.wait(), (ChildEnd{3, 0}));
  group.line_with("member.0 | got TERM");
  group.line_with("member.0 ended with exit code 143 lost=0 killed=0");
  EXPECT_THAT(group.text(), Not(HasSubstr("is killed")));
}

TEST(ProcessGroup, ASecondSignalKillsAll) {
  Group group(kLongGrace, {kStubborn, kStubborn, kStubborn});
  const pid_t head = group.pid("head"), member = group.pid("member.0");
  group.line_with("head | ready");
  group.child().send(SIGTERM);
  group.line_with("head | got TERM");
  EXPECT_FALSE(is_gone(member));
  group.child().send(SIGTERM);
  EXPECT_EQ(group.wait(), (ChildEnd{143, 0}));
  EXPECT_TRUE(is_gone(head));
  EXPECT_TRUE(is_gone(member));
  group.line_with("head was killed by signal 9 (Killed) lost=0 killed=1");
}

// As `timeout` sends them: to its child, and then to the child's process group.
TEST(ProcessGroup, SignalsOfOneMomentAreOneRequest) {
  Group group(kLongGrace, {"trap '' TERM INT HUP; echo ready; sleep 0.3; exit 143", "", ""},
              kLongGrace, kLongGrace);
  group.line_with("head | ready");
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGTERM}) group.child().send(number);
  EXPECT_EQ(group.wait().signal, 0);
  group.line_with("head ended with exit code 143 lost=0 killed=0");
}

TEST(ProcessGroup, AMemberThatCannotBeStartedEndsTheOthers) {
  Group group(kLongGrace, {kStubborn, "missing", ""});
  const pid_t head = group.pid("head");
  EXPECT_EQ(group.wait(), (ChildEnd{1, 0}));
  group.line_with("end member.0: /nowhere/program cannot be started");
  EXPECT_TRUE(is_gone(head));
}

}  // namespace
}  // namespace troupe::launch

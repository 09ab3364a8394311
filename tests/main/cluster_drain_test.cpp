// Members that leave a run because somebody asks (`troupe drain`), or because their machine is
// about to be taken away.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class ClusterDrain : public ClusterRun {
 protected:
  ProcessEnd drain(const std::string& node, Words more = {}) const {
    more.insert(more.begin(), {"drain", address_, node});
    return call(more);
  }
  // Changes of the View in the run that has ended, by which a member left. No micro-batch was
  // computed again for any of them.
  std::size_t leaves() const {
    std::size_t count = 0;
    const JsonValue summary = parse_json(read_text(path("a/summary.json")));
    for (const JsonValue& view : summary["views"].list()) {
      EXPECT_EQ(view["micro_batches_taken_over"].integer(), 0);
      count += view["causes"].list().size();
    }
    return count;
  }

  const std::string address_ = fmt::format("127.0.0.1:{}", free_port());
};

TEST_F(ClusterDrain, MemberLeavesWithExitCodeZeroAndCostsNeitherStepNorBit) {
  Process head(command(head_words("a", address_, 3, kEndlessRun)));
  Process first(command({"join", address_, "--node", "member.0"}));
  Process second(command({"join", address_, "--node", "member.1"}));
  Process third(command({"join", address_, "--node", "member.2"}));
  wait_until_training(head);

  const ProcessEnd drained = drain("member.2");
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_EQ(drained.out, "member.2 has left the run\n");
  const ProcessEnd left = third.wait();
  EXPECT_EQ(left.exit_code, 0) << left.err;
  EXPECT_THAT(left.err, HasSubstr("has asked for it (troupe drain)"));
  EXPECT_THAT(log(), HasSubstr("member.2 is let go: process "));

  expect_refused(drain("member.2"), 2, {address_, "member.2 has already left the run"});
  expect_refused(drain("member.5"), 2, {"nobody has joined the run as member.5"});
  expect_refused(drain("somebody"), 2, {"'somebody'", "member.0, member.1"});
  expect_refused(drain("head"), 2, {"head leads the run"});
  // The leader, which teaches and sends snapshots.
  EXPECT_EQ(drain("member.0").exit_code, 0);
  EXPECT_EQ(first.wait().exit_code, 0);
  expect_refused(drain("member.1"), 2, {"member.1 is the last member", "SIGTERM"});

  stop(head);
  EXPECT_EQ(second.wait().exit_code, 0);
  EXPECT_EQ(leaves(), 2U);
  expect_goes_on();
}

// Nobody takes its place: it was not lost.
TEST_F(ClusterDrain, MemberOfTheMachineOfTheRunIsNotReplaced) {
  Process process(command(run_words("a", kEndlessRun) + Words{"--workers", "2", "--set",
                                                              "cluster.listen=" + address_, "--set",
                                                              "cluster.failure.restart=2"}));
  wait_until_training(process);
  const ProcessEnd drained = drain("member.1");
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  wait_until_training(process, steps() + 40);
  stop(process);
  EXPECT_EQ(leaves(), 1U);
  EXPECT_EQ(nodes().count("member.2"), 0U);
  expect_goes_on({"--workers", "0"});
}

// One by a file, one by a command, and the last goes on.
TEST_F(ClusterDrain, MembersWhoseMachinesAreTakenAwayLeaveInTime) {
  Process head(command(head_words("a", address_, 3, kEndlessRun)));
  Process first(command({"join", address_, "--preemption-every", "1", "--preemption-file",
                         path("notice"), "--preemption-command", "exit 1"}));
  Process second(command({"join", address_, "--preemption-every", "1", "--preemption-command",
                          "test -e '" + path("told") + "'"}));
  Process third(command({"join", address_}));
  wait_until_training(head);
  write_text(path("notice"), "");
  const ProcessEnd by_file = first.wait();
  EXPECT_EQ(by_file.exit_code, 0) << by_file.err;
  EXPECT_THAT(by_file.err, HasSubstr("about to be taken away: " + path("notice") + " is there"));
  EXPECT_TRUE(second.running());
  write_text(path("told"), "");
  const ProcessEnd by_command = second.wait();
  EXPECT_EQ(by_command.exit_code, 0) << by_command.err;
  EXPECT_THAT(by_command.err, HasSubstr("about to be taken away: `test -e '"));
  stop(head);
  EXPECT_EQ(third.wait().exit_code, 0);
  EXPECT_EQ(leaves(), 2U);
  expect_goes_on();
}

TEST_F(ClusterDrain, MachineThatIsTakenAwayAnywayDoesNotJoin) {
  write_text(path("notice"), "");
  const ProcessEnd before = call({"join", address_, "--preemption-file", path("notice")});
  EXPECT_EQ(before.exit_code, 0) << before.err;
  EXPECT_THAT(before.err, HasSubstr("is there; it does not join"));
  // While it waits for somebody at the address, which takes longer than the test does.
  const std::string look = fmt::format("touch '{}'; test -e '{}'", path("looked"), path("later"));
  Process waiting(command({"join", address_, "--within", "600", "--preemption-every", "1",
                           "--preemption-command", look}));
  ASSERT_TRUE(waiting.wait_until([&] { return std::filesystem::exists(path("looked")); }));
  // Not by the first look, which made the file above before it asked.
  std::filesystem::remove(path("looked"));
  ASSERT_TRUE(waiting.wait_until([&] { return std::filesystem::exists(path("looked")); }));
  write_text(path("later"), "");
  const ProcessEnd end = waiting.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("ended with exit code 0; it leaves the run"));
}

TEST_F(ClusterDrain, WhereNobodyListensItGivesUp) {
  expect_refused(drain("member.0", {"--within", "1"}), 5,
                 {"cannot drain member.0 at", address_, "nobody answered for 1 s"});
}

TEST_F(ClusterDrain, KeysDecideWhoMayAsk) {
  const std::string keys = make_keys("keys");
  const std::string unknown = make_keys("unknown");
  Process head(
      command(head_words("a", address_, 2, kEndlessRun + Words{"--set", "cluster.keys=" + keys})));
  const std::string address = address_ + "#" + public_key(keys);
  Process first(command({"join", address, "--node", "member.0", "--key", keys}));
  Process second(command({"join", address, "--node", "member.1", "--key", keys}));
  wait_until_training(head);
  expect_refused(call({"drain", address, "member.1", "--key", unknown}), 5, {"key"});
  expect_refused(call({"drain", address_, "member.1", "--within", "2"}), 5, {address_});
  const ProcessEnd token = call({"token", keys, "--for", "10min"});
  write_text(path("token"), token.out);
  const ProcessEnd drained = call({"drain", address, "member.1", "--token-file", path("token")});
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_EQ(second.wait().exit_code, 0);
  stop(head);
  EXPECT_EQ(first.wait().exit_code, 0);
}

}  // namespace
}  // namespace troupe

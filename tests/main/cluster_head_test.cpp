// Runs over several processes whose head is lost.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"
#include "tests/main/ledger_check.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kView = R"({"kind":"view")";

class ClusterHead : public ClusterRun {
 protected:
  Words endless(const Words& more) const {
    Words words = run_words("a", kEndlessRun);
    words.insert(words.end(), more.begin(), more.end());
    return command(words);
  }
  // Kills the head, and waits until the members have gone on with another one.
  void replace_head(Process& process, const std::string& name) const {
    const pid_t before = head();
    ASSERT_GT(before, 0);
    const std::size_t views = count(name, kView);
    ::kill(before, SIGKILL);
    const auto has_gone_on = [&] { return head() != before && count(name, kView) > views; };
    ASSERT_TRUE(wait_until(process, has_gone_on)) << process.wait().err;
  }
};

TEST_F(ClusterHead, LostHeadIsReplacedAndCostsNeitherStepNorBit) {
  Process process(endless({"--workers", "2"}));
  for (int i = 0; i < 2; ++i) {
    wait_until_training(process, "a", steps("a") + 100);
    ASSERT_NO_FATAL_FAILURE(replace_head(process, "a"));
  }
  const ProcessEnd end = stop(process);
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_EQ(summary["failures_survived"].integer(), 2U);
  EXPECT_EQ(summary["views"].list().size(), 2U) << "those of the head before are told too";
  EXPECT_EQ(nodes("a").at("head").state, "ended");
  EXPECT_EQ(nodes("a").at("member.1").state, "ended");
  EXPECT_THAT(end.err, Not(HasSubstr("is killed")));
  // Not a line is missing either: what the heads had not written they were told again.
  EXPECT_EQ(steps("a"), summary["steps"].integer());
  expect_goes_on({"--workers", "0"});
}

TEST_F(ClusterHead, OneThatStoodStillMakesRoomForAnotherWhenItWakes) {
  Process process(
      endless({"--workers", "2", "--set", "cluster.failure={heartbeat: 50ms, dead_after: 200ms}"}));
  wait_until_training(process, "a");
  const pid_t before = head();
  ASSERT_GT(before, 0);
  const std::size_t views = count("a", kView);
  ::kill(before, SIGSTOP);
  // Longer than a process of this machine may be silent.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  ::kill(before, SIGCONT);
  ASSERT_TRUE(wait_until(process, [&] {
    return head() > 0 && head() != before && count("a", kView) > views;
  })) << process.wait().err;
  EXPECT_THAT(stop(process).err, HasSubstr("has given this head up"));
  expect_goes_on({"--workers", "0"});
}

// Of the View before, and of members; it is replaced, under a name that nobody had.
TEST_F(ClusterHead, HeadAndAMemberMayBeLostTogether) {
  Process process(endless({"--workers", "3"}));
  wait_until_training(process, "a", 100);
  ::kill(member(1), SIGKILL);
  ASSERT_NO_FATAL_FAILURE(replace_head(process, "a"));
  ASSERT_TRUE(wait_until_told(process, "a", R"("joined":["member.3"])")) << process.wait().err;
  stop(process);
  EXPECT_EQ(nodes("a").at("member.1").state, "dead");
  EXPECT_EQ(nodes("a").at("member.3").state, "ended");
  expect_goes_on({"--workers", "0"});
}

TEST_F(ClusterHead, ThatIsLostWithAllMembersEndsTheRunAndSaysSo) {
  Process process(endless({"--workers", "2"}));
  wait_until_training(process, "a");
  const std::vector<pid_t> all{member(0), member(1), head()};
  for (const pid_t each : all) ::kill(each, SIGKILL);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 5) << end.err;
  EXPECT_THAT(end.err, HasSubstr("has come back to the head: all of them were lost with the head"));
}

// While it validates what members have sent, and the members have nothing left to do.
TEST_F(ClusterHead, OneThatIsLostAtTheVeryEndIsReplacedToo) {
  const Words iterations =
      until_iteration(40, {"--set", "actors.validator={every: 4 iterations, events: 20}"});
  const std::string whole = hash_of("whole", iterations);
  Words words = run_words("a", iterations);
  words.insert(words.end(), {"--workers", "2", "--json"});
  Process process(command(words));
  ASSERT_TRUE(wait_until(process, [&] { return steps("a") == 160; })) << process.wait().err;
  ::kill(head(), SIGKILL);
  const ProcessEnd end = process.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), whole);
  EXPECT_FALSE(last_line(end)["validation"].is_null());
}

TEST_F(ClusterHead, OneThatIsNotReplacedEndsTheRunWhichGoesOnToTheSameHash) {
  Process process(endless({"--workers", "2", "--set", "cluster.failure.restart=0"}));
  wait_until_training(process, "a", 100);
  ::kill(head(), SIGKILL);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 128 + SIGKILL);
  EXPECT_THAT(end.err, HasSubstr("the run can be gone on with by --resume"));
  EXPECT_TRUE(all_gone());
  expect_goes_on();
}

// Nobody starts another. Each saves what it has, below the folder that it was started in.
TEST_F(ClusterHead, MembersElsewhereWaitForAnotherAndThenEndWithTheirStatesSaved) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Words more = kEndlessRun;
  more.insert(more.end(), {"--set", "cluster.failure.orphan_after=1s"});
  Process process(command(head_words("a", address, 2, more)));
  std::filesystem::create_directory(path("elsewhere"));
  ProcessOptions elsewhere;
  elsewhere.folder = path("elsewhere");
  Process one(command({"join", address}), elsewhere), other(command({"join", address}), elsewhere);
  wait_until_training(process, "a");
  process.send(SIGKILL);
  for (Process* member : {&one, &other}) {
    const ProcessEnd end = member->wait();
    EXPECT_EQ(end.exit_code, 5) << end.err;
    EXPECT_THAT(end.err, HasSubstr("no other process took its place within 1 s"));
    const std::size_t at = end.err.find("troupe run --resume runs/member.");
    ASSERT_NE(at, std::string::npos) << end.err;
    const std::size_t folder = end.err.find("runs/", at);
    const std::string name =
        "elsewhere/" + end.err.substr(folder, end.err.find('\n', folder) - folder);
    ASSERT_EQ(checkpoints(name).size(), 1U);
    const std::uint64_t step = newest_step(name);
    EXPECT_GE(step, 20U);
    EXPECT_THAT(end.err, HasSubstr(fmt::format("its state after {} steps is saved", step)));
    const Words iterations = until_iteration(step / 4 + 5, {"--workers", "0"});
    const std::string whole = hash_of(name + "-whole", iterations);
    EXPECT_EQ(resumed(name, iterations)["state_hash"].text(), whole);
  }
  process.wait();
}

TEST_F(ClusterHead, OrphanThatCannotSaveItsStateSaysSo) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Words more = kEndlessRun;
  more.insert(more.end(), {"--set", "cluster.failure.orphan_after=1s"});
  Process process(command(head_words("a", address, 1, more)));
  std::filesystem::create_directory(path("elsewhere"));
  write_text(path("elsewhere/runs"), "no folder");
  ProcessOptions elsewhere;
  elsewhere.folder = path("elsewhere");
  Process member(command({"join", address}), elsewhere);
  wait_until_training(process, "a");
  process.send(SIGKILL);
  const ProcessEnd end = member.wait();
  EXPECT_EQ(end.exit_code, 5) << end.err;
  EXPECT_THAT(end.err, HasSubstr("steps was not saved: "));
  EXPECT_THAT(end.err, HasSubstr("runs/member.0-"));
  process.wait();
}

// It knows nothing of the run that a new one goes on with from the newest checkpoint.
TEST_F(ClusterHead, MemberOfARunThatWasResumedMeanwhileIsRefused) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Process process(command(head_words("a", address, 1, kEndlessRun)));
  Process old(command({"join", address}));
  wait_until_training(process, "a", 100);
  process.send(SIGKILL);
  process.wait();
  Process again(command({"run", "--resume", path("a"), "--workers", "1", "--head-at", address}));
  const ProcessEnd end = old.wait();
  EXPECT_EQ(end.exit_code, 5) << end.err;
  EXPECT_THAT(end.err, HasSubstr("head is a new process and knows nothing of what member.0 did"));
  Process member(command({"join", address}));
  const std::size_t before = steps("a");
  ASSERT_TRUE(wait_until(again, [&] { return steps("a") > before + 20; })) << again.wait().err;
  stop(again);
  EXPECT_EQ(member.wait().exit_code, 0);
}

}  // namespace
}  // namespace troupe

// Runs over several processes whose head is lost.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kView = R"({"kind":"view")";

class ClusterHead : public ClusterRun {
 protected:
  Words endless(const Words& more) const { return command(run_words("a", kEndlessRun) + more); }
};

TEST_F(ClusterHead, LostHeadIsReplacedAndCostsNeitherStepNorBit) {
  Process process(endless(kUnhurried + Words{"--workers", "2"}));
  for (int i = 0; i < 2; ++i) {
    wait_until_training(process, steps() + 100);
    ASSERT_NO_FATAL_FAILURE(replace_head(process));
  }
  const ProcessEnd end = stop(process);
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_EQ(summary["failures_survived"].integer(), 2U);
  EXPECT_EQ(summary["views"].list().size(), 2U) << "those of the head before are told too";
  EXPECT_EQ(nodes().at("head").state, "ended");
  EXPECT_EQ(nodes().at("member.1").state, "ended") << read_text(path("a/nodes.json"));
  EXPECT_THAT(end.err, Not(HasSubstr("is killed")));
  // Not a line is missing either: what the heads had not written they were told again.
  EXPECT_EQ(steps(), summary["steps"].integer());
  expect_goes_on({"--workers", "0"});
}

TEST_F(ClusterHead, OneThatStoodStillMakesRoomForAnotherWhenItWakes) {
  Process process(
      endless({"--workers", "2", "--set", "cluster.failure={heartbeat: 50ms, dead_after: 200ms}"}));
  wait_until_training(process);
  const pid_t before = head();
  ASSERT_GT(before, 0);
  const std::size_t views = count(kView);
  ::kill(before, SIGSTOP);
  // Longer than a process of this machine may be silent.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  ::kill(before, SIGCONT);
  ASSERT_TRUE(process.wait_until([&] {
    return head() > 0 && head() != before && count(kView) > views;
  })) << process.wait().err;
  EXPECT_THAT(stop(process).err, HasSubstr("has given this head up"));
  expect_goes_on({"--workers", "0"});
}

TEST_F(ClusterHead, ThatIsLostWithAllMembersEndsTheRunAndSaysSo) {
  Process process(endless({"--workers", "2"}));
  wait_until_training(process);
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
  Process process(command(run_words("a", iterations) + Words{"--workers", "2", "--json"}));
  ASSERT_TRUE(process.wait_until([&] { return steps() == 160; })) << process.wait().err;
  ::kill(head(), SIGKILL);
  const ProcessEnd end = process.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), whole);
  EXPECT_FALSE(last_line(end)["validation"].is_null());
}

// Nobody starts another. Each saves what it has, below the folder that it was started in, or says
// that it cannot.
TEST_F(ClusterHead, MembersElsewhereWaitForAnotherAndThenEndWithTheirStatesSaved) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  const Words waiting{"--set",
                      "cluster.failure={heartbeat: 100ms, dead_after: 500ms, "
                      "orphan_after: 1s}"};
  Process process(command(head_words("a", address, 2, kEndlessRun + waiting)));
  for (const char* folder : {"elsewhere", "blocked"}) {
    std::filesystem::create_directory(path(folder));
  }
  write_text(path("blocked/runs"), "no folder");
  const auto saves = join({address}, {.folder = path("elsewhere")});
  const auto cannot = join({address}, {.folder = path("blocked")});
  wait_until_training(process);
  process.send(SIGKILL);

  const ProcessEnd end = saves->wait();
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
  EXPECT_EQ(resumed(name, iterations)["state_hash"].text(), hash_of("whole", iterations));

  const ProcessEnd unsaved = cannot->wait();
  EXPECT_EQ(unsaved.exit_code, 5) << unsaved.err;
  EXPECT_THAT(unsaved.err, HasSubstr("steps was not saved: "));
  EXPECT_THAT(unsaved.err, HasSubstr("runs/member."));
  process.wait();
}

}  // namespace
}  // namespace troupe

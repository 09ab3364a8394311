// Runs over several processes of which some are killed, stopped or told to end.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "launch/processes/end_requests.h"
#include "tests/main/cluster_run.h"
#include "tests/main/ledger_check.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;

// A process of this machine is given up after two seconds of silence.
const Words kImpatient{"--set", "cluster.failure.heartbeat=50ms", "--set",
                       "cluster.failure.dead_after=200ms"};

class ClusterDeath : public ClusterRun {
 protected:
  Words endless(const std::string& name, int workers = 2, int restarts = 0) const {
    Words words = run_words(name, kEndlessRun);
    words.insert(words.end(), {"--workers", std::to_string(workers), "--set",
                               fmt::format("cluster.failure.restart={}", restarts)});
    return command(words);
  }
  // Until the run has made steps in another View.
  void wait_until_gone_on(Process& process, const std::string& name) const {
    const auto has_gone_on = [&] {
      const std::string metrics = read_text(path(name + "/metrics.jsonl"));
      const std::size_t view = metrics.rfind(R"({"kind":"view")");
      return view != std::string::npos &&
             metrics.find(R"({"kind":"step")", view) != std::string::npos;
    };
    ASSERT_TRUE(wait_until(process, has_gone_on)) << process.wait().err;
  }
  // Whether the run has made a step with who has joined it. Before that it may lack what the others
  // know: if all of these die, it cannot go on alone.
  bool has_stepped_with(const std::string& newcomer, const std::string& name) const {
    constexpr std::string_view kView = R"({"kind":"view","step":)";
    constexpr std::string_view kStep = R"({"kind":"step","step":)";
    const std::string metrics = read_text(path(name + "/metrics.jsonl"));
    const std::size_t joined = metrics.find(fmt::format(R"("joined":["{}")", newcomer));
    const std::size_t step = metrics.rfind(kStep);
    if (joined == std::string::npos || step == std::string::npos) return false;
    const std::size_t view = metrics.rfind(kView, joined);
    const auto number = [&](std::size_t at) { return std::atoll(metrics.c_str() + at); };
    return number(step + kStep.size()) >= number(view + kView.size());
  }
  // What of four micro-batches an iteration those that died left to others, what all kept for them,
  // and when; in both files.
  void expect_told(const JsonValue& summary, const std::vector<int>& victims) const {
    std::vector<JsonValue> told;
    for (const JsonValue& line : json_lines(path("a/metrics.jsonl"))) {
      if (line["kind"].text() == "view") told.push_back(line["fields"]);
    }
    ASSERT_EQ(told.size(), summary["views"].list().size());
    for (std::size_t i = 0; i < told.size(); ++i) {
      const JsonValue& view = summary["views"].list()[i];
      // Of six replicas the last two, which are member.2's, have none as long as the others live.
      // It may come when all steps are made, too, and none is left to take over.
      const bool has_some =
          view["first_step"].integer() < summary["steps"].integer() && (victims[i] != 2 || i > 0);
      const std::uint64_t least = has_some ? 1 : 0;
      EXPECT_THAT(view["micro_batches_taken_over"].integer(), AllOf(Ge(least), Le(3 * least)))
          << read_text(path("a/summary.json"));
      EXPECT_GT(view["kept_bytes"].integer(), 0U);
      EXPECT_THAT(view["time"].text(), testing::MatchesRegex("20..-..-..T..:..:..[.]...Z"));
      for (const char* field : {"micro_batches_taken_over", "kept_bytes"}) {
        EXPECT_EQ(told[i][field].integer(), view[field].integer());
      }
      EXPECT_EQ(told[i]["time"].text(), view["time"].text());
    }
  }
  // The last committed state, and not the newest regular checkpoint.
  void expect_saved() const {
    const JsonValue summary = parse_json(read_text(path("a/summary.json")));
    EXPECT_FALSE(summary["error"].is_null());
    EXPECT_EQ(summary["steps"].integer(), newest_step("a"));
  }
};

TEST_F(ClusterDeath, KilledMembersCostNeitherStepNorBit) {
  const std::vector<std::vector<int>> deaths{{2}, {0, 1}, {1, 2}};  // of three members, in order
  for (const std::vector<int>& victims : deaths) {
    Process process(endless("a", 3));
    for (const int victim : victims) {
      wait_until_training(process, "a", steps("a") + 40);
      ASSERT_GT(member(victim), 0);
      ::kill(member(victim), SIGKILL);
      ASSERT_TRUE(wait_until_told(process, "a", fmt::format(R"("causes":["member.{})", victim)))
          << process.wait().err;
      wait_until_gone_on(process, "a");
    }
    const ProcessEnd end = stop(process);
    const JsonValue summary = parse_json(read_text(path("a/summary.json")));
    EXPECT_EQ(summary["failures_survived"].integer(), victims.size());
    EXPECT_EQ(summary["views"].list().size(), victims.size());
    expect_told(summary, victims);
    for (const int victim : victims) {
      const std::string name = fmt::format("member.{}", victim);
      EXPECT_THAT(end.err, HasSubstr("going on without " + name));
      EXPECT_EQ(nodes("a").at(name).state, "dead");
      EXPECT_EQ(nodes("a").at(name).cause, "was killed by signal 9 (Killed)");
    }
    EXPECT_EQ(nodes("a").at("head").state, "ended");
    expect_goes_on({"--workers", "0"});
    std::filesystem::remove_all(path("a"));
  }
}

// Until none is left of those that began it.
TEST_F(ClusterDeath, KilledMembersAreReplacedAndCostNeitherStepNorBit) {
  Process process(endless("a", 2, 2));
  wait_until_training(process, "a");
  for (const int victim : {1, 0}) {
    const std::string next = fmt::format("member.{}", 3 - victim);
    ASSERT_GT(member(victim), 0);
    ::kill(member(victim), SIGKILL);
    ASSERT_TRUE(wait_until(process, [&] { return has_stepped_with(next, "a"); }))
        << process.wait().err;
  }
  stop(process);
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_EQ(summary["failures_survived"].integer(), 2U);
  for (const char* name : {"member.0", "member.1"}) EXPECT_EQ(nodes("a").at(name).state, "dead");
  for (const char* name : {"member.2", "member.3"}) EXPECT_EQ(nodes("a").at(name).state, "ended");
  expect_goes_on({"--workers", "0"});
}

TEST_F(ClusterDeath, MemberJoinsWhileItTrainsAndLeavesAgain) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Process process(command(head_words("a", address, 1, kEndlessRun)));
  Process first(command({"join", address}));
  wait_until_training(process, "a");
  Process second(command({"join", address}));
  ASSERT_TRUE(
      wait_until_told(process, "a", R"("members":["member.0","member.1"],"joined":["member.1"])"))
      << read_text(path("a/log.txt"));
  second.send(SIGTERM);
  EXPECT_EQ(second.wait().exit_code, 0);
  wait_until_gone_on(process, "a");
  stop_and_expect_whole(process);
  EXPECT_EQ(first.wait().exit_code, 0);
}

TEST_F(ClusterDeath, LastMemberThatIsKilledEndsTheRunWhichGoesOnToTheSameHash) {
  Process process(endless("a"));
  for (const int victim : {1, 0}) {
    wait_for_checkpoint(process, "a", (checkpoints("a").empty() ? 0 : newest_step("a")) + 20);
    ASSERT_GT(member(victim), 0);
    ::kill(member(victim), SIGKILL);
  }
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 5) << end.err;
  EXPECT_THAT(end.err, HasSubstr("member.0 was killed by signal 9 (Killed)"));
  EXPECT_THAT(end.err, HasSubstr("was not saved; --resume"));
  expect_goes_on({"--workers", "3"});
}

TEST_F(ClusterDeath, MemberKilledBeforeItTookPartEndsTheRun) {
  for (int i = 0; i < 2; ++i) {
    const std::string name = fmt::format("a{}", i);
    Process process(endless(name));
    ASSERT_TRUE(wait_until(process, [&] { return member(i) > 0; }));
    ::kill(member(i), SIGKILL);
    const ProcessEnd end = process.wait();
    EXPECT_EQ(end.exit_code, 5) << end.err;
    EXPECT_THAT(end.err, HasSubstr(fmt::format("member.{}", i)));
    EXPECT_THAT(end.err, HasSubstr("was killed by signal 9 (Killed)"));
    EXPECT_EQ(nodes(name).at(fmt::format("member.{}", i)).state, "dead");
  }
}

// Each time when a little more of the run is over.
TEST_F(ClusterDeath, MemberKilledTowardsTheEndLeavesTheRunWhole) {
  const Words words = run_words(
      "a", {"--workers", "2", "--json", "--set", "actors.validator={every: 1 epoch, events: 10}"});
  const std::string hash =
      hash_of("whole", {"--set", "actors.validator={every: 1 epoch, events: 10}"});
  for (const std::size_t steps_before : {80u, 86u, 88u}) {
    std::filesystem::remove_all(path("a"));
    Process process(command(words));
    wait_until(process, [&] { return steps("a") >= steps_before; });
    if (const pid_t victim = member(steps_before % 4 == 0); victim > 0) ::kill(victim, SIGKILL);
    const ProcessEnd end = process.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(last_line(end)["state_hash"].text(), hash);
    expect_clean_ledger(path("a"), 88);
  }
}

TEST_F(ClusterDeath, KilledHeadEndsItsMembersAndTheSupervisorTells) {
  Process process(endless("a"));
  wait_for_checkpoint(process, "a", 12);
  ASSERT_GT(head(), 0);
  ::kill(head(), SIGKILL);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 137) << end.err;
  EXPECT_THAT(end.err, HasSubstr("the head was killed by signal 9 (Killed)"));
  EXPECT_THAT(end.err, HasSubstr("--resume"));
  EXPECT_TRUE(all_gone());
  EXPECT_EQ(nodes("a").at("head").state, "dead");
  EXPECT_EQ(nodes("a").at("head").cause, "was killed by signal 9 (Killed)");
  expect_goes_on({"--workers", "2"});
}

TEST_F(ClusterDeath, KilledSupervisorLeavesNoProcess) {
  for (const int at_step : {0, 12}) {
    Process process(endless(fmt::format("a{}", at_step)));
    if (at_step == 0) {
      ASSERT_TRUE(wait_until(process, [&] { return member(0) > 0; }));
    } else {
      wait_for_checkpoint(process, fmt::format("a{}", at_step), 12);
    }
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().signal, SIGKILL);
    EXPECT_TRUE(all_gone());
  }
}

TEST_F(ClusterDeath, StoppedMemberIsNoticedBySilenceAndEndsWhenItWakes) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Words words = kEndlessRun;
  words.insert(words.end(), kImpatient.begin(), kImpatient.end());
  Process process(command(head_words("a", address, 2, words)));
  Process first(command({"join", address}));
  Process second(command({"join", address}));
  wait_until_training(process, "a");
  second.send(SIGSTOP);
  wait_until_gone_on(process, "a");
  second.send(SIGCONT);
  const ProcessEnd woken = second.wait();
  EXPECT_EQ(woken.exit_code, 5) << woken.err;
  EXPECT_THAT(woken.err, HasSubstr("head"));
  const ProcessEnd end = stop(process);
  EXPECT_THAT(end.err, HasSubstr("has not been heard of for"));
  EXPECT_EQ(first.wait().exit_code, 0);
  const auto known = nodes("a");
  const auto dead = std::find_if(known.begin(), known.end(),
                                 [](const auto& node) { return node.second.state == "dead"; });
  ASSERT_NE(dead, known.end());
  EXPECT_THAT(dead->second.cause, HasSubstr("has not been heard of"));
  EXPECT_GT(dead->second.pid, 0);
  expect_goes_on({"--workers", "2"});
}

// The members of a supervisor that it has to kill, because they cannot end.
TEST_F(ClusterDeath, StoppedMemberOfThisHostIsKilledWhenTheRunHasEnded) {
  Words words = endless("a");
  words.insert(words.end(), kImpatient.begin(), kImpatient.end());
  Process process(words);
  wait_until_training(process, "a");
  ::kill(member(0), SIGSTOP);
  wait_until_gone_on(process, "a");
  const ProcessEnd end = stop(process);
  EXPECT_THAT(end.err, AllOf(HasSubstr("member.0 has not been heard of for"),
                             HasSubstr("the run has ended, and it has not")));
}

// A closed lid: nobody could hear anybody, and nobody is to blame.
TEST_F(ClusterDeath, RunThatSleptAsAWholeGoesOnToTheSameHash) {
  Words words = run_words("a", kEndlessRun);
  words.insert(words.end(), {"--workers", "2", "--set",
                             "cluster.failure={heartbeat: 100ms, dead_after: 300ms}"});
  Process process(command(words));
  wait_for_checkpoint(process, "a", 12);
  const std::vector<pid_t> all{process.pid(), head(), member(0), member(1)};
  for (const int number : {SIGSTOP, SIGCONT}) {
    for (const pid_t one : all) {
      ASSERT_GT(one, 0);
      ::kill(one, number);
    }
    // Longer than a process of this machine may be silent, which is what is tested.
    if (number == SIGSTOP) std::this_thread::sleep_for(std::chrono::milliseconds(4500));
  }
  wait_for_checkpoint(process, "a", newest_step("a") + 40);
  ASSERT_TRUE(process.running()) << process.wait().err;
  stop(process);
  expect_goes_on({"--workers", "2"});
}

// As service managers and batch systems do.
TEST_F(ClusterDeath, SignalToAllProcessesOfTheRunSavesItsState) {
  Process process(endless("a"));
  wait_until_training(process, "a");
  for (const pid_t one : {head(), member(0), member(1), process.pid()}) {
    ASSERT_GT(one, 0);
    ::kill(one, SIGTERM);
  }
  const ProcessEnd end = process.wait();
  EXPECT_THAT(end.exit_code, testing::AnyOf(143, 5)) << end.err;
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_EQ(summary["steps"].integer(), newest_step("a"));
}

TEST_F(ClusterDeath, MemberToldToEndLeavesTheOthersToGoOn) {
  const Words iterations = until_iteration(300);
  const std::string whole = hash_of("whole", iterations);
  Words words = run_words("a", iterations);
  words.insert(words.end(), {"--workers", "2", "--json"});
  Process process(command(words));
  wait_until_training(process, "a");
  ::kill(member(1), SIGTERM);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("member.1 has left the run: it was told to end"));
  EXPECT_EQ(nodes("a").at("member.1").state, "ended");
  EXPECT_THAT(nodes("a").at("member.1").cause, HasSubstr("it was told to end"));
  EXPECT_EQ(last_line(end)["state_hash"].text(), whole);
  expect_clean_ledger(path("a"), 1200);
}

TEST_F(ClusterDeath, LastMemberToldToEndEndsTheRunCleanly) {
  Process process(endless("a"));
  wait_until_training(process, "a");
  ::kill(member(1), SIGTERM);
  wait_until_gone_on(process, "a");
  ::kill(member(0), SIGTERM);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 5) << end.err;
  EXPECT_THAT(end.err, HasSubstr("member.0 has left the run"));
  expect_saved();
  expect_goes_on({"--workers", "2"});
}

TEST_F(ClusterDeath, SecondSignalEndsEverythingAtOnce) {
  Process process(endless("a"));
  wait_for_checkpoint(process, "a", 12);
  // A head that does not answer the first.
  ::kill(head(), SIGSTOP);
  process.send(SIGINT);
  // What arrives within a moment of when it is heard belongs to the same request.
  std::this_thread::sleep_for(2 * launch::EndRequests::kMoment);
  process.send(SIGTERM);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 143) << end.err;
  EXPECT_TRUE(all_gone());
  expect_goes_on({"--workers", "2"});
}

TEST_F(ClusterDeath, HeadThatCannotWriteItsCheckpointsEndsWithTheCause) {
  Words words = run_words("a", kEndlessRun);
  words.insert(words.end(), {"--workers", "2"});
  ProcessOptions full;
  full.largest_file_bytes = 2000;
  const ProcessEnd end = call(words, full);
  EXPECT_EQ(end.exit_code, 4) << end.err;
  EXPECT_THAT(end.err, HasSubstr(path("a")));
}

TEST_F(ClusterDeath, FolderThatCannotBeMadeIsRefusedBeforeAnythingTrains) {
  write_text(path("file"), "no folder");
  const ProcessEnd end = call(run_words("file/a", {"--workers", "2"}));
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr(path("file/a")));
  EXPECT_THAT(end.err, Not(HasSubstr("is here")));
}

}  // namespace
}  // namespace troupe

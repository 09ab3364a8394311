// Runs over several processes of which some are killed, stopped or told to end.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

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
    Words words =
        run_words(name, kEndlessRun) + Words{"--workers", std::to_string(workers), "--set",
                                             fmt::format("cluster.failure.restart={}", restarts)};
    return command(words);
  }
  // Until the run has made steps in another View.
  void wait_until_gone_on(Process& process) const {
    const auto has_gone_on = [&] {
      const std::string metrics = read_text(path("a/metrics.jsonl"));
      const std::size_t view = metrics.rfind(R"({"kind":"view")");
      return view != std::string::npos &&
             metrics.find(R"({"kind":"step")", view) != std::string::npos;
    };
    ASSERT_TRUE(process.wait_until(has_gone_on)) << process.wait().err;
  }
  // Whether the run has made a step with a newcomer, which before that may lack what the others
  // know: if all of them die, it cannot go on alone.
  bool has_stepped_with(const std::string& newcomer) const {
    constexpr std::string_view kView = R"({"kind":"view","step":)";
    constexpr std::string_view kStep = R"({"kind":"step","step":)";
    const std::string metrics = read_text(path("a/metrics.jsonl"));
    const std::size_t joined = metrics.find(fmt::format(R"("joined":["{}")", newcomer));
    const std::size_t step = metrics.rfind(kStep);
    if (joined == std::string::npos || step == std::string::npos) return false;
    const std::size_t view = metrics.rfind(kView, joined);
    const auto number = [&](std::size_t at) { return std::atoll(metrics.c_str() + at); };
    return number(step + kStep.size()) >= number(view + kView.size());
  }
  // Both files tell of each View how many of the four micro-batches of an iteration the others took
  // over, what all kept for them, and when that was.
  void expect_told(const JsonValue& summary) const {
    std::vector<JsonValue> told;
    for (const JsonValue& line : json_lines(path("a/metrics.jsonl"))) {
      if (line["kind"].text() == "view") told.push_back(line["fields"]);
    }
    const auto& views = summary["views"].list();
    ASSERT_EQ(told.size(), views.size());
    for (std::size_t i = 0; i < told.size(); ++i) {
      // When all steps are made none is left to take over. A run that is told to end may make none
      // of those that were.
      const bool has_some = views[i]["first_step"].integer() < summary["steps"].integer();
      const std::uint64_t least = has_some ? 1 : 0;
      EXPECT_THAT(views[i]["micro_batches_taken_over"].integer(), AllOf(Ge(least), Le(3U)));
      EXPECT_GT(views[i]["kept_bytes"].integer(), 0U);
      EXPECT_THAT(views[i]["time"].text(), testing::MatchesRegex("20..-..-..T..:..:..[.]...Z"));
      for (const char* field : {"micro_batches_taken_over", "kept_bytes"}) {
        EXPECT_EQ(told[i][field].integer(), views[i][field].integer());
      }
      EXPECT_EQ(told[i]["time"].text(), views[i]["time"].text());
    }
  }
  // The last committed state, and not the newest regular checkpoint.
  void expect_saved() const {
    const JsonValue summary = parse_json(read_text(path("a/summary.json")));
    EXPECT_FALSE(summary["error"].is_null());
    EXPECT_EQ(summary["steps"].integer(), newest_step("a"));
  }
};

TEST_F(ClusterDeath, CostsNoBitWhereMicroBatchesShareStatistics) {
  Process process(endless("a", 3, 1) + kSharedNorms);
  wait_until_training(process);
  ::kill(member(1), SIGKILL);
  wait_until_gone_on(process);
  wait_until_training(process, steps() + 60);
  ::kill(member(2), SIGKILL);
  ASSERT_TRUE(wait_until_told(process, R"("joined":["member.)")) << log();
  wait_until_training(process, steps() + 60);
  stop_and_expect_whole(process, kSharedNorms);
}

// The one that leads dies first.
TEST_F(ClusterDeath, KilledMembersCostNeitherStepNorBit) {
  Process process(endless("a", 3));
  for (const int victim : {0, 1}) {
    wait_until_training(process, steps() + 40);
    ASSERT_GT(member(victim), 0);
    ::kill(member(victim), SIGKILL);
    ASSERT_TRUE(wait_until_told(process, fmt::format(R"("causes":["member.{})", victim)))
        << process.wait().err;
    wait_until_gone_on(process);
  }
  const ProcessEnd end = stop(process);
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_EQ(summary["failures_survived"].integer(), 2U);
  EXPECT_EQ(summary["views"].list().size(), 2U);
  expect_told(summary);
  for (const std::string name : {"member.0", "member.1"}) {
    EXPECT_THAT(end.err, HasSubstr("going on without " + name));
    EXPECT_EQ(nodes().at(name).state, "dead");
    EXPECT_EQ(nodes().at(name).cause, "was killed by signal 9 (Killed)");
  }
  EXPECT_EQ(nodes().at("head").state, "ended");
  expect_goes_on({"--workers", "0"});
}

// Until none is left of those that began it.
TEST_F(ClusterDeath, KilledMembersAreReplacedAndCostNeitherStepNorBit) {
  Process process(endless("a", 2, 2));
  wait_until_training(process);
  for (const int victim : {1, 0}) {
    const std::string next = fmt::format("member.{}", 3 - victim);
    ASSERT_GT(member(victim), 0);
    ::kill(member(victim), SIGKILL);
    ASSERT_TRUE(process.wait_until([&] { return has_stepped_with(next); })) << process.wait().err;
  }
  stop(process);
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_EQ(summary["failures_survived"].integer(), 2U);
  for (const char* name : {"member.0", "member.1"}) EXPECT_EQ(nodes().at(name).state, "dead");
  for (const char* name : {"member.2", "member.3"}) EXPECT_EQ(nodes().at(name).state, "ended");
  expect_goes_on({"--workers", "0"});
}

// Sixteen members are four rows of four, fifteen are one ring.
TEST_F(ClusterDeath, RingOfRingsThatBreaksAndIsMadeAgainCostsNeitherStepNorBit) {
  Process process(endless("a", 16, 2));
  wait_until_training(process);
  EXPECT_THAT(log(), HasSubstr("ring: 4 rows, each a ring of its own, begin with member.0, "
                               "member.4, member.8, member.12"));
  for (const int victim : {6, 0}) {
    const std::string next = victim == 6 ? "member.16" : "member.17";
    ASSERT_GT(member(victim), 0);
    ::kill(member(victim), SIGKILL);
    ASSERT_TRUE(process.wait_until([&] { return has_stepped_with(next); })) << process.wait().err;
  }
  stop(process);
  EXPECT_EQ(parse_json(read_text(path("a/summary.json")))["failures_survived"].integer(), 2U);
  expect_goes_on({"--workers", "0"});
}

// With data that lie elsewhere, and with an epoch that ends with fewer micro-batches (180 events
// are 11 iterations of 16, and 4 more). Both members of the beginning are killed, and others join.
TEST_F(ClusterDeath, DataOfEveryKindGoOnToTheSameHashBehindKillsAndJoins) {
  const std::vector<std::pair<std::string, Words>> kinds{
      {"disk", {"--set", "data.cache=disk", "--set", "data.cache_folder=" + path("cache")}},
      {"shard", {"--set", "data.cache=shard", "--set", "data.shard_memory=64KiB"}},
      {"partial", {"--set", "train.remainder=partial"}}};
  for (const auto& [kind, words] : kinds) {
    SCOPED_TRACE(kind);
    std::filesystem::remove_all(path("a"));
    Process process(endless("a", 2, 2) + words);
    wait_until_training(process);
    for (const int victim : {1, 0}) {
      const std::string next = fmt::format("member.{}", 3 - victim);
      ASSERT_GT(member(victim), 0);
      ::kill(member(victim), SIGKILL);
      ASSERT_TRUE(process.wait_until([&] { return has_stepped_with(next); })) << process.wait().err;
    }
    stop(process);
    const std::uint64_t iterations = newest_step("a") / 4 + 25;
    const Words usual = kind == "partial" ? words : Words{};
    const std::string whole = hash_of("whole", until_iteration(iterations, usual));
    const JsonValue end =
        resumed("a", until_iteration(iterations, usual + Words{"--workers", "3"}));
    EXPECT_EQ(end["state_hash"].text(), whole);
    const ProcessEnd ledger = check_ledger(path("a"));
    EXPECT_EQ(ledger.exit_code, 0) << ledger.out << ledger.err;
    std::filesystem::remove_all(path("whole"));
  }
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
  EXPECT_EQ(nodes().at("head").state, "dead");
  EXPECT_EQ(nodes().at("head").cause, "was killed by signal 9 (Killed)");
  expect_goes_on({"--workers", "2"});
}

TEST_F(ClusterDeath, KilledSupervisorLeavesNoProcess) {
  for (const int at_step : {0, 12}) {
    Process process(endless(fmt::format("a{}", at_step)));
    if (at_step == 0) {
      ASSERT_TRUE(process.wait_until([&] { return member(0) > 0; }));
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
  Process process(command(head_words("a", address, 2, kEndlessRun + kImpatient)));
  Process first(command({"join", address}));
  Process second(command({"join", address}));
  wait_until_training(process);
  second.send(SIGSTOP);
  wait_until_gone_on(process);
  second.send(SIGCONT);
  const ProcessEnd woken = second.wait();
  EXPECT_EQ(woken.exit_code, 5) << woken.err;
  EXPECT_THAT(woken.err, HasSubstr("head"));
  const ProcessEnd end = stop(process);
  EXPECT_THAT(end.err, HasSubstr("has not been heard of for"));
  EXPECT_EQ(first.wait().exit_code, 0);
  const auto known = nodes();
  const auto dead = std::find_if(known.begin(), known.end(),
                                 [](const auto& node) { return node.second.state == "dead"; });
  ASSERT_NE(dead, known.end());
  EXPECT_THAT(dead->second.cause, HasSubstr("has not been heard of"));
  EXPECT_GT(dead->second.pid, 0);
  expect_goes_on({"--workers", "2"});
}

// A closed lid: nobody could hear anybody, and nobody is to blame.
TEST_F(ClusterDeath, RunThatSleptAsAWholeGoesOnToTheSameHash) {
  Words words =
      run_words("a", kEndlessRun) +
      Words{"--workers", "2", "--set", "cluster.failure={heartbeat: 100ms, dead_after: 300ms}"};
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
  wait_until_training(process);
  for (const pid_t one : {head(), member(0), member(1), process.pid()}) {
    ASSERT_GT(one, 0);
    ::kill(one, SIGTERM);
  }
  const ProcessEnd end = process.wait();
  EXPECT_THAT(end.exit_code, testing::AnyOf(143, 5)) << end.err;
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_EQ(summary["steps"].integer(), newest_step("a"));
}

TEST_F(ClusterDeath, MembersToldToEndLeaveAndTheLastOneEndsTheRunCleanly) {
  Process process(endless("a"));
  wait_until_training(process);
  ::kill(member(1), SIGTERM);
  // Behind the View in which it hands over its work.
  ASSERT_TRUE(process.wait_until([&] { return nodes().at("member.1").state == "ended"; }));
  wait_until_gone_on(process);
  EXPECT_THAT(log(), HasSubstr("member.1 has left the run: it was told to end"));
  EXPECT_THAT(nodes().at("member.1").cause, HasSubstr("it was told to end"));
  ::kill(member(0), SIGTERM);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 5) << end.err;
  EXPECT_THAT(end.err, HasSubstr("member.0 has left the run"));
  expect_saved();
  expect_goes_on({"--workers", "2"});
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

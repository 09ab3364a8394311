// Logical workers that train alone between outer steps, over processes that come and go.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <string>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"
#include "tests/main/ledger_check.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// An outer step takes 4 workers x 2 iterations x 4 events.
constexpr std::uint64_t kEvents = 32;
const Words kLocal{"--set", "train.strategy={kind: local, workers: 4, steps: 2}"};
const Words kInInt8{"--set", "train.strategy={kind: local, workers: 4, steps: 2, precision: int8}"};

const Words kTree{"--set", "train.strategy={kind: tree, sites: 2, steps: 2}"};

class LocalStrategy : public ClusterRun {};
class LocalStrategyIn : public LocalStrategy, public testing::WithParamInterface<Words> {};

TEST_P(LocalStrategyIn, AnyNumberOfProcessesGivesOneHashAndLedger) {
  const JsonValue alone = summary_of("alone", GetParam());
  const std::string hash = alone["state_hash"].text();
  EXPECT_NE(hash, hash_of("synchronous"));
  for (const char* workers : {"1", "2", "3", "5"}) {
    const JsonValue summary = summary_of(workers, GetParam() + Words{"--workers", workers});
    EXPECT_EQ(summary["state_hash"].text(), hash) << workers;
    EXPECT_EQ(summary["ledger"]["sum"].text(), alone["ledger"]["sum"].text());
  }
}

TEST_P(LocalStrategyIn, MembersThatDieAndComeCostNoBit) {
  const Words words = GetParam() + kEndlessRun;
  Process process(command(run_words("a", words + Words{"--workers", "3"})));
  wait_until_training(process);
  ::kill(member(1), SIGKILL);
  ASSERT_TRUE(wait_until_told(process, R"("joined":["member.)")) << log();
  wait_until_training(process, steps() + 20);
  ::kill(member(2), SIGTERM);
  wait_until_training(process, steps() + 20);
  stop_and_expect_whole(process, words, kEvents);
}

// Nobody is replaced here. So the third member is the one that joins, and it makes the last steps
// alone.
TEST_P(LocalStrategyIn, MemberThatJoinsCanGoOnAloneAndCostsNoBit) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  const Words words = GetParam() + kEndlessRun;
  const Words there{"--workers", "2",
                    "--set",     fmt::format("cluster.listen=\"{}\"", address),
                    "--set",     "cluster.failure.restart=0"};
  Process process(command(run_words("a", words + there)));
  wait_until_training(process);
  const auto newcomer = join({address});
  ASSERT_TRUE(wait_until_told(process, R"("joined":["member.2"])")) << newcomer->err() << log();
  wait_until_training(process, steps() + 20);
  ::kill(member(0), SIGKILL);
  ::kill(member(1), SIGKILL);
  ASSERT_TRUE(wait_until_told(process, R"("members":["member.2"])")) << log();
  wait_until_training(process, steps() + 20);
  stop_and_expect_whole(process, words, kEvents);
  EXPECT_EQ(newcomer->wait().exit_code, 0) << newcomer->err();
}

TEST_P(LocalStrategyIn, FiveMembersThatDieJoinAndLeaveAndALostHeadCostNoBit) {
  const Words words = GetParam() + kEndlessRun + kUnhurried;
  expect_five_members_whole(words, {}, kEvents);
}

TEST_P(LocalStrategyIn, GoesOnFromAnyOuterStepOnAnyNumberOfProcesses) {
  const std::string whole = hash_of("whole", GetParam() + until_iteration(9));
  hash_of("b", GetParam() + until_iteration(4));
  EXPECT_EQ(resumed("b", until_iteration(9) + Words{"--workers", "2"})["state_hash"].text(), whole);
}

std::string name_of(const testing::TestParamInfo<Words>& info) {
  return std::vector<std::string>{"Exact", "Int8", "Tree"}.at(info.index);
}

INSTANTIATE_TEST_SUITE_P(Precisions, LocalStrategyIn, testing::Values(kLocal, kInInt8, kTree),
                         name_of);

TEST_F(LocalStrategy, TreeMakesTheBitsOfLocalWithMembersSharingItsWorkers) {
  const Words two{"--set", "train.strategy={kind: local, workers: 2, steps: 2}"};
  const JsonValue alone = summary_of("alone", two);
  for (const char* workers : {"1", "2", "3", "4", "5"}) {
    for (const char* replicas : {"1", "2"}) {
      const JsonValue summary =
          summary_of(std::string("tree") + workers + replicas,
                     kTree + Words{"--workers", workers, "--set",
                                   std::string("actors.replica.count=") + replicas});
      EXPECT_EQ(summary["state_hash"].text(), alone["state_hash"].text()) << workers << replicas;
      EXPECT_EQ(summary["ledger"]["sum"].text(), alone["ledger"]["sum"].text());
    }
  }
}

TEST_F(LocalStrategy, WorkerOfASiteThatDivergesIsNamedAsOneOfLocal) {
  const ProcessEnd end =
      run("a", kTree + Words{"--workers", "4", "--set", "train.optimiser={g: sgd, d: sgd}", "--set",
                             "train.learning_rate={g: 1e30, d: 1e30}"});
  EXPECT_EQ(end.exit_code, 6) << end.err;
  EXPECT_THAT(end.err, testing::ContainsRegex("(generator|discriminator|loss/[gd])/.* of worker "
                                              "[01] is NaN or"));
}

TEST_F(LocalStrategy, SitesThatDoNotShareOutMicroBatchesEvenlyAreRefused) {
  const ProcessEnd end =
      call({"check", path("toy.yaml"), "--set", "train.strategy={kind: tree, sites: 3, steps: 2}"});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, AllOf(HasSubstr("train.strategy.sites"), HasSubstr("evenly")));
}

TEST_F(LocalStrategy, PrecisionIsPartOfTheTopologyAndExactIsWhatItWas) {
  const Words exact{"--set",
                    "train.strategy={kind: local, workers: 4, steps: 2, precision: exact}"};
  EXPECT_EQ(hash_of("named", exact), hash_of("unnamed", kLocal));
  EXPECT_NE(hash_of("rounded", kInInt8), hash_of("exact", kLocal));
  const ProcessEnd end = call(Words{"run", "--resume", path("named")} + kInInt8);
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("train.strategy"));
}

TEST_F(LocalStrategy, OtherSettingsGiveOneHashOnAnyNumberOfProcesses) {
  const std::vector<Words> cases{
      {"--set", "train.remainder=partial"},
      {"--set", "model.precision=bf16"},
      {"--set", "train.optimiser={g: lamb, d: lars}"},
      {"--set",
       "train.learning_rate={g: {policy: warmup, warmup_iterations: 5, rate: 1e-3}, d: 1e-3}"}};
  std::set<std::string> hashes;
  for (const Words& more : cases) {
    const std::string name = std::to_string(hashes.size());
    const std::string hash = hash_of("alone" + name, kLocal + more);
    EXPECT_EQ(hash_of("three" + name, kLocal + more + Words{"--workers", "3"}), hash) << more[1];
    EXPECT_TRUE(hashes.insert(hash).second) << more[1];
  }
}

// A rate by which weights are of no use from the worker's first iteration on.
TEST_F(LocalStrategy, WorkerThatDivergesEndsTheRunAndNamesATensor) {
  const ProcessEnd end =
      run("a", kLocal + Words{"--set", "train.optimiser={g: sgd, d: sgd}", "--set",
                              "train.learning_rate={g: 1e30, d: 1e30}"});
  EXPECT_EQ(end.exit_code, 6) << end.err;
  EXPECT_THAT(end.err, testing::ContainsRegex("(generator|discriminator|loss/[gd])/.* of worker "
                                              "[0-3] is NaN or"));
}

TEST_F(LocalStrategy, CheckAndPlanAndInspectSayThatThereAreWorkers) {
  const std::string line =
      "\nstrategy: local, 4 workers; each makes 2 iterations of 4 events alone in an outer step, "
      "which counts as one iteration; outer nesterov, rate 0.7, momentum 0.9\n";
  EXPECT_THAT(call(Words{"check", path("toy.yaml")} + kLocal).out,
              AllOf(HasSubstr(" MB for the workers of an outer step"), HasSubstr(line)));
  EXPECT_THAT(call({"check", path("toy.yaml")}).out, Not(HasSubstr("strategy")));
  EXPECT_THAT(call(Words{"check", path("toy.yaml")} + kInInt8).out,
              HasSubstr("momentum 0.9; changes are summed in int8\n"));
  const Words one{"--set", "actors.replica.count=1"};
  EXPECT_THAT(call(Words{"check", path("toy.yaml"), "--workers", "4"} + one + kTree).out,
              AllOf(HasSubstr("strategy: tree, 2 sites; the members of each make 2 iterations of 8 "
                              "events together in an outer step, "),
                    HasSubstr("\nsites: member.0, member.1; member.2, member.3\n")));
  const Words six = one + Words{"--workers", "6"};
  EXPECT_THAT(call(Words{"check", path("toy.yaml")} + six + kLocal).err,
              HasSubstr("warning: 2 of the 6 members have nothing to compute, as an iteration has "
                        "4 workers (train.strategy.workers); they wait until another one leaves or "
                        "is lost\n"));
  EXPECT_THAT(run("six", six + until_iteration(1)).err,
              HasSubstr("2 of the 6 members have nothing to compute, as an iteration has 4 "
                        "micro-batches (train.micro_batches)"));
  const Words plan{"plan", path("toy.yaml"), "--iterations", "1"};
  EXPECT_THAT(call(plan + kLocal, {.folder = folder_.path()}).out, HasSubstr(line));

  hash_of("a", kLocal + until_iteration(2));
  hash_of("b", until_iteration(2));
  EXPECT_THAT(call({"inspect", checkpoint("a", 0)}).out, HasSubstr("4 workers of 8 events each\n"));
  EXPECT_THAT(call({"inspect", checkpoint("b", 0)}).out, HasSubstr("4 micro-batches of 4\n"));
  EXPECT_EQ(last_line(call({"inspect", checkpoint("a", 0), "--json"}))["workers"].integer(), 4);
  EXPECT_TRUE(last_line(call({"inspect", checkpoint("b", 0), "--json"}))["workers"].is_null());
}

TEST_F(LocalStrategy, LossesOfANetworkThatNoStepTrainsAreNotTold) {
  hash_of("a", kLocal + until_iteration(2, {"--set", "train.schedule=[d_both]"}));
  EXPECT_EQ(count("d/generation"), 3U) << "of the run, and of two steps";
  EXPECT_EQ(count("g/generation"), 0U);
}

TEST_F(LocalStrategy, StateOfARunWithoutWorkersIsRefusedByNameOfTheStrategy) {
  hash_of("a", kLocal + until_iteration(2));
  hash_of("b", until_iteration(2));
  std::filesystem::copy_file(checkpoint("b", 0), checkpoint("a", 0),
                             std::filesystem::copy_options::overwrite_existing);
  const ProcessEnd end = call({"run", "--resume", path("a")});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err,
              HasSubstr("trained without workers (train.strategy: local or tree), which the "
                        "topology has"));
}

TEST_F(LocalStrategy, MoreWorkersThanFitASumInInt8AreRefusedAtTheirLine) {
  const auto checked = [&](int workers, const char* precision) {
    write_text(path("many.yaml"),
               fmt::format("name: many\nmodel: {{zoo: toy}}\ndata: {{train: toy.h5}}\n"
                           "train:\n  micro_batch: 4\n  micro_batches: 257\n  strategy:\n"
                           "    kind: local\n    workers: {}\n    precision: {}\n",
                           workers, precision));
    return call({"check", path("many.yaml")});
  };
  const ProcessEnd end = checked(257, "int8");
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("many.yaml:9"));
  EXPECT_THAT(end.err, HasSubstr("the sum of 257 workers' changes in int8 does not fit 16 bits"));
  EXPECT_THAT(checked(257, "exact").err, Not(HasSubstr("does not fit")));
  EXPECT_THAT(checked(1, "int8").err, Not(HasSubstr("does not fit")));
}

TEST_F(LocalStrategy, RefusesWhatDoesNotGoWithItAndSaysWhere) {
  const std::vector<std::pair<Words, std::string>> cases{
      {{"--set", "train.micro_batches=6"}, "cannot be shared out to 4 workers evenly"},
      {{"--set", "actors.reducer.reduction=int8"}, "take reduction exact"},
      {{"--set", "train.scaling=weak"}, "take strong"}};
  for (const auto& [more, what] : cases) {
    const ProcessEnd end = call(Words{"check", path("toy.yaml")} + kLocal + more);
    EXPECT_NE(end.exit_code, 0) << what;
    EXPECT_THAT(end.err, HasSubstr(what));
  }
}

}  // namespace
}  // namespace troupe

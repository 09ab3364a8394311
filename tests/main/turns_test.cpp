// Workers that take turns, in one process and over processes that come and go.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"
#include "tests/main/ledger_check.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A worker's turn takes 2 iterations x 4 events, and is a step. A quorum's steps take three workers
// and one.
std::uint64_t steps_of_iteration(const std::string& kind) { return kind == "quorum" ? 2 : 4; }
std::uint64_t events_of_step(const std::string& kind) { return 4 * 8 / steps_of_iteration(kind); }
Words turns(const std::string& kind) {
  const std::string of = kind == "quorum" ? ", of: 3" : "";
  return {"--set", "train.strategy={kind: " + kind + of + ", workers: 4, steps: 2}"};
}

// Two workers of two parts each, which members share. A turn has as many events as one above.
Words turns_in_sites(const std::string& kind, const char* word = "sites") {
  const std::string of = kind == "quorum" ? ", of: 1" : "";
  return {"--set", fmt::format("train.strategy={{kind: {}{}, {}: 2, steps: 2}}", kind, of, word)};
}
constexpr std::uint64_t kEventsOfASite = 2 * 2 * 4;

class Turns : public ClusterRun {
 protected:
  Words order_of(const std::string& name) const {
    return {"--order", path(name) + "/metrics.jsonl"};
  }
};
class TurnsOf : public Turns, public testing::WithParamInterface<const char*> {};

TEST_P(TurnsOf, OrderOfAnyNumberOfProcessesMakesItsBitsAgainOnAnyOther) {
  const Words words = turns(GetParam());
  for (const char* workers : {"1", "2", "3"}) {
    const std::string there = fmt::format("there{}", workers),
                      here = fmt::format("here{}", workers);
    const JsonValue summary = summary_of(there, words + Words{"--workers", workers});
    expect_clean_ledger(path(there), summary["steps"].integer(), events_of_step(GetParam()));
    EXPECT_EQ(hash_of(here, words + order_of(there)), summary["state_hash"].text()) << workers;
  }
  const std::string alone = hash_of("alone", words);
  for (const char* workers : {"1", "2", "3"}) {
    const std::string name = fmt::format("again{}", workers);
    const Words order{"--order", path("alone")};
    EXPECT_EQ(hash_of(name, words + order + Words{"--workers", workers}), alone);
  }
}

TEST_P(TurnsOf, MembersThatDieAndLeaveCostNoBit) {
  const Words words = turns(GetParam()) + kEndlessRun;
  Process process(command(run_words("a", words + Words{"--workers", "3"})));
  wait_until_training(process);
  ::kill(member(1), SIGKILL);
  wait_until_training(process, steps() + 20);
  ::kill(member(2), SIGTERM);
  wait_until_training(process, steps() + 20);
  stop_and_expect_whole(process, words + order_of("a"), events_of_step(GetParam()));
}

TEST_P(TurnsOf, FiveMembersThatDieJoinAndLeaveAndALostHeadCostNoBit) {
  const Words words = turns(GetParam()) + kEndlessRun + kUnhurried;
  expect_five_members_whole(words, order_of("a"), events_of_step(GetParam()));
}

TEST_P(TurnsOf, SitesOfSeveralProcessesMakeTheBitsOfWorkersInTheirOrder) {
  const Words workers = turns_in_sites(GetParam(), "workers");
  for (const auto& [processes, replicas] : {std::pair{"4", "1"}, {"3", "1"}, {"2", "2"}}) {
    const std::string there = fmt::format("there{}", processes);
    const Words sites =
        turns_in_sites(GetParam()) +
        Words{"--workers", processes, "--set", std::string("actors.replica.count=") + replicas};
    const JsonValue summary = summary_of(there, sites);
    expect_clean_ledger(path(there), summary["steps"].integer(), kEventsOfASite);
    EXPECT_EQ(hash_of("alone" + there, workers + order_of(there)), summary["state_hash"].text())
        << processes;
  }
  const std::string alone = hash_of("alone", workers);
  EXPECT_EQ(
      hash_of("sites", turns_in_sites(GetParam()) + order_of("alone") + Words{"--workers", "4"}),
      alone);
}

TEST_P(TurnsOf, MembersOfSitesThatDieAndLeaveCostNoBit) {
  const Words words = turns_in_sites(GetParam()) + kEndlessRun;
  Process process(command(run_words("a", words + Words{"--workers", "4"})));
  wait_until_training(process);
  ::kill(member(1), SIGKILL);
  wait_until_training(process, steps() + 20);
  ::kill(member(2), SIGTERM);
  wait_until_training(process, steps() + 20);
  stop_and_expect_whole(process, words + order_of("a"), kEventsOfASite);
}

TEST_P(TurnsOf, SitesEndEarlyAfterTheStepAfterWhichWorkersDo) {
  const Words stop{"--set", "train.epochs=1000", "--set",
                   "train.stop={metric: d, min_delta: 1e6, patience: 2}"};
  const JsonValue summary =
      summary_of("there", turns_in_sites(GetParam()) + stop + Words{"--workers", "4"});
  EXPECT_THAT(summary["ended_early"].text(),
              HasSubstr("has not fallen by more than 1e+06 for 2 epochs"));
  const Words workers = turns_in_sites(GetParam(), "workers") + stop + order_of("there");
  EXPECT_EQ(hash_of("alone", workers), summary["state_hash"].text());
}

TEST_P(TurnsOf, GoesOnFromACheckpointOnOtherProcesses) {
  hash_of("a", turns(GetParam()) + until_iteration(4));
  const JsonValue end = resumed("a", until_iteration(9) + Words{"--workers", "2"});
  expect_clean_ledger(path("a"), 9 * steps_of_iteration(GetParam()), events_of_step(GetParam()));
  EXPECT_EQ(hash_of("b", turns(GetParam()) + until_iteration(9) + order_of("a")),
            end["state_hash"].text());
}

// Some replicas have nothing to compute in the iteration that it goes on with.
TEST_P(TurnsOf, RunGoesOnFromTheMidstOfAnIteration) {
  const Words words = turns(GetParam()) + kEndlessRun;
  for (std::uint32_t draw = 0; draw < 4; ++draw) {
    ASSERT_EQ(interrupt(SIGTERM, draw, 12, words).exit_code, 143) << draw;
  }
  expect_goes_on({}, words + order_of("a"), events_of_step(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Strategies, TurnsOf, testing::Values("downpour", "easgd", "gem", "quorum"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(Turns, RunGoesOnFreelyBehindTheEndOfItsOrder) {
  const std::string hash = hash_of("a", turns("downpour") + until_iteration(3));
  hash_of("b", turns("downpour") + until_iteration(5) + order_of("a"));
  expect_clean_ledger(path("b"), 5 * 4, events_of_step("downpour"));
  EXPECT_THAT(read_text(path("b") + "/log.txt"), HasSubstr("workers take the first 13 turns as "));
  EXPECT_EQ(hash_of("c", turns("downpour") + until_iteration(3) + order_of("b")), hash);
  resumed("b", until_iteration(6) + order_of("a"));
  EXPECT_THAT(
      read_text(path("b") + "/log.txt"),
      HasSubstr("has 13 turns, and 20 were taken already, so that it could not be compared"));
}

TEST_F(Turns, RunByAnOrderSaysWhetherItHasTheStatesOfThatRun) {
  const Words words = turns("gem") + until_iteration(3);
  hash_of("a", words);
  hash_of("same", words + order_of("a") + Words{"--workers", "2"});
  EXPECT_THAT(read_text(path("same/log.txt")),
              HasSubstr("--order: all states up to that before step 12 are those of the run whose "
                        "order it is"));
  hash_of("seed", words + order_of("a") + Words{"--set", "train.seed=5"});
  EXPECT_THAT(read_text(path("seed/log.txt")),
              AllOf(HasSubstr("--order: the state before step 0 is "),
                    HasSubstr("so that this run does not make its bits")));
  // The first turn goes by the same rates, and the second does not.
  hash_of("rate", words + order_of("a") + Words{"--set", "train.learning_rate.g=0.01"});
  EXPECT_THAT(read_text(path("rate/log.txt")), HasSubstr("--order: the state before step 1 is "));
}

TEST_F(Turns, CheckAndInspectSayThatThereAreWorkers) {
  EXPECT_THAT(call(Words{"check", path("toy.yaml")} + turns("easgd")).out,
              HasSubstr("\nstrategy: easgd, 4 workers; each makes 2 iterations of 4 events alone "
                        "before its turn, and a turn of each counts as one iteration; rho 0.2; "
                        "cluster.failure.check_every compares nothing\n"));
  EXPECT_THAT(call(Words{"check", path("toy.yaml")} + turns("quorum")).out,
              HasSubstr("\nstrategy: quorum, 4 workers; each makes 2 iterations of 4 events alone "
                        "before its turn, and a turn of each counts as one iteration; a step takes "
                        "the first 3, rate 1; cluster.failure.check_every compares nothing\n"));
  EXPECT_THAT(call(Words{"check", path("toy.yaml")} + turns_in_sites("easgd")).out,
              HasSubstr("\nstrategy: easgd, 2 sites; the members of each make 2 iterations of 8 "
                        "events together before its turn, "));
  hash_of("a", turns("gem") + until_iteration(2));
  EXPECT_THAT(call({"inspect", checkpoint("a", 0)}).out,
              AllOf(HasSubstr("4 workers of 8 events each\n"), HasSubstr("/workers/3/")));
}

TEST_F(Turns, RefusesWhatDoesNotGoWithThemAndSaysWhere) {
  const auto refused = [&](const Words& words, const std::string& what) {
    const ProcessEnd end = call(words);
    EXPECT_NE(end.exit_code, 0) << what;
    EXPECT_THAT(end.err, HasSubstr(what));
  };
  const Words check{"check", path("toy.yaml")};
  refused(check + turns("downpour") + Words{"--set", "train.micro_batches=6"},
          "cannot be shared out to 4 workers evenly; take a multiple of 4, or as many workers "
          "(train.strategy.workers) as divide them");
  refused(check + Words{"--set", "train.learning_rate.g={policy: cosine}"},
          "not cosine: it is one of parts, as in parts: [{policy: cosine, for: 10 epochs}]");
  refused(check + turns("gem") + Words{"--set", "train.remainder=partial"},
          "partial leaves some without events");
  refused(check + turns("easgd") + Words{"--set", "actors.reducer.reduction=bf16"},
          "take reduction exact");
  refused(check + Words{"--set", "train.strategy={kind: easgd, rate: 1}"},
          "rate acts only with kind: downpour or quorum");
  refused(check + Words{"--set", "train.strategy={kind: quorum, workers: 4, of: 5}"},
          "a step takes the first 5 that are ready (train.strategy.of), and there are 4; set "
          "train.strategy.of to 4 or less");
  refused(check + Words{"--set", "train.strategy={kind: quorum, workers: 4, of: 0}"},
          "from 1 to 256");
  refused(check + Words{"--set", "train.strategy={kind: easgd, workers: 4, of: 2}"},
          "of acts only with kind: quorum");
  refused(check + Words{"--set", "train.micro_batches=300", "--set",
                        "train.strategy={kind: gem, workers: 300}"},
          "at most 256 can take turns");
  refused(check + Words{"--set", "train.strategy={kind: quorum, sites: 2, of: 3}"},
          "set train.strategy.of to 2 or less");
  refused(check + Words{"--set", "train.strategy={kind: local, sites: 2}"},
          "sites acts only with kind: tree, downpour, easgd, gem or quorum");
}

TEST_F(Turns, RefusesSitesThatDoNotFitAtTheirLine) {
  const auto refused = [&](const std::string& fields, const std::string& what) {
    write_text(path("sites.yaml"),
               "name: sites\nmodel: {zoo: toy}\ndata: {train: toy.h5}\ntrain:\n"
               "  micro_batch: 4\n  micro_batches: 4\n  strategy:\n    kind: gem\n" +
                   fields);
    const ProcessEnd end = call({"check", path("sites.yaml")});
    EXPECT_NE(end.exit_code, 0) << what;
    EXPECT_THAT(end.err, HasSubstr(what));
  };
  refused("    sites: 3\n", "sites.yaml:9:12: train.strategy.sites: 4 micro-batches");
  refused("    sites: 2\n    workers: 2\n",
          "sites.yaml:10:5: train.strategy: workers acts only with kind: local, downpour, easgd, "
          "gem or quorum, and without sites");
}

TEST_F(Turns, OrderIsRefusedWhereNoneIsNeededOrItIsOfAnotherRun) {
  hash_of("a", turns("downpour") + until_iteration(2));
  hash_of("plain", until_iteration(2));
  const auto refused = [&](const std::string& name, const Words& words, const std::string& what) {
    const ProcessEnd end = run(name, words);
    EXPECT_NE(end.exit_code, 0) << what;
    EXPECT_THAT(end.err, HasSubstr(what));
  };
  refused("b", order_of("a"), "train.strategy is synchronous: its bits have no order");
  refused("c", turns("downpour") + order_of("plain"), "its steps do not say whose turns they were");
  refused("d", turns("downpour") + order_of("nowhere"), "nowhere");
  for (const char* const folder : {"b", "c", "d"}) {
    EXPECT_FALSE(std::filesystem::exists(path(folder))) << "nothing was begun";
  }
}

TEST_F(Turns, RunGoesOnByAnOrderThatLeadsToItsStateAlone) {
  const Words words = turns("downpour"), longer = until_iteration(4);
  hash_of("a", words + until_iteration(2));
  // Workers 1 and 2 change places.
  std::string lines = read_text(path("a") + "/metrics.jsonl");
  for (std::size_t at = 0; (at = lines.find("\"turn\":", at)) != std::string::npos; ++at) {
    for (std::size_t i = at; lines[i] != '\n'; ++i) {
      if (lines[i] == '1' || lines[i] == '2') lines[i] = lines[i] == '1' ? '2' : '1';
    }
  }
  std::filesystem::create_directory(path("other"));
  write_text(path("other") + "/metrics.jsonl", lines);
  const ProcessEnd end = call(Words{"run", "--resume", path("a")} + longer + order_of("other"));
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("at step 8, was trained in another order than that of --order"));
  hash_of("b", words + until_iteration(2) + order_of("other"));
  resumed("b", longer + order_of("other"));
  expect_clean_ledger(path("b"), 4 * 4, events_of_step("downpour"));
}

TEST_F(Turns, StateOfOtherWorkersIsRefusedByNameOfTheStrategy) {
  hash_of("a", turns("downpour") + until_iteration(2));
  hash_of("b", until_iteration(2));
  std::filesystem::copy_file(checkpoint("b", 0), checkpoint("a", 0),
                             std::filesystem::copy_options::overwrite_existing);
  const ProcessEnd end = call({"run", "--resume", path("a")});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("trained without workers that take turns (train.strategy: "
                                 "downpour, easgd, gem or quorum), which the topology has"));
}

}  // namespace
}  // namespace troupe

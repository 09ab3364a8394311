// Workers and nodes that the trials of a study share, as the system sees them.

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "tests/main/study_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// Members join the runs while these train; one is killed, the study is stopped, and goes on with
// another number of them.
TEST_F(StudyVerb, WorkersThatMoveAndDieAndChangeInNumberChangeNothing) {
  const std::string text = R"(topology: toy.yaml
space:
  train.learning_rate.g: {log: [1e-4, 1e-2]}
  train.iterations: {choice: [2000]}
  train.epochs: {choice: [1000]}
  actors.validator.every: {choice: [50 epochs]}
  cluster.failure: {choice: [{heartbeat: 50ms, dead_after: 200ms}]}
  actors.validator.events: {choice: [20]}
objective: {minimise: merit}
method: {kind: random, trials: 2}
parallel: 2
)";
  write_text(path("s.yaml"), text);
  const auto whole = found_by(last_line(call(study_words("whole"))));
  ASSERT_EQ(whole.size(), 2u);
  write_text(path("s.yaml"), text + "workers: 4\n");
  Process first(command(study_words("cut")));
  const std::string trial = "cut/trials/0";
  ASSERT_TRUE(first.wait_until([&] { return !joined(trial).empty() || !first.running(); }));
  EXPECT_TRUE(kill_member(trial, joined(trial)));
  first.send(SIGINT);
  const ProcessEnd stopped = first.wait();
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  std::string study = read_text(path("cut/study.yaml"));
  const std::size_t at = study.find("workers: 4");
  ASSERT_NE(at, std::string::npos);
  write_text(path("cut/study.yaml"), study.replace(at, 10, "workers: 3"));
  const ProcessEnd last = call({"study", "--resume", path("cut"), "--json"});
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(found_by(last_line(last)), whole);
}

// The study has one worker fewer from then on.
TEST_F(StudyVerb, WorkerThatPeopleLetGoIsNotReplacedAndItsRunGoesOn) {
  write_text(path("s.yaml"), R"(topology: toy.yaml
space:
  train.iterations: {choice: [4000]}
  train.epochs: {choice: [1000]}
objective: {minimise: iterations, of: summary}
method: {kind: grid}
workers: 3
)");
  Process study(command(study_words("search")));
  const std::string trial = "search/trials/0";
  const auto others = [&] {
    std::vector<std::string> names;
    for (const auto& [name, node] : nodes(trial)) {
      if (name.starts_with("member.") && name != "member.0" && node.state == "running") {
        names.push_back(name);
      }
    }
    return names;
  };
  ASSERT_TRUE(study.wait_until([&] { return !joined(trial).empty() && others().size() == 2; }))
      << study.err();
  const std::string words = processes()[head()];
  const std::string before = "--head-at ";
  const std::size_t at = words.find(before);
  ASSERT_NE(at, std::string::npos) << words;
  const std::size_t from = at + before.size();
  const std::string address = words.substr(from, words.find(' ', from) - from);
  const ProcessEnd drained = call({"drain", address, joined(trial)});
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  const ProcessEnd end = study.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err,
              HasSubstr("a worker of trial 0 was asked to leave; the study has 2 from now on"));
  EXPECT_EQ(nodes(trial).count("member.3"), 0u);
  EXPECT_EQ(last_line(end)["trials"].list()[0]["runs"].list()[0]["state_hash"].text(),
            hash_of("own", until_iteration(4000)));
}

// Nobody is left who knows the state.
TEST_F(StudyVerb, RunWhoseOnlyWorkerIsKilledGoesOnFromItsCheckpoint) {
  write_text(path("s.yaml"), R"(topology: toy.yaml
space:
  train.iterations: {choice: [2500]}
  train.epochs: {choice: [1000]}
objective: {minimise: iterations, of: summary}
method: {kind: grid}
workers: 1
)");
  Process study(command(study_words("search")));
  ASSERT_TRUE(study.wait_until([&] {
    const std::string metrics = path("search/trials/0/metrics.jsonl");
    return std::filesystem::exists(metrics) &&
           read_text(metrics).find("\"kind\":\"checkpoint\"") != std::string::npos;
  }));
  EXPECT_TRUE(kill_member("search/trials/0", "member.0"));
  const ProcessEnd end = study.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("trial 0 has lost all its workers, and goes on with others"));
  EXPECT_EQ(last_line(end)["trials"].list()[0]["runs"].list()[0]["state_hash"].text(),
            hash_of("own", until_iteration(2500)));
}

// Nodes come from a pool of processes. One that trains is killed, the study is stopped, and the
// trial that is left at the end gets the nodes of the other one.
TEST_F(StudyVerb, NodesOfAPoolThatMoveAndDieChangeNothing) {
  const std::string text = R"(space:
  train.iterations: {choice: [1500, 4000]}
  train.epochs: {choice: [1000]}
  actors.validator.every: {choice: [50 epochs]}
  cluster.failure: {choice: [{heartbeat: 50ms, dead_after: 200ms}]}
  actors.validator.events: {choice: [20]}
objective: {minimise: merit}
method: {kind: grid}
parallel: 2
)";
  write_text(path("s.yaml"), "topology: toy.yaml\n" + text);
  const auto whole = found_by(last_line(call(study_words("whole"))));
  ASSERT_EQ(whole.size(), 2u);
  const std::string cloud = fmt::format("{} {}", TROUPE_MADE_CLOUD, path("cloud"));
  const std::string before = "cluster: {rebalance: false}\n";
  std::string topology = read_text(path("toy.yaml"));
  const std::size_t at = topology.find(before);
  ASSERT_NE(at, std::string::npos);
  topology.replace(at, before.size(),
                   fmt::format(R"(cluster:
  rebalance: false
  listen: "127.0.0.1:8500"
  pools:
    - {{name: own, launcher: command, nodes: 3, start: '{0} up {{name}} {{join}}', stop: '{0} down {{name}}', list: '{0} ls'}}
)",
                               cloud));
  write_text(path("pooled.yaml"), topology);
  write_text(path("s.yaml"), "topology: pooled.yaml\n" + text + "workers: 2\n");
  const auto asked = [&] {
    if (!std::filesystem::exists(path("cloud/asked"))) return std::ptrdiff_t{0};
    return std::ranges::count(read_text(path("cloud/asked")), '\n');
  };
  Process first(command(study_words("cut")));
  ASSERT_TRUE(
      first.wait_until([&] { return !joined("cut/trials/0").empty() || !first.running(); }));
  EXPECT_TRUE(first.wait_until([&] { return asked() >= 3 || !first.running(); }));
  EXPECT_TRUE(kill_member("cut/trials/0", joined("cut/trials/0")));
  EXPECT_TRUE(first.wait_until([&] { return asked() >= 4 || !first.running(); }));
  first.send(SIGINT);
  const ProcessEnd stopped = first.wait();
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  const ProcessEnd last = call({"study", "--resume", path("cut"), "--json"});
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_THAT(last.err, HasSubstr("trial 1: nodes of pool own from now on: 3"));
  EXPECT_EQ(found_by(last_line(last)), whole);
  for (const char* trial : {"cut/trials/0", "cut/trials/1"}) {
    const ProcessEnd pools = call({"pools", path(trial)});
    EXPECT_THAT(pools.out, HasSubstr("ended")) << trial;
    EXPECT_THAT(pools.out, testing::Not(HasSubstr("running"))) << trial;
  }
}

}  // namespace
}  // namespace troupe

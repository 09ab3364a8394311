// Trials that share the nodes of pools, where these are slow, left behind, or known by name.

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "tests/main/study_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two trials of the toy. A node comes to the first one while it trains.
constexpr const char* kLengths = "[2000, 4500]";
// The second one trains long after the first, whatever else the machine does.
constexpr const char* kUnlike = "[1000, 9000]";
constexpr const char* kTrials = R"(  train.epochs: {choice: [100000]}
  actors.validator.every: {choice: [50 epochs]}
  actors.validator.events: {choice: [20]}
  actors.checkpointer.every: {choice: [500 iterations]}
objective: {minimise: merit}
method: {kind: grid}
parallel: 2
)";

// A busy machine takes minutes for a study.
const ProcessOptions kPatient{.timeout = std::chrono::minutes(5)};

class StudyOfPools : public StudyVerb {
 protected:
  // The toy with such a cluster, and a study of it with `more`.
  void write_pools(const std::string& cluster, const std::string& more,
                   const std::string& lengths = kLengths) const {
    const std::string before = "cluster: {rebalance: false}\n";
    std::string topology = read_text(path("toy.yaml"));
    const std::size_t at = topology.find(before);
    ASSERT_NE(at, std::string::npos);
    topology.replace(at, before.size(), "cluster:\n  rebalance: false\n" + cluster);
    write_text(path("pooled.yaml"), topology);
    write_trials("pooled.yaml", lengths, more);
  }
  void write_trials(const std::string& topology, const std::string& lengths,
                    const std::string& more) const {
    write_text(path("s.yaml"),
               fmt::format("topology: {}\nspace:\n  train.iterations: {{choice: {}}}\n"
                           "  cluster.failure: {{choice: [{{heartbeat: 50ms, dead_after: {}}}]}}\n"
                           "{}{}",
                           topology, lengths, dead_after_, kTrials, more));
  }
  // A pool of the made cloud.
  std::string cloud(int nodes) const {
    const std::string tool = fmt::format("{} {}", TROUPE_MADE_CLOUD, path("cloud"));
    return fmt::format(
        "  pools:\n    - {{name: own, launcher: command, nodes: {}, "
        "start: '{} up {{name}} {{join}}', stop: '{} down {{name}}', list: '{} ls'}}\n",
        nodes, tool, tool, tool);
  }
  // What the trials come to without workers and pools.
  std::vector<std::string> whole(const std::string& lengths = kLengths) const {
    write_trials("toy.yaml", lengths, "");
    const ProcessEnd end = call(study_words("whole"), kPatient);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return found_by(last_line(end));
  }
  // Ids of the nodes that a trial's run has in this state.
  std::set<std::string> ids(const std::string& trial, const std::string& state) const {
    std::set<std::string> found;
    const ProcessEnd end = call({"pools", path(trial), "--json"});
    if (end.exit_code != 0) return found;
    const JsonValue told = last_line(end);
    for (const JsonValue& node : told["nodes"].list()) {
      if (node["state"].text() == state) found.insert(node["id"].text());
    }
    return found;
  }
  // The most nodes that the cloud ever had.
  int most_nodes() const {
    std::istringstream counts(read_text(path("cloud/counts")));
    int most = 0;
    for (int count = 0; counts >> count;) most = std::max(most, count);
    return most;
  }
  static bool is_node(const std::string& words) {
    return words.find("--launched") != std::string::npos;
  }
  // Sends the nodes of the cloud a signal. Returns how many there are.
  int tell_nodes(int number) const {
    int nodes = 0;
    for (const auto& [process, words] : processes()) {
      if (!is_node(words) || words.starts_with("bash")) continue;
      ::kill(process, number);
      ++nodes;
    }
    return nodes;
  }
  void expect_no_nodes(const std::string& name) const {
    for (const char* trial : {"0", "1"}) {
      const ProcessEnd pools = call({"pools", path(fmt::format("{}/trials/{}", name, trial))});
      for (const char* state :
           {"asked", "starting", "learning", "running", "draining", "stopping"}) {
        EXPECT_THAT(pools.out, Not(HasSubstr(state))) << trial;
      }
    }
  }

  static constexpr const char* kHere = "  listen: \"127.0.0.1:8500\"\n";

  const char* dead_after_ = "400ms";
};

// The first trial has ended, and its node goes slowly. The other trial gets it only then.
TEST_F(StudyOfPools, NodeThatGoesSlowlyIsWaitedForAndChangesNothing) {
  const auto alone = whole(kUnlike);
  write_pools(kHere + cloud(2), "workers: 2\n", kUnlike);
  std::filesystem::create_directories(path("cloud"));
  write_text(path("cloud/slow"), "");
  Process study(command(study_words("slow")), kPatient);
  ASSERT_TRUE(study.wait_until([&] { return std::filesystem::exists(path("cloud/waits")); }))
      << study.err();
  EXPECT_THAT(read_text(path("slow/study.jsonl")), Not(HasSubstr("\"kind\":\"end\"")))
      << "its run waits for its node";
  EXPECT_THAT(study.err(), Not(HasSubstr("nodes of pool own from now on: 2")));
  std::filesystem::remove(path("cloud/slow"));
  const ProcessEnd end = study.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("trial 1: nodes of pool own from now on: 2"));
  EXPECT_EQ(found_by(last_line(end)), alone);
  EXPECT_EQ(most_nodes(), 2);
  expect_no_nodes("slow");
}

// The study and its heads are killed before their nodes can see it.
TEST_F(StudyOfPools, NodesThatKilledHeadsHaveLeftAreGoneWhenTheStudyHasGoneOn) {
  const auto alone = whole();
  write_pools(kHere + cloud(2), "workers: 2\n");
  Process first(command(study_words("cut")));
  ASSERT_TRUE(first.wait_until([&] {
    return !ids("cut/trials/0", "running").empty() && !ids("cut/trials/1", "running").empty();
  })) << first.err();
  EXPECT_EQ(tell_nodes(SIGSTOP), 2);
  first.send(SIGKILL);
  first.wait();
  ASSERT_TRUE(wait_for([&] {
    bool are_gone = true;
    for (const auto& [process, words] : processes()) {
      if (is_node(words)) continue;
      are_gone = false;
      ::kill(process, SIGKILL);
    }
    return are_gone;
  }));
  EXPECT_EQ(tell_nodes(SIGCONT), 2) << "they are left";
  const ProcessEnd end = call({"study", "--resume", path("cut"), "--json"}, kPatient);
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(found_by(last_line(end)), alone);
  EXPECT_EQ(most_nodes(), 2) << "others only when these are gone";
  expect_no_nodes("cut");
}

// Heads listen at every address, and nobody joins without a key that they know.
TEST_F(StudyOfPools, KeysOfTheTopologyLetWorkersAndNodesJoin) {
  // Nobody dies here. On a busy machine some would be taken for dead, which the first trial cannot
  // afford.
  dead_after_ = "4s";
  const auto alone = whole(kUnlike);
  write_pools(fmt::format("  listen: \"*:8500\"\n  keys: {}\n{}", make_keys("keys"), cloud(2)),
              "workers: 3\n", kUnlike);
  Process study(command(study_words("keyed")), kPatient);
  ASSERT_TRUE(study.wait_until([&] {
    return !ids("keyed/trials/0", "running").empty() && !ids("keyed/trials/1", "running").empty();
  })) << study.err();
  const ProcessEnd end = study.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("trial 1: nodes of pool own from now on: 2"));
  EXPECT_EQ(found_by(last_line(end)), alone);
  expect_no_nodes("keyed");
}

TEST_F(StudyOfPools, HostThatIsNotThisMachineIsRefusedBeforeThereIsAFolder) {
  const std::string keys = make_keys("keys");
  write_pools(fmt::format("  listen: \"192.0.2.1:8500\"\n  keys: {}\n{}", keys, cloud(1)),
              "workers: 2\n");
  expect_refused(call({"study", path("s.yaml"), "--out", path("far")}), 2,
                 {"cluster.listen: 192.0.2.1 is no address of this machine"});
  EXPECT_FALSE(std::filesystem::exists(path("far")));
}

// Servers of OpenSSH on this machine: each trial has one of two hosts, and the one that goes on
// gets the other host too.
TEST_F(StudyOfPools, TrialsAtATimeHaveDifferentHostsOfAPoolOfSsh) {
  if (!std::filesystem::exists("/usr/sbin/sshd")) GTEST_SKIP() << "sshd is not installed";
  const ProcessEnd up =
      Process({"/usr/bin/env", "-u", kMark, TROUPE_SSH_HOSTS, "up", path("ssh")}).wait();
  ASSERT_EQ(up.exit_code, 0) << up.err;
  write_pools(
      fmt::format("{}  pools:\n    - {{name: campus, launcher: ssh, nodes: 2, hosts: [node-a, "
                  "node-b], options: [-F, {}]}}\n",
                  kHere, path("ssh/config")),
      "workers: 2\n", "[8000, 1000000]");
  Process study(command(study_words("many")), kPatient);
  std::set<std::string> first, second;
  EXPECT_TRUE(study.wait_until([&] {
    if (first.empty()) first = ids("many/trials/0", "running");
    if (second.empty()) second = ids("many/trials/1", "running");
    return !first.empty() && !second.empty();
  })) << study.err();
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(second.size(), 1u);
  EXPECT_NE(first, second);
  EXPECT_TRUE(study.wait_until([&] { return ids("many/trials/1", "running").size() == 2; }))
      << study.err();
  study.send(SIGINT);
  const ProcessEnd end = study.wait();
  EXPECT_EQ(Process({TROUPE_SSH_HOSTS, "down", path("ssh")}).wait().exit_code, 0);
  EXPECT_EQ(end.exit_code, 130) << end.err;
  EXPECT_EQ(last_line(end)["trials"].list()[0]["runs"].list()[0]["state_hash"].text(),
            hash_of("own", until_iteration(8000)));
  for (const char* trial : {"0", "1"}) {
    const std::string log = read_text(path(fmt::format("many/trials/{}/log.txt", trial)));
    EXPECT_THAT(log, Not(HasSubstr("has a node already"))) << "the study has waited for its host";
  }
  expect_no_nodes("many");
}

}  // namespace
}  // namespace troupe

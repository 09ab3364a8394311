// Nodes that a run gets from its pools: a made cloud of processes, and hosts by OpenSSH where that
// is installed.

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "tests/main/pool_run.h"
#include "tests/telemetry/page/raw_client.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(PoolRun, GrowsAndShrinksWhileItTrainsAndLeavesNothing) {
  Process all(command(endless(cloud_pool(1))));
  ASSERT_TRUE(wait_until(all, "own", 1, "running")) << log();
  const ProcessEnd more = burst("+2");
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("pool own: 3 nodes are wanted, 1 before"));
  ASSERT_TRUE(wait_until(all, "own", 3, "running")) << log();
  EXPECT_EQ(burst("-2").exit_code, 0);
  ASSERT_TRUE(wait_until_said(all, "is given back")) << log();
  ASSERT_TRUE(wait_until(all, "own", 2, "ended")) << log();
  wait_until_training(all, steps() + 40);
  EXPECT_THAT(pools(), HasSubstr("own.0            running"));
  end(all);
  EXPECT_THAT(pools(), Not(HasSubstr("running")));
  EXPECT_TRUE(all_gone());
}

TEST_F(PoolRun, BeginsWithTheFirstNodeOfAPoolThatCarriesTwoMembers) {
  // Long enough for the second one to come.
  const Words until = until_iteration(3000);
  const ProcessEnd end = run("a", until + cloud_pool(1, ", workers: 2"));
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(log(), HasSubstr("View 1.2: member.0, member."));
  EXPECT_THAT(log(), HasSubstr("waiting for the first node of cluster.pools"));
  EXPECT_EQ(parse_json(read_text(path("a/summary.json")))["state_hash"].text(),
            hash_of("alone", until));
  EXPECT_THAT(pools({"--json"}), HasSubstr(R"("name":"own.0","pool":"own","state":"ended")"));
  EXPECT_TRUE(all_gone());
}

TEST_F(PoolRun, PageGivesItMoreNodesForTheTokenAndCostsNoBit) {
  write_text(path("control"), "a-secret-word\n");
  Process all(command(
      run_words("a", kEndlessRun + cloud_pool(1) +
                         Words{"--workers", "1", "--set", "actors.monitor.listen=127.0.0.1:0",
                               "--set", "actors.monitor.control=" + path("control")})));
  const std::uint16_t port = page_port(all);
  ASSERT_TRUE(wait_until(all, "own", 1, "running")) << log();
  const auto wish = [&](const std::string& nodes, const std::string& token) {
    return telemetry::post(port, "/api/runs/0/burst",
                           fmt::format(R"({{"pool": "own", "nodes": "{}"}})", nodes),
                           "Authorization: Bearer " + token + "\r\n");
  };
  EXPECT_EQ(telemetry::status_of(wish("+1", "another-word")), 401);
  const std::string refused = wish("5", "a-secret-word");
  EXPECT_EQ(telemetry::status_of(refused), 409);
  EXPECT_THAT(refused, HasSubstr("pool own has 4 nodes at most, not 5"));
  EXPECT_THAT(telemetry::get(port, "/api/runs"), HasSubstr(R"("pools":[{"name":"own","most":4}])"));
  const std::string more = wish("+1", "a-secret-word");
  EXPECT_EQ(telemetry::status_of(more), 200);
  EXPECT_THAT(telemetry::body_of(more), HasSubstr("pool own: 2 nodes are wanted, 1 before"));
  ASSERT_TRUE(wait_until(all, "own", 2, "running")) << log();
  EXPECT_THAT(log(), HasSubstr("are there or on their way (on the page)"));
  EXPECT_THAT(log(), Not(HasSubstr("a-secret-word")));
  EXPECT_THAT(telemetry::get(port, "/api/runs/0/history"), Not(HasSubstr("a-secret-word")));
  stop_and_expect_whole(all);
}

TEST_F(PoolRun, NodeThatIsTakenAwayIsReplacedAndCostsNoBit) {
  Process all(command(endless(cloud_pool(2))));
  ASSERT_TRUE(wait_until(all, "own", 2, "running")) << log();
  ::kill(process_with("--launched own.1@"), SIGKILL);
  ASSERT_TRUE(wait_until_said(all, "own.2 is asked for")) << log();
  ASSERT_TRUE(wait_until(all, "own", 2, "running")) << log();
  end(all);
}

TEST_F(PoolRun, NextHeadKeepsTheNodesAndAsksForNoneTwice) {
  Process all(command(endless(kUnhurried + cloud_pool(2))));
  ASSERT_TRUE(wait_until(all, "own", 2, "running")) << log();
  EXPECT_EQ(burst("3").exit_code, 0);
  ASSERT_TRUE(wait_until(all, "own", 3, "running")) << log();
  replace_head(all);
  ASSERT_TRUE(wait_until(all, "own", 3, "running")) << log();
  wait_until_training(all, steps() + 40);
  EXPECT_EQ(burst("2").exit_code, 0) << "the next head knows its pools";
  ASSERT_TRUE(wait_until(all, "own", 1, "ended")) << log();
  const std::string asked = read_text(path("cloud/asked"));
  EXPECT_EQ(std::ranges::count(asked, 0x0a), 3) << asked;
  end(all);
}

TEST_F(PoolRun, NodeWhoseStartFailsBehindItIsStopped) {
  std::filesystem::create_directories(path("cloud"));
  write_text(path("cloud/late"), "");
  Process all(command(endless(cloud_pool(1))));
  ASSERT_TRUE(wait_until_said(all, "it may be there, and is stopped")) << log();
  EXPECT_THAT(log(), HasSubstr("the machine is up, and does not answer"));
  std::filesystem::remove(path("cloud/late"));
  ASSERT_TRUE(wait_until(all, "own", 1, "running")) << log();
  ASSERT_TRUE(wait_until(all, "own", 1, "dead")) << log();
  EXPECT_EQ(process_with("--launched own.0@"), 0) << "it is not written off";
  EXPECT_THAT(pools({"--json"}), HasSubstr(R"("id":"vm-)"));
  end(all);
  EXPECT_TRUE(all_gone());
}

// Two minutes after its end a run leaves them to people.
TEST_F(PoolRun, NodesThatDoNotEndAreInTheLastLineAndTheSummary) {
  if (!is_thorough()) GTEST_SKIP() << "it takes minutes: TROUPE_THOROUGH";
  Process all(command(run_words("a", kEndlessRun + cloud_pool(1) + Words{"--workers", "1"})),
              {.timeout = std::chrono::minutes(5)});
  ASSERT_TRUE(wait_until(all, "own", 1, "running")) << log();
  const pid_t node = process_with("--launched own.0@");
  ::kill(node, SIGSTOP);  // so that it does not hear that the run is over
  write_text(path("cloud/stuck"), "");
  const ProcessEnd ended = stop(all);
  EXPECT_EQ(ended.exit_code, 128 + SIGTERM);
  EXPECT_THAT(log(), testing::ContainsRegex("the run is over, and waits 1[01][0-9] s more for its "
                                            "nodes to end: own.0"));
  const std::string last = ended.err.substr(ended.err.rfind('\n', ended.err.size() - 2) + 1);
  EXPECT_THAT(last, HasSubstr("own.0 (vm-troupe-"));
  EXPECT_THAT(last, HasSubstr(fmt::format("troupe pools {} --stop", path("a"))));
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  ASSERT_EQ(summary["nodes_left"].list().size(), 1U);
  EXPECT_EQ(summary["nodes_left"].list()[0].text(), "own.0");
  ::kill(node, SIGCONT);
  std::filesystem::remove(path("cloud/stuck"));
  EXPECT_THAT(pools({"--stop"}), Not(HasSubstr("running")));
  EXPECT_TRUE(all_gone());
}

// For any /bin/sh.
TEST_F(PoolRun, ScriptOfTheManualGivesItsNodeTheToken) {
  const auto folder =
      std::filesystem::path(TROUPE_MADE_CLOUD).parent_path() / "../../docs/launching";
  const std::string page = read_text((folder / "command.md").string());
  const std::string begin = "cat > node <<'END'\n";
  const std::size_t from = page.find(begin);
  ASSERT_NE(from, std::string::npos);
  write_text(path("node"), page.substr(from + begin.size(),
                                       page.find("\nEND\n", from) - from - begin.size() + 1));
  for (const char* const shell : {"/bin/sh", "/bin/bash", "/bin/dash"}) {
    if (!std::filesystem::exists(shell)) continue;
    const std::string token = path("token-of-") + std::filesystem::path(shell).filename().string();
    Process started({"/bin/sh", "-c",
                     fmt::format("echo SECRET | {} {} start 'cat >{}.part; mv {}.part {}'", shell,
                                 path("node"), token, token, token)});
    EXPECT_EQ(started.wait().exit_code, 0) << shell;
    EXPECT_TRUE(wait_for([&] { return std::filesystem::exists(token); })) << shell;
    EXPECT_EQ(read_text(token), "SECRET\n") << shell;
  }
}

TEST_F(PoolRun, CloudThatRefusesIsAskedAgainAndTheRunGoesOn) {
  std::filesystem::create_directories(path("cloud"));
  write_text(path("cloud/refuse"), "");
  Process all(command(endless(cloud_pool(1))));
  ASSERT_TRUE(wait_until_said(all, "made_cloud: quota exceeded")) << log();
  wait_until_training(all);
  std::filesystem::remove(path("cloud/refuse"));
  ASSERT_TRUE(wait_until(all, "own", 1, "running")) << log();
  end(all);
}

// The limits win over the page as over `troupe burst`, and the page says so.
TEST_F(PoolRun, PageIsToldThatTheLimitsDecideAndTheyGoOnToDoSo) {
  write_text(path("control"), "a-secret-word\n");
  const Words limits{"--set",
                     "cluster.burst={finish_within: 10000h, budget: 100, decide_every: 1s}"};
  Process all(command(endless(cloud_pool(1, ", price_per_node_hour: 3.6") + limits +
                              Words{"--set", "actors.monitor.listen=127.0.0.1:0", "--set",
                                    "actors.monitor.control=" + path("control")})));
  const std::uint16_t port = page_port(all);
  const auto wish = [&](const std::string& nodes) {
    return telemetry::post(port, "/api/runs/0/burst",
                           fmt::format(R"({{"pool": "own", "nodes": "{}"}})", nodes),
                           "Authorization: Bearer a-secret-word\r\n");
  };
  wait_until_training(all);
  for (const char* const nodes : {"4", "+1", "0"}) {
    const std::string refused = wish(nodes);
    EXPECT_EQ(telemetry::status_of(refused), 409) << refused;
    EXPECT_THAT(telemetry::body_of(refused),
                HasSubstr("the limits in cluster.burst decide how many nodes this run takes"));
  }
  ASSERT_TRUE(wait_until_said(all, "no nodes: the run ends in")) << log();
  ASSERT_TRUE(wait_until(all, "own", 1, "ended")) << log();
  const std::string refused = wish("+1");
  EXPECT_EQ(telemetry::status_of(refused), 409) << "the decision is not theirs afterwards, either";
  EXPECT_THAT(log(), Not(HasSubstr("(on the page)")));
  const std::string asked = read_text(path("cloud/asked"));
  EXPECT_EQ(std::ranges::count(asked, '\n'), 1) << asked;
  end(all);
}

// There is time enough, so a node is only a cost, from the decision on that comes when it has
// trained for a while; and it costs what the command says.
TEST_F(PoolRun, LimitsDecideHowManyNodesAreWantedAndTheBillSaysWhatTheyCost) {
  const Words limits{"--set", "cluster.burst={finish_within: 10000h, decide_every: 10s}"};
  std::ofstream(path("price")) << "3600 an hour\n";
  const std::string price = fmt::format(", price_per_node_hour: 1, price: 'cat {}'", path("price"));
  Process all(command(endless(cloud_pool(1, price) + limits)));
  ASSERT_TRUE(wait_until(all, "own", 1, "running")) << log();
  ASSERT_TRUE(wait_until_said(all, "no nodes: the run ends in")) << log();
  ASSERT_TRUE(wait_until(all, "own", 1, "ended")) << log();
  expect_refused(burst("1"), 2, {"the limits in cluster.burst decide"});
  stop(all);
  const JsonValue bill = parse_json(read_text(path("a/summary.json")))["bill"];
  const JsonValue own = bill["pools"].list().front();
  EXPECT_EQ(own["name"].text(), "own");
  EXPECT_GT(own["node_hours"].number(), 0.0);
  EXPECT_EQ(own["price_per_node_hour"].number(), 3600.0);
  EXPECT_TRUE(parse_json(read_text(path("a/summary.json")))["nodes_left"].list().empty());
  EXPECT_NEAR(own["cost"].number(), 3600.0 * own["node_hours"].number(), 1e-3);
  EXPECT_EQ(bill["cost"].number(), own["cost"].number());
  EXPECT_GT(own["iterations"].number(), 0.0);
  EXPECT_GT(bill["other_iterations"].number(), 0.0);
  EXPECT_THAT(read_text(path("a/metrics.jsonl")), HasSubstr(R"("decision":"no nodes: the run)"));
}

TEST_F(PoolRun, RunWithoutWorkersTakesANodeToMeasureBy) {
  const Words limits{"--set", "cluster.burst={finish_within: 10000h, decide_every: 1s}"};
  const Words until = until_iteration(300);
  const ProcessEnd end = run("a", until + limits + cloud_pool(0));
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(log(), HasSubstr("1 of own: nothing is measured yet"));
  EXPECT_EQ(parse_json(read_text(path("a/summary.json")))["state_hash"].text(),
            hash_of("alone", until));
}

TEST_F(PoolRun, NodeWhosePriceNobodyKnowsIsNotAskedForWithinABudget) {
  const Words limits{"--set", "cluster.burst={budget: 100, decide_every: 1s}"};
  Process all(command(endless(cloud_pool(1, ", price: 'cat " + path("price") + "'") + limits)));
  ASSERT_TRUE(wait_until_said(all, "pool own: no price: cat ended with exit code 1")) << log();
  ASSERT_TRUE(wait_until_said(all, "its price is not known")) << log();
  wait_until_training(all);
  EXPECT_FALSE(std::filesystem::exists(path("cloud/asked"))) << "nothing may be asked for";
  std::ofstream(path("price")) << "1\n";  // a run that goes on without workers needs a node
  end(all);
}

TEST_F(PoolRun, RunThatWaitsForANodeSaysWhyNoneComes) {
  const Words limits{"--set", "cluster.burst={budget: 100, decide_every: 1s}"};
  const Words pool = cloud_pool(0, ", price: 'cat " + path("price") + "'");
  const Words until = until_iteration(300);
  Process all(command(run_words("a", until + limits + pool)));
  ASSERT_TRUE(wait_until_said(all,
                              "no node trains yet, and the run waits for the first one: pool "
                              "own: no price: cat ended with exit code 1"))
      << log();
  EXPECT_FALSE(std::filesystem::exists(path("cloud/asked")));
  EXPECT_EQ(stop(all).exit_code, 128 + SIGTERM);
  std::ofstream(path("price")) << "1\n";
  Process again(command({"run", "--resume", path("a")}));
  const ProcessEnd end = again.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(parse_json(read_text(path("a/summary.json")))["state_hash"].text(),
            hash_of("alone", until));
}

TEST_F(PoolRun, RunWithoutWorkersThatWantsNoNodeSaysHowToGetOne) {
  Process all(command(run_words("a", kEndlessRun + cloud_pool(0))));
  ASSERT_TRUE(wait_until_said(all, "no node is wanted (troupe burst asks for some)")) << log();
  EXPECT_EQ(burst("1").exit_code, 0);
  ASSERT_TRUE(wait_until(all, "own", 1, "running")) << log();
  EXPECT_EQ(stop(all).exit_code, 128 + SIGTERM);
}

TEST_F(PoolRun, BudgetThatCannotPayForANodeEndsARunWithoutOtherWorkers) {
  const Words limits{"--set", "cluster.burst={budget: 1, decide_every: 1s}"};
  const ProcessEnd end =
      run("a", until_iteration(3000) + limits + cloud_pool(1, ", price_per_node_hour: 3600"));
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, HasSubstr("raise cluster.burst.budget and resume the run"));
  EXPECT_FALSE(std::filesystem::exists(path("cloud/asked"))) << "nothing may be asked for";
}

TEST_F(PoolRun, WishesThatCannotBeAreRefused) {
  Process all(command(endless(cloud_pool(0))));
  wait_until_training(all);
  expect_refused(burst("5"), 2, {"pool own has 4 nodes at most, not 5"});
  expect_refused(burst("1", "hpc"), 2, {"the run has no pool 'hpc'; its pools are own"});
  expect_refused(burst("many"), 2, {"'many' is no number of nodes such as 8, +4 or -2"});
  stop(all);
  Process without(command(run_words("b", kEndlessRun + listening() + Words{"--workers", "1"})));
  wait_until_training(without, 20, "b");
  expect_refused(burst("1"), 2, {"the run has no pools"});
  stop(without);
}

TEST_F(PoolRun, TopologyWithoutAPortOrACommandIsRefused) {
  Words words = cloud_pool(1);
  words.erase(words.begin(), words.begin() + 2);
  expect_refused(run("a", words), 3, {"cluster.listen", "nodes of cluster.pools"});
  expect_refused(run("a", listening() + Words{"--set",
                                              "cluster.pools=[{name: own, launcher: "
                                              "command, nodes: 1}]"}),
                 3, {"a pool of commands needs `start` and `stop`"});
}

// Runs that go on with these words wait for no node.
const Words kAlone{"--workers", "1"};
constexpr const char* kHosts = "[refusing, hanging, node-a, node-b]";

// Servers of OpenSSH on this machine: node-a, node-b, one that refuses the key, and one that hangs.
class SshPool : public PoolRun {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/sbin/sshd")) GTEST_SKIP() << "sshd is not installed";
    bring_up({});
  }
  void bring_up(const Words& more) {
    const Words words{"/usr/bin/env", "-u", kMark, TROUPE_SSH_HOSTS, "up", path("ssh")};
    const ProcessEnd up = Process(words + more).wait();
    if (up.exit_code == 77) GTEST_SKIP() << "networks of their own cannot be had here: " << up.err;
    ASSERT_EQ(up.exit_code, 0) << up.err;
  }
  void TearDown() override {
    if (std::filesystem::exists(path("ssh/config"))) {
      EXPECT_EQ(Process({TROUPE_SSH_HOSTS, "down", path("ssh")}).wait().exit_code, 0);
    }
    EXPECT_NE(left(), 0) << "no member of ours is left";
    PoolRun::TearDown();
  }
  // The exit code of pgrep: 0 if there is a process that was launched by ssh.
  int left() const {
    return Process({"/usr/bin/pgrep", "-f", address() + " --launched campus[.]"}).wait().exit_code;
  }
  Words ssh_pool(const std::string& hosts, int nodes, const std::string& more = "") const {
    return listening() +
           Words{"--set",
                 fmt::format("cluster.pools=[{{name: campus, launcher: ssh, nodes: {}, most: 2, "
                             "hosts: {}, options: [-F, {}]{}}}]",
                             nodes, hosts, path("ssh/config"), more)};
  }
};

TEST_F(SshPool, TakesTheHostsThatLetItInAndSurvivesOneThatIsCutOff) {
  Process all(command(endless(ssh_pool(kHosts, 2))));
  ASSERT_TRUE(wait_until(all, "campus", 2, "running")) << log();
  EXPECT_THAT(log(), HasSubstr("refusing: ssh ended with exit code 255"));
  EXPECT_THAT(log(), HasSubstr("Permission denied"));
  EXPECT_THAT(log(), HasSubstr("hanging: ssh ended with exit code 255"));
  // Members talk to the head directly.
  const pid_t server = std::stoi(read_text(path("ssh/node-a/pid")));
  ::kill(server, SIGSTOP);
  EXPECT_EQ(burst("1", "campus").exit_code, 0);
  ASSERT_TRUE(wait_until_said(all, "is given back")) << log();
  wait_until_training(all, steps() + 40);
  ::kill(server, SIGCONT);
  end(all, ssh_pool(kHosts, 0) + kAlone);
}

TEST_F(SshPool, HostWithoutTheProgramGetsACopy) {
  Process all(command(endless(ssh_pool("[node-a]", 1, ", program: /nowhere/troupe, workers: 2"))));
  ASSERT_TRUE(wait_until(all, "campus", 1, "running")) << log();
  EXPECT_TRUE(std::filesystem::exists(path("ssh/node-a/.cache/troupe/troupe")));
  end(all);
}

// The hosts have networks of their own, so that members need keys, and one whose plug is pulled
// says nothing to anybody.
class SshNetworks : public SshPool {
 protected:
  void SetUp() override {
    if (!is_thorough()) GTEST_SKIP() << "it takes long: TROUPE_THOROUGH";
    if (!std::filesystem::exists("/usr/sbin/sshd")) GTEST_SKIP() << "sshd is not installed";
    bring_up({"namespaces"});
    if (!IsSkipped()) host_ = first_line(path("ssh/address"));
  }
  static std::string first_line(const std::string& path) {
    const std::string text = read_text(path);
    return text.substr(0, text.find('\n'));
  }
};

TEST_F(SshNetworks, MembersOfOtherNetworksJoinByTokensAndOneIsCutOff) {
  const Words keys{"--set", "cluster.keys=" + make_keys("keys")};
  Process all(command(endless(ssh_pool(kHosts, 2) + keys)));
  ASSERT_TRUE(wait_until(all, "campus", 2, "running")) << log();
  EXPECT_THAT(log(), HasSubstr("Permission denied"));
  EXPECT_THAT(log(), HasSubstr("hanging: ssh ended with exit code 255"));
  const auto before = steps();
  const auto plug = [&](const std::string& way) {
    return Process({TROUPE_SSH_HOSTS, "plug", path("ssh"), "node-a", way}).wait().exit_code;
  };
  ASSERT_EQ(plug("down"), 0);
  ASSERT_TRUE(wait_until_said(all, "has not been heard of")) << log();
  wait_until_training(all, std::max(before, steps()) + 40);
  ASSERT_EQ(plug("up"), 0);
  end(all, ssh_pool(kHosts, 0) + keys + kAlone);
}

}  // namespace
}  // namespace troupe

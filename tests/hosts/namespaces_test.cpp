// Runs over several hosts, as network namespaces of this machine: real addresses, keys, slow and
// broken cables. Skipped, with the reason, where the system refuses namespaces.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "tests/hosts/network.h"
#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr int kPort = 8500;

class Hosts : public ClusterRun {
 protected:
  void lay_cables(int hosts) {
    network_ = std::make_unique<Network>(hosts);
    if (!network_->refusal().empty()) GTEST_SKIP() << network_->refusal();
    keys_ = make_keys("keys");
  }
  // A run whose supervisor is on host 0, with so many workers on each.
  Words head_line(const std::vector<int>& workers, Words more = {}) const {
    std::vector<std::string> hosts;
    for (std::size_t host = 0; host < workers.size(); ++host) {
      if (workers[host] == 0) continue;
      hosts.push_back(fmt::format("{{address: {}, workers: {}}}",
                                  Network::address(static_cast<int>(host)), workers[host]));
    }
    more.insert(more.end(),
                {"--set", fmt::format("cluster.hosts=[{}]", fmt::join(hosts, ", ")), "--set",
                 fmt::format("cluster.listen=\"{}:{}\"", Network::address(0), kPort), "--set",
                 "cluster.keys=" + keys_});
    return network_->on(0, command(run_words("a", more)));
  }
  std::unique_ptr<Process> join_from(int host, const Words& more = {}) const {
    ProcessOptions options;
    options.folder = path(".");
    return std::make_unique<Process>(network_->on(host, command(join_words(more))), options);
  }
  // All that it sends goes over its cable.
  std::unique_ptr<Process> join_apart_from(int host, const Words& more = {}) const {
    return std::make_unique<Process>(network_->apart_on(host, command(join_words(more))));
  }
  Words join_words(const Words& more) const {
    Words words =
        Words{"join", fmt::format("{}:{}#{}", Network::address(0), kPort, public_key(keys_)),
              "--key", keys_} +
        more;
    return words;
  }

  std::unique_ptr<Network> network_;
  std::string keys_;
};

TEST_F(Hosts, TheShippedTopologyGivesOneHashInOneProcessOnOneHostAndOnThree) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(3));
  if (IsSkipped()) return;
  const auto words = [&](const std::string& name, Words more = {}) {
    const std::string shipped = TROUPE_SOURCE_DIR "/config/topologies/three_hosts.yaml";
    Words all = Words{"run",
                      shipped,
                      "--out",
                      path(name),
                      "--json",
                      "--set",
                      "train.iterations=2",
                      "--set",
                      "data.synthetic.events=300",
                      "--set",
                      "train.micro_batch=4",
                      "--set",
                      "cluster.keys=" + keys_,
                      "--set",
                      "actors.validator.every=none"} +
                more;
    return all;
  };
  const ProcessEnd one = call(words("one", {"--workers", "0"}));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const ProcessEnd two = call(words("two", {"--workers", "2"}));
  ASSERT_EQ(two.exit_code, 0) << two.err;
  Process three(network_->on(0, command(words("three"))));
  std::vector<std::unique_ptr<Process>> joined;
  for (const int host : {1, 1, 2, 2}) joined.push_back(join_apart_from(host));
  const ProcessEnd end = three.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  for (const auto& member : joined) EXPECT_EQ(member->wait().exit_code, 0);
  EXPECT_EQ(last_line(two)["state_hash"].text(), last_line(one)["state_hash"].text());
  EXPECT_EQ(last_line(end)["state_hash"].text(), last_line(one)["state_hash"].text());
  EXPECT_EQ(nodes("three").size(), 7u);
}

// A generator whose sums are kLargeBytes and more, and a run of so many steps of it.
constexpr std::uint64_t kLargeBytes = std::uint64_t{5000} * 8 * sizeof(std::int64_t);
constexpr std::uint64_t kLargeSteps = 8;
const Words kLarge{"--set", "model.generator.latent.size=5000", "--set", "train.iterations=4"};

// What cluster.bandwidth says of hosts at the end of such cables: a pair is as fast as its slower
// one.
std::string bandwidth_of(const std::vector<int>& others, const std::string& rate, int slower) {
  std::vector<std::string> names;
  for (const int other : others) names.push_back(Network::address(other));
  return fmt::format("{{between: [[{}], {}], rate: {}}}", fmt::join(names, ", "),
                     Network::address(slower), rate);
}

// A head with two members beside it, and one member at the end of each of two cables: their ring
// goes over both cables and none.
TEST_F(Hosts, MembersOnThreeHostsOfDifferentSpeedGiveTheHashOfOneProcess) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(3));
  if (IsSkipped()) return;
  if (!network_->limit_rate(1, "50mbit") || !network_->limit_rate(2, "8mbit")) {
    GTEST_SKIP() << network_->refusal();
  }
  const std::string rates =
      fmt::format("cluster.bandwidth=[{}, {}]", bandwidth_of({0}, "50Mbit", 1),
                  bandwidth_of({0, 1}, "8Mbit", 2));
  Process run(head_line({2, 1, 1}, kLarge + Words{"--json", "--set", rates}));
  const auto fast = join_apart_from(1);
  const auto slow = join_apart_from(2);
  const ProcessEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(fast->wait().exit_code, 0);
  EXPECT_EQ(slow->wait().exit_code, 0);
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash_of("alone", kLarge));
  EXPECT_EQ(nodes().size(), 5U);
  EXPECT_THAT(log(), AllOf(HasSubstr("ring: "), HasSubstr(", 8Mbit")));
  for (const int host : {1, 2}) EXPECT_GT(network_->sent_by(host), kLargeSteps * kLargeBytes);
}

// With four hosts there is a choice: the slow one stands beside that at the slower of the other
// cables.
TEST_F(Hosts, RingOrderedByTheRatesOfFourHostsGivesTheHashOfOneProcess) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(4));
  if (IsSkipped()) return;
  if (!network_->limit_rate(1, "50mbit") || !network_->limit_rate(3, "8mbit")) {
    GTEST_SKIP() << network_->refusal();
  }
  const std::string rates =
      fmt::format("cluster.bandwidth=[{}, {}]", bandwidth_of({0, 2}, "50Mbit", 1),
                  bandwidth_of({0, 1, 2}, "8Mbit", 3));
  Process run(head_line({1, 1, 1, 1}, kLarge + Words{"--json", "--set", rates}));
  std::vector<std::unique_ptr<Process>> joined;
  for (int host = 1; host < 4; ++host) {
    joined.push_back(join_apart_from(host, {"--node", fmt::format("member.{}", host)}));
  }
  const ProcessEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  for (const auto& member : joined) EXPECT_EQ(member->wait().exit_code, 0);
  EXPECT_THAT(log(),
              HasSubstr("ring: 10.77.0.1 (member.0) -> 10.77.0.2 (member.1) -> 10.77.0.4 "
                        "(member.3) -> 10.77.0.3 (member.2) -> 10.77.0.1; slowest edge 10.77.0.2 "
                        "-> 10.77.0.4, 8Mbit"));
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash_of("alone", kLarge));
  for (int host = 1; host < 4; ++host) {
    EXPECT_GT(network_->sent_by(host), kLargeSteps * kLargeBytes);
  }
}

// The second network is without the member's host.
TEST_F(Hosts, DataOverUcxCrossTheNamedNetworkAlone) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(2));
  if (IsSkipped()) return;
  ::setenv("UCX_TLS", "tcp", 1);
  const auto line_in = [&](const std::string& network) {
    return head_line({1, 1}, kLarge + Words{"--json", "--set", "cluster.fabric=ucx", "--set",
                                            "cluster.fabric_network=" + network});
  };
  Process run(line_in("10.77.0.0/24"));
  const auto member = join_apart_from(1);
  const ProcessEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(member->wait().exit_code, 0) << member->err();
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash_of("alone", kLarge));
  EXPECT_GT(network_->sent_by(1), kLargeSteps * kLargeBytes);

  std::filesystem::remove_all(path("a"));
  Process alone(line_in("10.77.0.1/32"));
  const ProcessEnd refused = join_from(1)->wait();
  EXPECT_EQ(refused.exit_code, 5) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("cluster.fabric_network"));
  alone.send(SIGTERM);
  EXPECT_NE(alone.wait().exit_code, 0);
}

// The head still hears both: only they can say what is wrong.
TEST_F(Hosts, OfMembersThatLoseEachOtherOneGoesOn) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(3));
  if (IsSkipped()) return;
  Words iterations = until_iteration(600);
  const std::string whole = hash_of("whole", iterations);
  iterations.emplace_back("--json");
  Process run(head_line({0, 1, 1}, iterations));
  const auto one = join_from(1, {"--node", "member.0"});
  const auto other = join_from(2, {"--node", "member.1"});
  wait_until_training(run);
  if (!network_->part(1, 2)) GTEST_SKIP() << network_->refusal();
  const ProcessEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), whole);
  const auto quarrel =
      AnyOf(HasSubstr("member.0 has lost member.1: member.1 has not been heard of for"),
            HasSubstr("member.1 has lost member.0: member.0 has not been heard of for"));
  EXPECT_THAT(end.err, quarrel);
  const ProcessEnd stays = one->wait(), goes = other->wait();
  EXPECT_EQ(stays.exit_code, 0) << stays.err;
  EXPECT_EQ(goes.exit_code, 5) << goes.err;
  EXPECT_THAT(goes.err, quarrel);
  EXPECT_EQ(nodes().at("member.0").state, "ended");
  EXPECT_EQ(nodes().at("member.1").state, "dead");
}

TEST_F(Hosts, MemberThatItsNeighboursCannotReachIsRefusedAndMayComeFromElsewhere) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(3));
  if (IsSkipped()) return;
  Process run(head_line({0, 1, 1}));
  const auto one = join_from(1, {"--node", "member.0", "--listen", "none"});
  const auto here = [&] { return log().find("member.0 is here"); };
  ASSERT_TRUE(run.wait_until([&] { return here() != std::string::npos; }));
  const auto refused = join_from(2, {"--node", "member.1", "--listen", "127.0.0.1:8700"});
  const ProcessEnd refusal = refused->wait();
  EXPECT_EQ(refusal.exit_code, 2) << refusal.err;
  EXPECT_THAT(refusal.err, AllOf(HasSubstr("member.1"), HasSubstr("127.0.0.1:8700"),
                                 HasSubstr("member.0"), HasSubstr("--listen")));
  const auto other = join_from(2, {"--node", "member.1"});
  const ProcessEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(one->wait().exit_code, 0);
  EXPECT_EQ(other->wait().exit_code, 0);
}

TEST_F(Hosts, MemberThatNobodyCanDialMakesItsConnectionsItself) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(3));
  if (IsSkipped()) return;
  const auto dial = [&] {
    const std::string there = fmt::format("exec 3<>/dev/tcp/{}/9", Network::address(2));
    return Process(network_->on(1, {"/usr/bin/timeout", "2", "/bin/bash", "-c", there}))
        .wait()
        .exit_code;
  };
  constexpr int kRefused = 1, kNoAnswer = 124;
  EXPECT_EQ(dial(), kRefused);
  if (!network_->shut_in(2)) GTEST_SKIP() << network_->refusal();
  ASSERT_EQ(dial(), kNoAnswer);
  Process run(head_line({0, 2, 1}, {"--json"}));
  // The plan names it first: the others would dial it.
  const auto outbound = join_from(2, {"--node", "member.0", "--listen", "none"});
  const auto one = join_from(1, {"--node", "member.1"});
  const auto other = join_from(1, {"--node", "member.2"});
  const ProcessEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  for (const auto* member : {&outbound, &one, &other}) {
    const ProcessEnd joined = (*member)->wait();
    EXPECT_EQ(joined.exit_code, 0) << joined.err;
  }
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash_of("alone"));
}

// Their ring goes over the head's machine, once each way, and the head reads none of it.
TEST_F(Hosts, MembersThatNobodyCanDialReachEachOtherThroughTheRelay) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(3));
  if (IsSkipped()) return;
  if (!network_->shut_in(1) || !network_->shut_in(2)) GTEST_SKIP() << network_->refusal();
  Words more = kLarge;
  more.emplace_back("--json");
  Process run(head_line({0, 1, 1}, more));
  const auto one = join_apart_from(1, {"--node", "member.0", "--listen", "none"});
  const auto other = join_apart_from(2, {"--node", "member.1", "--listen", "none"});
  const ProcessEnd end = run.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  for (const auto* member : {&one, &other}) {
    const ProcessEnd joined = (*member)->wait();
    EXPECT_EQ(joined.exit_code, 0) << joined.err;
    EXPECT_THAT(joined.err, HasSubstr("reached through the relay at 10.77.0.1 port 8502"));
  }
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash_of("alone", kLarge));
  for (const int host : {1, 2}) EXPECT_GT(network_->sent_by(host), kLargeSteps * kLargeBytes);
}

// Packets are lost meanwhile, but nobody is given up.
TEST_F(Hosts, CableThatIsMendedInTimeChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(2));
  if (IsSkipped()) return;
  Process run(head_line({1, 1}, kEndlessRun + Words{"--set", "cluster.failure.dead_after=30s"}));
  const auto member = join_from(1);
  wait_until_training(run);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(network_->cut_cable(1));
    // Long enough for both ends to have sent something that is lost.
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    ASSERT_TRUE(network_->mend_cable(1));
    const std::size_t before = steps();
    ASSERT_TRUE(run.wait_until([&] { return steps() >= before + 40; })) << run.wait().err;
  }
  stop(run);
  EXPECT_EQ(member->wait().exit_code, 0);
  expect_goes_on({"--workers", "0"});
}

TEST_F(Hosts, HeadsSideOfACutCableGoesOnAndTheOtherEnds) {
  ASSERT_NO_FATAL_FAILURE(lay_cables(2));
  if (IsSkipped()) return;
  Words iterations = until_iteration(600);
  const std::string whole = hash_of("whole", iterations);
  iterations = iterations + Words{"--json", "--set", "cluster.failure.orphan_after=2s"};
  Process run(head_line({1, 1}, iterations));
  const auto member = join_from(1);
  wait_until_training(run);
  ASSERT_TRUE(network_->cut_cable(1));
  const ProcessEnd end = run.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), whole);
  EXPECT_THAT(end.err, HasSubstr("member.1 has not been heard of for"));
  const ProcessEnd joined = member->wait();
  EXPECT_EQ(joined.exit_code, 5) << joined.err;
  EXPECT_THAT(joined.err, HasSubstr("head has not been heard of for"));
  EXPECT_THAT(joined.err, HasSubstr("steps is saved, and one member's is enough to go on with: "
                                    "troupe run --resume runs/member.1-"));
  const auto known = nodes();
  EXPECT_EQ(known.at("member.1").state, "dead");
  EXPECT_EQ(known.at("member.0").state, "ended");
}

}  // namespace
}  // namespace troupe

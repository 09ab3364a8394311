// Joining a run by hand: introductions through real sockets, and what is said on both sides when
// one of them cannot be.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "launch/machine/this_host.h"
#include "runtime/base/clock.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ClusterJoin : public ClusterRun {
 protected:
  // A head that waits for members at address_; its log is in RUN/log.txt.
  std::unique_ptr<Process> waiting_head(int members, const Words& more = {}) const {
    auto head = std::make_unique<Process>(command(head_words("a", address_, members, more)));
    EXPECT_TRUE(wait_until_said(*head, "waiting for")) << head->wait().err;
    return head;
  }
  ProcessEnd join(Words more = {}) const {
    more.insert(more.begin(), "join");
    return call(more);
  }
  // It is still waiting, and ends when it is told to.
  void expect_unharmed(Process& head) const {
    EXPECT_TRUE(head.running());
    head.send(SIGTERM);
    EXPECT_EQ(head.wait().exit_code, 143);
  }

  const std::uint16_t port_ = free_port();
  const std::string address_ = fmt::format("127.0.0.1:{}", port_);
};

TEST_F(ClusterJoin, WhereNobodyListensItGivesUp) {
  expect_refused(join({address_, "--within", "1"}), 5,
                 {address_, "nobody answered for 1 s", "is the run going on"});
}

TEST_F(ClusterJoin, AddressesThatLeadNowhereAreRefused) {
  expect_refused(join({"nowhere.invalid:8500"}), 2, {"nowhere.invalid", "does not resolve"});
  expect_refused(join({"127.0.0.1"}), 2, {"'127.0.0.1'", "no port"});
  expect_refused(join({"127.0.0.1:0"}), 2, {"127.0.0.1:0"});
  expect_refused(join({address_, "--within", "0"}), 2, {"--within"});
  expect_refused(join({}), 2, {"which address?"});
}

TEST_F(ClusterJoin, PortInUseEndsTheHead) {
  auto other = waiting_head(1);
  const ProcessEnd end = call(head_words("b", address_, 1));
  expect_refused(end, 2, {address_, "in use"});
  EXPECT_FALSE(std::filesystem::exists(path("b/topology.yaml")));
  expect_unharmed(*other);
}

// Before the head hears of it.
TEST_F(ClusterJoin, MemberThatCannotListenWhereItIsToldDoesNotJoin) {
  auto head = waiting_head(1);
  expect_refused(join({address_, "--listen", address_}), 2, {address_, "in use"});
  expect_refused(join({address_, "--listen", "0.0.0.0"}), 2, {"0.0.0.0", "no port"});
  expect_refused(join({address_, "--listen", "ipc://" + path("none/member")}), 2,
                 {path("none/member")});
  EXPECT_THAT(log(), Not(HasSubstr("is here")));
  expect_unharmed(*head);
}

// A member that listens can be reached there: its port is taken while the run goes on.
TEST_F(ClusterJoin, MemberListensAtTheAddressThatItIsTold) {
  auto head = waiting_head(2, kEndlessRun);
  const runtime::SteadyClock clock;
  runtime::ZmqWireOptions options;
  options.clock = &clock;
  options.listen = fmt::format("tcp://127.0.0.1:{}", free_port());
  Process first(command({"join", address_, "--node", "member.0", "--listen", options.listen}));
  Process second(command({"join", address_, "--node", "member.1"}));
  wait_until_training(*head);
  const auto taken = runtime::ZmqWire::open(options);
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message, HasSubstr("in use"));
  expect_unharmed(*head);
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(second.wait().exit_code, 0);
}

TEST_F(ClusterJoin, OneMemberTooManyAndUnknownNamesAreRefusedOnBothSides) {
  Words words =
      kEndlessRun + Words{"--set", "cluster.joiners=0", "--set", "cluster.failure.restart=0"};
  auto head = waiting_head(1, words);
  expect_refused(join({address_, "--node", "member.7"}), 2, {"member.7 is not awaited"});
  EXPECT_THAT(log(), AllOf(HasSubstr("was refused"), HasSubstr("member.7 is not awaited")));
  Process member(command({"join", address_, "--node", "member.0"}));
  wait_until_training(*head);
  expect_refused(join({address_}), 2, {"every member slot of the run is taken"});
  EXPECT_THAT(log(), HasSubstr("every member slot of the run is taken"));
  expect_unharmed(*head);
  EXPECT_EQ(member.wait().exit_code, 0);
}

// A batch job starts all processes at once, and places for newcomers open when the run begins.
TEST_F(ClusterJoin, OneThatComesBeforeTheFirstMembersWaitsForASlot) {
  auto head = std::make_unique<Process>(
      command(head_words("a", address_, 1, kEndlessRun + Words{"--member-here", "member.0"})));
  expect_refused(join({address_, "--wait", "0"}), 5,
                 {"the run begins with member.0, and others join it after that, still after 0 s"});
  Process early(command({"join", address_}));
  ASSERT_TRUE(early.wait_until(
      [&] { return early.err().find("the run begins with member.0") != std::string::npos; }));
  Process first(command({"join", address_, "--node", "member.0"}));
  EXPECT_TRUE(wait_until_told(*head, R"("joined":["member.1"])"));
  expect_unharmed(*head);
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(early.wait().exit_code, 0);
}

TEST_F(ClusterJoin, WrongKeysAreRefusedWithTheirCauses) {
  const std::string keys = make_keys("keys");
  const std::string unknown = make_keys("unknown");
  auto head = waiting_head(1, {"--set", "cluster.keys=" + keys});
  // The right key of the head, but one of its own that is not let in.
  expect_refused(join({address_ + "#" + public_key(keys), "--key", unknown}), 5, {"key"});
  // A friend that expects another head.
  expect_refused(join({address_ + "#" + public_key(unknown), "--key", keys, "--within", "3"}), 5,
                 {address_});
  // No key at all.
  expect_refused(join({address_, "--within", "3"}), 5, {address_});
  EXPECT_THAT(log(), HasSubstr("key"));
  expect_unharmed(*head);
}

TEST_F(ClusterJoin, TheLinesThatArePrintedWorkWhenPasted) {
  const std::string keys = make_keys("keys");
  auto head = waiting_head(2, {"--set", "cluster.keys=" + keys, "--json"});
  std::vector<std::string> commands;
  std::istringstream lines(log());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("troupe join ");
    if (at == std::string::npos) continue;
    std::string command = line.substr(at);
    command.replace(0, 6, std::string("exec ") + TROUPE_BINARY);
    const std::size_t folder = command.find("--key DIR");
    ASSERT_NE(folder, std::string::npos) << line;
    commands.push_back(command.replace(folder + 6, 3, keys));
  }
  ASSERT_EQ(commands.size(), 2U) << log();
  Process first({"/bin/sh", "-c", commands[0]});
  Process second({"/bin/sh", "-c", commands[1]});
  const ProcessEnd end = head->wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  for (Process* member : {&first, &second}) {
    const ProcessEnd joined = member->wait();
    EXPECT_EQ(joined.exit_code, 0) << joined.err;
  }
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash_of("alone"));
  for (const auto& [name, node] : nodes())
    EXPECT_EQ(node.state, "ended") << name << " " << node.cause;
}

TEST_F(ClusterJoin, OtherDataUnderTheSameNameIsRefusedNamingBothFingerprints) {
  auto head = waiting_head(1);
  ToyData other(200);
  other.cells[0] += 0.125f;
  other.write(path("toy.h5"));
  const ProcessEnd end = join({address_});
  expect_refused(end, 4, {"another data fingerprint: head has ", ", member.0 has "});
  const std::size_t at = end.err.find("another data fingerprint");
  const std::string said = end.err.substr(at, end.err.find('\n', at) - at);
  EXPECT_TRUE(wait_until_said(*head, said)) << said;
  expect_unharmed(*head);
}

TEST_F(ClusterJoin, MissingDataIsToldWithItsPathAndMayBeMended) {
  auto head = waiting_head(1);
  std::filesystem::rename(path("toy.h5"), path("gone.h5"));
  expect_refused(join({address_}), 4, {path("toy.h5")});
  std::filesystem::rename(path("gone.h5"), path("toy.h5"));
  const ProcessEnd again = join({address_});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(head->wait().exit_code, 0);
}

TEST_F(ClusterJoin, WhoListensEverywhereNamesAnAddressThatOthersReach) {
  const auto numbers = launch::interface_addresses();
  if (numbers.empty() || numbers.front().find(':') != std::string::npos) {
    GTEST_SKIP() << "no interface but loopback has an IPv4 address";
  }
  const std::string keys = make_keys("keys");
  Process head(command(
      head_words("a", fmt::format("0.0.0.0:{}", port_), 1, {"--set", "cluster.keys=" + keys})));
  ASSERT_TRUE(wait_until_said(head, "waiting for"));
  const std::string said = log();
  const std::string begin = "troupe join 'tcp://";
  const std::size_t at = said.find(begin) + begin.size();
  const std::string address = said.substr(at, said.find('\'', at) - at);
  EXPECT_THAT(address,
              testing::StartsWith(fmt::format(
                  "{}:{}#", address.substr(0, address.find_first_not_of("0123456789.")), port_)));
  EXPECT_THAT(address, Not(testing::StartsWith("127.")));
  const ProcessEnd member = join({address, "--key", keys});
  EXPECT_EQ(member.exit_code, 0) << member.err;
  EXPECT_EQ(head.wait().exit_code, 0);
}

// The same is said before a run as when it is to begin.
TEST_F(ClusterJoin, HostsElsewhereNeedAnAddressThatTheyCanReach) {
  const auto expect_both_refused = [&](const Words& more, const std::vector<std::string>& parts) {
    expect_refused(run("a", more), 3, parts);
    expect_refused(call(Words{"check", path("toy.yaml")} + more), 3, parts);
  };
  const Words away{"--set", "cluster.hosts=[{address: elsewhere.invalid}]"};
  expect_both_refused(away, {"--set cluster.hosts", "cluster.listen: 127.0.0.1:0 is reached from",
                             "elsewhere.invalid", "cluster.keys"});
  expect_both_refused(away + Words{"--set", "cluster.listen=\"*:8500\""},
                      {"cluster.listen", "troupe keygen"});
  const std::string keys = make_keys("keys");
  Words any_port = away;
  any_port.insert(any_port.end(),
                  {"--set", "cluster.listen=\"*:0\"", "--set", "cluster.keys=" + keys});
  expect_both_refused(any_port, {"--set cluster.listen", "*:0 has no port of its own"});
  EXPECT_FALSE(std::filesystem::exists(path("a/topology.yaml")));
}

// The machine that is to run it may know the name.
TEST_F(ClusterJoin, ANameThatLeadsNowhereHereRefusesARunAndOnlyWarnsOfOne) {
  const Words away{"--set", "cluster.hosts=[{address: elsewhere.invalid}]",
                   "--set", "cluster.listen=\"nowhere.invalid:8500\"",
                   "--set", "cluster.keys=" + make_keys("keys")};
  expect_refused(run("a", away), 3, {"cluster.listen: nowhere.invalid:8500 leads nowhere"});
  const ProcessEnd checked = call(Words{"check", path("toy.yaml")} + away);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.err, HasSubstr("troupe: warning: "));
  EXPECT_THAT(checked.err, HasSubstr("nowhere.invalid:8500 leads nowhere"));
}

// Longer than any patience with a standstill: it is people who are awaited.
TEST_F(ClusterJoin, WaitingForMembersIsNoStandstill) {
  auto head = waiting_head(2, {"--json", "--set", "cluster.failure.stuck_after=3s"});
  Process first(command({"join", address_}));
  ASSERT_TRUE(wait_until_said(*head, "is here"));
  std::this_thread::sleep_for(std::chrono::seconds(4));
  Process second(command({"join", address_}));
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(second.wait().exit_code, 0);
  const ProcessEnd end = head->wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, Not(HasSubstr("stuck")));
}

TEST_F(ClusterJoin, LinesOfMembersAreWholeAndNamed) {
  const ProcessEnd end = run("a", {"--workers", "3"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("epoch 2/2 [####################] 100 %"));
  std::istringstream lines(end.err);
  std::map<std::string, int> named;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" | ") == std::string::npos) continue;
    ++named[line.substr(0, line.find(" | "))];
    EXPECT_THAT(line, testing::MatchesRegex("member\\.[0-2] \\| 20[0-9-]+ [0-9:.]+ info .*"));
  }
  EXPECT_EQ(named.size(), 3u);
}

}  // namespace
}  // namespace troupe

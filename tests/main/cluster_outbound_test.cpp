// Members that nobody can dial: they open no port, dial the head and the other members, and are
// members like others.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "runtime/base/clock.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::IsEmpty;
using testing::Not;

const Words kOutbound{"--listen", "none"};

// Words of lines in a table of /proc, with its heading left out.
std::vector<Words> table_of(pid_t process, const std::string& name) {
  std::istringstream lines(read_text(fmt::format("/proc/{}/net/{}", process, name)));
  std::vector<Words> table;
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line);) {
    std::istringstream words(line);
    table.emplace_back();
    for (std::string word; words >> word;) table.back().push_back(word);
  }
  return table;
}

// Local addresses, as the system writes them, at which the process listens for TCP.
std::vector<std::string> listening(pid_t process) {
  std::set<std::string> sockets;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process))) {
    std::error_code gone;
    sockets.insert(std::filesystem::read_symlink(entry.path(), gone).string());
  }
  std::vector<std::string> found;
  for (const char* name : {"tcp", "tcp6"}) {
    for (const Words& words : table_of(process, name)) {
      constexpr std::size_t kLocal = 1, kState = 3, kInode = 9;
      constexpr const char* kListens = "0A";
      if (words.size() <= kInode || words[kState] != kListens) continue;
      if (sockets.contains(fmt::format("socket:[{}]", words[kInode]))) {
        found.push_back(words[kLocal]);
      }
    }
  }
  return found;
}

class ClusterOutbound : public ClusterRun {
 protected:
  std::unique_ptr<Process> join(int number, const Words& more = {}) const {
    return ClusterRun::join(Words{address_, "--node", fmt::format("member.{}", number)} + more);
  }

  const std::uint16_t port_ = free_port();
  const std::string address_ = fmt::format("127.0.0.1:{}", port_);
};

// It learns from one that listens, and teaches another one.
TEST_F(ClusterOutbound, JoinsWhileItTrainsLearnsAndTeachesWithoutAPort) {
  Process head(command(head_words("a", address_, 1, kEndlessRun)));
  const auto first = join(0);
  wait_until_training(head);
  const auto outbound = join(1, kOutbound);
  ASSERT_TRUE(wait_until_told(head, R"("joined":["member.1"])"));
  EXPECT_THAT(listening(outbound->pid()), IsEmpty());
  EXPECT_THAT(listening(first->pid()), Not(IsEmpty()));
  first->send(SIGTERM);
  EXPECT_EQ(first->wait().exit_code, 0);
  ASSERT_TRUE(wait_until_told(head, R"("members":["member.1"])"));
  const auto last = join(2);
  EXPECT_TRUE(wait_until_said(head, "member.2 is here and learns from member.1"));
  ASSERT_TRUE(wait_until_told(head, R"("joined":["member.2"])"));
  EXPECT_THAT(listening(outbound->pid()), IsEmpty());
  stop_and_expect_whole(head);
  EXPECT_EQ(outbound->wait().exit_code, 0);
  EXPECT_EQ(last->wait().exit_code, 0);
}

TEST_F(ClusterOutbound, OneTeachesAnotherThroughTheRelayWithKeys) {
  const std::string keys = make_keys("keys");
  Process head(
      command(head_words("a", address_, 1, kEndlessRun + Words{"--set", "cluster.keys=" + keys})));
  const auto join_with_key = [&](int number) {
    return std::make_unique<Process>(
        command({"join", fmt::format("{}#{}", address_, public_key(keys)), "--key", keys, "--node",
                 fmt::format("member.{}", number), "--listen", "none"}));
  };
  const auto one = join_with_key(0);
  wait_until_training(head);
  const auto two = join_with_key(1);
  ASSERT_TRUE(wait_until_told(head, R"("joined":["member.1"])")) << log();
  EXPECT_THAT(listening(one->pid()), IsEmpty());
  EXPECT_THAT(listening(two->pid()), IsEmpty());
  one->send(SIGTERM);
  EXPECT_EQ(one->wait().exit_code, 0);
  stop_and_expect_whole(head);
  EXPECT_EQ(two->wait().exit_code, 0);
}

// As where another process has the relay's port.
TEST_F(ClusterOutbound, WithoutARelayTheSecondOfThemIsRefusedAndToldWhatToDo) {
  const runtime::SteadyClock clock;
  runtime::ZmqWireOptions options;
  options.clock = &clock;
  options.listen = fmt::format("tcp://127.0.0.1:{}", port_ + 2);
  const auto taken = runtime::ZmqWire::open(options);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  Process head(command(head_words("a", address_, 1, kEndlessRun)));
  const auto outbound = join(0, kOutbound);
  wait_until_training(head);
  const ProcessEnd refused = join(1, kOutbound)->wait();
  expect_refused(refused, 2,
                 {"member.1 and member.0 cannot have a connection", "neither can dial the other",
                  "start member.1 with --listen HOST:PORT"});
  EXPECT_TRUE(wait_until_said(head, "member.1 and member.0 cannot have a connection"));
  EXPECT_TRUE(wait_until_said(head, "there is no relay"));
  stop_and_expect_whole(head);
  EXPECT_EQ(outbound->wait().exit_code, 0);
}

TEST_F(ClusterOutbound, TwoOfThemOutliveAHeadWithItsRelay) {
  // One member has a port and is of this machine.
  const Words here{"--workers", "1", "--set", fmt::format("cluster.listen=\"{}\"", address_)};
  Process run(command(run_words("a", kEndlessRun + kUnhurried + here)));
  wait_until_training(run);
  std::vector<std::unique_ptr<Process>> outbound;
  for (const char* name : {"member.4", "member.5"}) {
    outbound.push_back(
        std::make_unique<Process>(command({"join", address_, "--node", name, "--listen", "none"})));
    ASSERT_TRUE(wait_until_told(run, fmt::format(R"("joined":["{}"])", name))) << log();
  }
  // The head tells a view before its members have it; they have it when they made steps in it.
  wait_until_training(run, steps() + 20);
  ASSERT_NO_FATAL_FAILURE(replace_head(run));
  wait_until_training(run, steps() + 100);
  stop(run);
  for (const auto& member : outbound) {
    const ProcessEnd joined = member->wait();
    EXPECT_EQ(joined.exit_code, 0) << joined.err;
  }
  expect_goes_on({"--workers", "0"});
}

}  // namespace
}  // namespace troupe

// Runs whose data travel over UCX: the same bits, whoever dies or joins.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

const Words kOverUcx{"--set", "cluster.fabric=ucx"};

class ClusterUcx : public ClusterRun {};

// Two members that the run starts. One is killed and replaced, and a third one joins by hand.
TEST_F(ClusterUcx, RunWhoseMembersDieAndJoinEndsInTheBitsOfOneProcess) {
  for (const char* transports : {"tcp", "shm"}) {
    SCOPED_TRACE(transports);
    ::setenv("UCX_TLS", transports, 1);
    const std::string address = fmt::format("127.0.0.1:{}", free_port());
    const Words listen{"--set", "cluster.listen=" + address};
    Process run(command(run_words("a", kEndlessRun + kOverUcx + listen) + Words{"--workers", "2"}));
    wait_until_training(run);
    const pid_t victim = member(1);
    ASSERT_GT(victim, 0);
    ::kill(victim, SIGKILL);
    const auto newcomer = join({address});
    ASSERT_TRUE(run.wait_until([&] { return count("\"joined\":[\"member.") >= 2; })) << log();
    wait_until_training(run, steps() + 30);
    EXPECT_THAT(log(), HasSubstr("data travel over UCX"));
    EXPECT_THAT(log(), HasSubstr("unencrypted"));
    stop_and_expect_whole(run);
    EXPECT_EQ(newcomer->wait().exit_code, 0);
    std::filesystem::remove_all(path("a"));
  }
}

// The toy's data are too small to care for the network; what matters is what is said.
TEST_F(ClusterUcx, AddressBeyondThisMachineNeedsATrustedNetwork) {
  const Words open_address{"--set", "cluster.listen=0.0.0.0:0", "--set",
                           "cluster.keys=" + make_keys("keys")};
  const Words check{"check", path("toy.yaml"), "--workers", "2"};
  const ProcessEnd refused = call(check + open_address + kOverUcx);
  expect_refused(refused, 3, {"cluster.fabric", "not encrypted", "cluster.fabric_network"});
  const Words trusted{"--set", "cluster.fabric_network=10.1.0.0/16"};
  EXPECT_EQ(call(check + open_address + kOverUcx + trusted).exit_code, 0);
  expect_refused(call(check + kOverUcx + Words{"--set", "cluster.fabric_network=10.1.0.0/99"}), 3,
                 {"cluster.fabric_network", "10.1.0.0/99"});
  expect_refused(call(check + trusted), 3, {"fabric_network acts only with fabric: ucx"});
}

// A run that stays on this machine goes on.
TEST_F(ClusterUcx, NetworkWithoutThisMachineIsWarnedOf) {
  const auto trains_in = [&](const std::string& name, const std::string& network) {
    const ProcessEnd end =
        run(name, until_iteration(3) + kOverUcx +
                      Words{"--workers", "2", "--set", "cluster.fabric_network=" + network});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return end.err;
  };
  const auto is_warned_of = HasSubstr("this machine has no address in cluster.fabric_network, ");
  EXPECT_THAT(trains_in("elsewhere", "198.51.100.0/24"), is_warned_of);
  EXPECT_THAT(trains_in("anywhere", "any"), testing::Not(is_warned_of));
}

}  // namespace
}  // namespace troupe

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
  const auto trusted = [&](const Words& verb, const std::string& network) {
    return call(verb + open_address + kOverUcx +
                Words{"--set", "cluster.fabric_network=" + network});
  };
  EXPECT_EQ(trusted(check, "any").exit_code, 0);
  const std::string elsewhere =
      "this machine has no address in cluster.fabric_network, 192.0.2.255/32: it has ";
  EXPECT_THAT(trusted(check, "192.0.2.255/32").err, HasSubstr(elsewhere));
  expect_refused(trusted(run_words("a", {"--workers", "2"}), "192.0.2.255/32"), 3, {elsewhere});
  expect_refused(call(check + kOverUcx + Words{"--set", "cluster.fabric_network=10.1.0.0/99"}), 3,
                 {"cluster.fabric_network", "10.1.0.0/99"});
}

}  // namespace
}  // namespace troupe

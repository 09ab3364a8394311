// A run that sees more newcomers than it has places for at a time.

#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <string>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"
#include "tests/main/pool_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ClusterPlaces : public ClusterRun {
 protected:
  std::string joined(const std::string& member) const {
    return fmt::format(R"("joined":["{}"])", member);
  }

  const std::string address_ = fmt::format("127.0.0.1:{}", free_port());
  const Words words_ =
      kEndlessRun + Words{"--set", "cluster.joiners=2", "--set", "cluster.failure.restart=0"};
};

// Six join, by turns as the two members behind the first; each is killed or drained.
TEST_F(ClusterPlaces, MoreJoinThanThereArePlacesAndCostNeitherStepNorBit) {
  Process head(command(head_words("a", address_, 1, words_)));
  Process first(command({"join", address_, "--node", "member.0"}));
  wait_until_training(head);
  auto stays = std::make_unique<Process>(command({"join", address_}));
  ASSERT_TRUE(wait_until_told(head, joined("member.1"))) << head.wait().err;
  // All places are taken, or one is not free yet: it waits for the next.
  std::string name = "member.2";
  for (int number = 2; number <= 5; ++number) {
    Process guest(command({"join", address_}));
    ASSERT_TRUE(wait_until_told(head, joined(name))) << guest.wait().err << log();
    if (number % 2 == 0) {
      guest.send(SIGKILL);
      (void)guest.wait();
    } else {
      EXPECT_EQ(call({"drain", address_, name}).exit_code, 0);
      EXPECT_EQ(guest.wait().exit_code, 0);
    }
    name = fmt::format("member.2.{}", number);
  }
  // The other place too, which was held all the time.
  stays->send(SIGKILL);
  (void)stays->wait();
  Process last(command({"join", address_}));
  const bool came =
      head.wait_until([&] { return count(joined("member.1.2")) + count(joined(name)) > 0; });
  EXPECT_TRUE(came) << log();
  stop(head);
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(last.wait().exit_code, 0);
  const auto all = nodes();
  EXPECT_EQ(all.at("member.2").state, "dead");
  EXPECT_EQ(all.at("member.2.2").state, "ended");
  EXPECT_EQ(all.at("member.2.3").state, "dead");
  EXPECT_EQ(all.at("member.2.4").state, "ended");
  EXPECT_EQ(parse_json(read_text(path("a/summary.json")))["failures_survived"].integer(), 5);
  expect_goes_on();
}

TEST_F(ClusterPlaces, ProcessThatWakesWhenItsPlaceIsAnotherOnesEndsAndDisturbsNobody) {
  Process head(command(head_words(
      "a", address_, 1,
      words_ + Words{"--set", "cluster.joiners=1", "--set", "cluster.failure.heartbeat=50ms",
                     "--set", "cluster.failure.dead_after=500ms"})));
  Process first(command({"join", address_, "--node", "member.0"}));
  wait_until_training(head);
  Process sleeper(command({"join", address_}));
  ASSERT_TRUE(wait_until_told(head, joined("member.1"))) << log();
  sleeper.send(SIGSTOP);
  ASSERT_TRUE(wait_until_said(head, "going on without member.1:")) << log();
  Process next(command({"join", address_}));
  ASSERT_TRUE(wait_until_told(head, joined("member.1.2"))) << log();
  sleeper.send(SIGCONT);
  const ProcessEnd woken = sleeper.wait();
  EXPECT_EQ(woken.exit_code, 5) << woken.err;
  EXPECT_THAT(woken.err, HasSubstr("the run has gone on without member.1"));
  // The steps go on with the one that has its place.
  wait_until_training(head, steps() + 40);
  EXPECT_THAT(log(), Not(HasSubstr("going on without member.1.2")));
  EXPECT_EQ(nodes().at("member.1").state, "dead");
  EXPECT_EQ(nodes().at("member.1.2").state, "running");
  stop(head);
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(next.wait().exit_code, 0);
  expect_goes_on();
}

class PoolPlaces : public PoolRun {};

// A pool of four nodes at most, of which one after another is taken away.
TEST_F(PoolPlaces, MoreNodesAreReplacedThanThereArePlaces) {
  constexpr std::size_t kNodes = 6;
  const Words few{"--set", "cluster.joiners=0", "--set",
                  "cluster.failure={restart: 0, dead_after: 3s}"};
  Process all(command(endless(cloud_pool(1) + few)));
  for (std::size_t node = 0; node < kNodes; ++node) {
    ASSERT_TRUE(all.wait_until([&] { return count(R"("joined":["member.)") > node; })) << log();
    if (node + 1 == kNodes) break;
    ::kill(process_with(fmt::format("--launched own.{}@", node)), SIGKILL);
  }
  EXPECT_GT(count(R"(.2"])"), 0U) << "a second process in a place: " << log();
  end(all);
}

}  // namespace
}  // namespace troupe

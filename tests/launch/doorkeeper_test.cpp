#include "launch/meeting/doorkeeper.h"

#include <gmock/gmock.h>

#include <optional>

#include "runtime/transport/ask.h"
#include "tests/runtime/transport/wire_stage.h"

namespace troupe::launch {
namespace {

using runtime::StageEnd;

class DoorkeeperTest : public testing::Test {
 protected:
  static runtime::ZmqWireOptions listening() {
    runtime::ZmqWireOptions options;
    options.clock = &runtime::stage_clock();
    options.listen = runtime::fresh_ipc_address();
    return options;
  }

  // When there is no doorkeeper any more, the node answers so. It runs while the other side waits.
  void wait_for_the_node(runtime::AskOptions& options, const runtime::Packet& answer) {
    options.address = head_.wire->address();
    options.pause = std::chrono::milliseconds(1);
    options.cancelled = [this, answer] {
      if (doorkeeper_) return false;
      head_.wire->poll(head_.diary, runtime::stage_clock().now() + std::chrono::milliseconds(1));
      for (const auto& asked : std::exchange(head_.diary.packets, {})) {
        head_.wire->send(asked.connection, runtime::Lane::kControl, answer);
      }
      return false;
    };
  }

  StageEnd head_{listening()};
  StageEnd applicant_{listening()};
  std::optional<Doorkeeper> doorkeeper_{std::in_place, *head_.wire, runtime::stage_clock(),
                                        "the head is opening its data", runtime::Duration::zero()};
};

TEST_F(DoorkeeperTest, WhoAsksBeforeTheNodeRunsWaitsAndIsThenAnsweredByTheNode) {
  std::string why;
  runtime::EnrolOptions options;
  wait_for_the_node(options, pack(runtime::Invitation{"member.3", {}}));
  options.waits = [&](const std::string& told) {
    why = told;
    doorkeeper_.reset();
  };
  const auto answer = enrol(*applicant_.wire, options, runtime::stage_clock());
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->node, "member.3");
  EXPECT_EQ(why, "the head is opening its data");
}

TEST_F(DoorkeeperTest, WhoAsksForMoreNodesBeforeTheNodeRunsIsAnsweredByTheNode) {
  runtime::AskOptions options;
  wait_for_the_node(options, pack(runtime::Granted{"pool own: 2 nodes are wanted"}));
  options.cancelled = [this, node = options.cancelled, looks = 0]() mutable {
    if (++looks == 3) doorkeeper_.reset();
    return node();
  };
  const auto answer =
      request(*applicant_.wire, options,
              {.kind = runtime::HeadRequest::Kind::kBurst, .name = "own", .change = "2"},
              runtime::stage_clock());
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(*answer, "pool own: 2 nodes are wanted");
}

TEST_F(DoorkeeperTest, WhoAsksForMoreNodesOfAHeadThatNeverBeginsIsToldWhy) {
  runtime::AskOptions options;
  options.address = head_.wire->address();
  options.pause = std::chrono::milliseconds(1);
  options.within = std::chrono::milliseconds(300);
  const auto answer = request(*applicant_.wire, options,
                              {runtime::HeadRequest::Kind::kBurst, "own"}, runtime::stage_clock());
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, testing::HasSubstr("the head is opening its data, still"));
}

TEST_F(DoorkeeperTest, WhoAsksForAnythingElseIsRefused) {
  runtime::AskOptions options;
  options.address = head_.wire->address();
  options.question = pack(runtime::Granted{"to myself"});
  const auto answer = ask(*applicant_.wire, options, runtime::stage_clock());
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, testing::HasSubstr("refused: the head is opening its data"));
}

}  // namespace
}  // namespace troupe::launch

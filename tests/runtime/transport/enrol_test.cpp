#include "runtime/transport/ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

// A process that enrols on a wire that listens for later; a head that is asked, and somebody who
// dials the process too early. Both act while enrol() waits.
class Enrol : public testing::Test {
 protected:
  // `act`: until it returns true, again and again while enrol() waits; then the head answers.
  Result<Invitation> enrol_while(const std::function<bool()>& act) {
    bool answered = false;
    EnrolOptions options;
    options.address = head_.wire->address();
    options.cancelled = [&] {
      for (StageEnd* end : {&head_, &unknown_}) {
        end->wire->poll(end->diary, stage_clock().now() + std::chrono::milliseconds(1));
      }
      if (!answered && !head_.diary.packets.empty() && act()) {
        answered = true;
        head_.wire->send(head_.diary.packets[0].connection, Lane::kControl,
                         pack(Invitation{"member.3", {}}));
      }
      return false;
    };
    return enrol(*applicant_.wire, options, stage_clock());
  }

  StageEnd head_{plain(fresh_ipc_address())};
  StageEnd applicant_{plain(fresh_ipc_address())};
  StageEnd unknown_{plain()};
};

TEST_F(Enrol, WhoDialsAProcessThatIsNoNodeYetIsCutOffAndNotBelieved) {
  const ConnectionId call = unknown_.dial(applicant_.wire->address());
  bool said = false;
  const auto answer = enrol_while([&] {
    if (!said && unknown_.diary.infos.contains(call)) {
      unknown_.wire->send(call, Lane::kControl, pack(Invitation{"member.9", {}}));
      said = true;
    }
    return unknown_.diary.ends.contains(call);
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->node, "member.3");
  EXPECT_EQ(unknown_.diary.ends[call], "the other end closed the connection");
  // It was told nothing that was meant for the head.
  EXPECT_TRUE(unknown_.diary.packets.empty());
}

TEST_F(Enrol, TheWireIsGoodForOthersAfterwards) {
  ASSERT_TRUE(enrol_while([] { return true; }).ok());
  const ConnectionId call = unknown_.dial(applicant_.wire->address());
  ASSERT_TRUE(play({&applicant_, &unknown_}, [&] {
    return unknown_.diary.infos.contains(call) && !applicant_.diary.open.empty();
  }));
  EXPECT_FALSE(applicant_.diary.infos.begin()->second.dialed);
}

}  // namespace
}  // namespace troupe::runtime

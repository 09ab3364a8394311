#include "launch/meeting/node_uplink.h"

#include <gmock/gmock.h>

namespace troupe::launch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

TEST(NodeUplink, ANodeThatDoesNotAnswerIsGivenUpBeforeARunThatDoesNotMove) {
  const auto dial_within = [](runtime::Duration stuck_after, runtime::Duration dead_after) {
    config::FailureSection failure;
    failure.stuck_after = stuck_after;
    failure.dead_after = dead_after;
    return gate_options("member.0", failure, {}).dial_within;
  };
  EXPECT_EQ(dial_within(60s, 2s), 30s);
  EXPECT_EQ(dial_within(20s, 2s), 10s);
  EXPECT_EQ(dial_within(10min, 2s), 60s);
  EXPECT_EQ(dial_within(60s, 20s), 40s);
}

TEST(NodeUplink, AKeyIsOfUseOnlyWithTheKeyOfTheHead) {
  const std::string head = "10.0.0.5:8500";
  const std::string key = "#" + std::string(40, 'k');
  NodeCredentials none, folder, token;
  folder.key_folder = "keys";
  token.token = {.text = "secret", .from = "--token-file secret.txt"};
  for (const NodeCredentials& credentials : {folder, token}) {
    EXPECT_TRUE(check_credentials(head + key, credentials).ok());
    const auto refused = check_credentials(head, credentials);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, runtime::ErrorKind::kUsage);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("tcp://10.0.0.5:8500#KEY"),
                      HasSubstr(credentials.token ? "leave out --token-file secret.txt"
                                                  : "leave out --key")));
  }
  // The wire itself says what is missing then.
  EXPECT_TRUE(check_credentials(head, none).ok());
  EXPECT_TRUE(check_credentials(head + key, none).ok());
}

// Members that are many hear their head seldom, so they take longer to miss it.
TEST(NodeUplink, AHeadWaitsForItsMembersForAsLongAsTheyMayTakeToMissTheOneBefore) {
  config::FailureSection failure;
  failure.heartbeat = 500ms;
  failure.dead_after = 2s;
  EXPECT_EQ(return_within(failure, 1, 0.0), 5s);
  EXPECT_EQ(return_within(failure, 32, 0.0), 5s);
  EXPECT_EQ(return_within(failure, 1024, 0.0), 20'500ms);
  EXPECT_EQ(return_within(failure, 1, 4.0), 13s);
}

}  // namespace
}  // namespace troupe::launch

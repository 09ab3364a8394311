#include "pipeline/steps/quarrels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <vector>

namespace troupe::pipeline {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

struct Complaint {
  std::uint32_t from, about;
  int at;  // in s
};

// Which member has to go at which second, with a grace of 2 s, or of 6 s for one that is accused
// alone. One that goes is lost then.
std::vector<std::pair<int, std::uint32_t>> leavers(const std::vector<Complaint>& complaints,
                                                   const std::set<std::uint32_t>& newcomers = {},
                                                   const std::pair<int, std::uint32_t>& loss = {
                                                       99, 0}) {
  Quarrels quarrels(seconds(2), seconds(6));
  std::set<std::uint32_t> lost;
  std::vector<std::pair<int, std::uint32_t>> leavers;
  for (int now = 0; now < 20; ++now) {
    for (const Complaint& each : complaints) {
      if (each.at == now) quarrels.add({each.from, each.about, {}, seconds(now)});
    }
    if (loss.first == now) lost.insert(loss.second);
    const auto verdict = quarrels.settle(
        [&](std::uint32_t member) { return lost.contains(member); },
        [&](std::uint32_t member) { return newcomers.contains(member); }, seconds(now));
    if (!verdict) continue;
    leavers.emplace_back(now, verdict->leaves);
    lost.insert(verdict->leaves);
  }
  return leavers;
}

TEST(Quarrels, TheLaterOfTwoGoesWhenTheOneThatIsAccusedHadTimeToBeLost) {
  EXPECT_THAT(leavers({{0, 2, 1}}), ElementsAre(std::pair(7, 2U)));
  EXPECT_THAT(leavers({{2, 0, 1}}), ElementsAre(std::pair(7, 2U)));
}

TEST(Quarrels, OfTwoThatAccuseEachOtherBothLiveAndOneGoesSooner) {
  EXPECT_THAT(leavers({{0, 2, 1}, {2, 0, 2}}), ElementsAre(std::pair(3, 2U)));
}

TEST(Quarrels, NobodyGoesWhenOneOfTheTwoIsLostMeanwhile) {
  EXPECT_THAT(leavers({{0, 2, 1}}, {}, {5, 2}), IsEmpty());
  EXPECT_THAT(leavers({{0, 2, 1}}, {}, {5, 0}), IsEmpty());
}

TEST(Quarrels, OneThatMoreHaveLostGoesAlthoughOthersAreLaterAndThatIsEnough) {
  EXPECT_THAT(leavers({{1, 2, 1}, {1, 0, 1}}), ElementsAre(std::pair(7, 1U)));
}

// Two that cannot reach the only one that makes steps are two against one.
TEST(Quarrels, NewcomersGoInAQuarrelWithAMember) {
  EXPECT_THAT(leavers({{2, 0, 1}, {3, 0, 1}}, {2, 3}),
              ElementsAre(std::pair(3, 2U), std::pair(4, 3U)));
}

TEST(Quarrels, OnlyMembersComplaintsCountBetweenMembers) {
  EXPECT_THAT(leavers({{1, 2, 1}, {3, 1, 1}, {3, 1, 2}}, {3}),
              ElementsAre(std::pair(3, 3U), std::pair(7, 2U)));
}

}  // namespace
}  // namespace troupe::pipeline

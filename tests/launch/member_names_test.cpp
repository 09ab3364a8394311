#include "launch/meeting/member_names.h"
#include "tests/support/fails_with.h"

#include <gmock/gmock.h>

namespace troupe::launch {
namespace {

using runtime::TimePoint;
using testing::HasSubstr;

constexpr TimePoint kStart{std::chrono::hours(1)};
constexpr TimePoint kLater = kStart + MemberNames::kPromise;
const std::vector<std::string> kAll{"member.0", "member.1", "member.2"};

// "" when there is none to give.
std::string given(MemberNames& names, const std::string& wanted, const std::string& host,
                  TimePoint now = kStart, const std::vector<std::string>& awaited = kAll) {
  return names.choose(wanted, host, awaited, now).value_or("");
}

class MemberNamesTest : public testing::Test {
 protected:
  std::string any(const std::string& host, TimePoint now = kStart) {
    return given(names_, "", host, now);
  }
  std::string by_name(const std::string& wanted, const std::string& host, TimePoint now = kStart) {
    return given(names_, wanted, host, now);
  }

  MemberNames names_;
};

TEST_F(MemberNamesTest, AreGivenInOrderAndOnce) {
  for (const std::string& name : kAll) EXPECT_EQ(any("a"), name);
  EXPECT_EQ(any("b"), "");
  const auto later = names_.why_none("", kAll, kAll, false);
  ASSERT_TRUE(later.ok()) << "they are promised, and may not come";
  EXPECT_THAT(later->why, HasSubstr("every member slot of the run is promised"));
  ASSERT_THAT(names_.why_none("", {}, {}, false),
              FailsWith(runtime::ErrorKind::kUsage, "every member slot of the run is taken"));
}

TEST_F(MemberNamesTest, OneThatWasPromisedIsGivenAgainWhenNobodyCame) {
  EXPECT_EQ(by_name("member.1", "a"), "member.1");
  EXPECT_EQ(by_name("member.1", "b", kLater - runtime::Duration(1)), "");
  const auto later = names_.why_none("member.1", kAll, kAll, false);
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->why, "member.1 is promised to another process");
  EXPECT_EQ(by_name("member.1", "b", kLater), "member.1");
}

TEST_F(MemberNamesTest, OneThatCannotBeGivenIsAnsweredWithThoseThatCan) {
  MemberNames names({"member.0"});
  const auto taken = names.why_none("member.7", kAll, kAll, false);
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message,
              HasSubstr("leave out --node, or name one that is awaited: member.1, member.2"));
  const auto none = names.why_none("member.7", {}, {}, false);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("nor is any other"));
}

// A process that failed at its data is tried again as soon as that is mended.
TEST_F(MemberNamesTest, OneThatWasPromisedIsGivenToTheSameHostAtOnce) {
  EXPECT_EQ(by_name("member.1", "a"), "member.1");
  EXPECT_EQ(by_name("member.1", "a"), "member.1");
  EXPECT_EQ(by_name("member.1", "b"), "");
}

// A host may start several, which ask one after the other.
TEST_F(MemberNamesTest, ThoseNeverPromisedGoFirstThenTheOldestPromise) {
  EXPECT_EQ(by_name("member.1", "a", kStart - std::chrono::seconds(1)), "member.1");
  EXPECT_EQ(any("a"), "member.0");
  EXPECT_EQ(any("a"), "member.2");
  EXPECT_EQ(any("a"), "member.1");
  EXPECT_EQ(any("b"), "");
}

// Else whoever comes first could take the place of a process that knows of no other.
TEST_F(MemberNamesTest, ReservedOnesAreGivenByNameOnlyAndOnce) {
  MemberNames names({"member.0", "member.1"});
  EXPECT_EQ(given(names, "", "a"), "member.2");
  EXPECT_EQ(given(names, "", "b"), "");
  EXPECT_EQ(given(names, "member.1", "a"), "member.1");
  EXPECT_EQ(given(names, "member.0", "a"), "member.0");
  EXPECT_EQ(given(names, "member.0", "a", kLater), "");
  const std::vector<std::string> both{"member.0", "member.2"}, one{"member.0"};
  EXPECT_TRUE(names.why_none("", both, both, false).ok());
  EXPECT_FALSE(names.why_none("", one, one, false).ok()) << "it is for somebody else";
}

TEST_F(MemberNamesTest, OneThatJoinsLaterIsToldWhomTheRunBeginsWith) {
  for (const std::string wanted : {"", "member.2"}) {
    MemberNames names({"member.0"});
    const auto later = names.why_none(wanted, {"member.0"}, {"member.0", "member.2"}, false);
    ASSERT_TRUE(later.ok());
    EXPECT_EQ(later->why, "the run begins with member.0, and others join it after that");
  }
}

TEST_F(MemberNamesTest, ThoseThatHaveComeAreNotGiven) {
  EXPECT_EQ(given(names_, "", "a", kStart, {"member.2"}), "member.2");
  EXPECT_EQ(given(names_, "member.0", "a", kStart, {"member.2"}), "");
}

TEST(MemberNames, WherePlacesAreGivenAgainWhoFindsNoneWaitsForOne) {
  const MemberNames names;
  const auto later = names.why_none("", {}, {}, true);
  ASSERT_TRUE(later.ok());
  EXPECT_THAT(later->why, testing::HasSubstr("until one of those that joined has left"));
  EXPECT_FALSE(names.why_none("member.7", {}, {}, true).ok()) << "that one has come";
}

}  // namespace
}  // namespace troupe::launch

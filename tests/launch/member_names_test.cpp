#include "launch/member_names.h"

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
  const auto name = names.choose(wanted, host, awaited, now);
  return name.ok() ? *name : "";
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
  const auto fourth = names_.choose("", "b", kAll, kStart);
  ASSERT_FALSE(fourth.ok());
  EXPECT_EQ(fourth.error().kind, runtime::ErrorKind::kUsage);
  EXPECT_THAT(fourth.error().message, HasSubstr("all members of the run are there"));
}

TEST_F(MemberNamesTest, OneThatWasPromisedIsGivenAgainWhenNobodyCame) {
  EXPECT_EQ(by_name("member.1", "a"), "member.1");
  const auto early = names_.choose("member.1", "b", kAll, kLater - runtime::Duration(1));
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.error().message, HasSubstr("member.1"));
  EXPECT_EQ(by_name("member.1", "b", kLater), "member.1");
}

TEST_F(MemberNamesTest, OneThatCannotBeGivenIsAnsweredWithThoseThatCan) {
  MemberNames names({"member.0"});
  const auto taken = names.choose("member.7", "a", kAll, kStart);
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message,
              HasSubstr("leave out --node, or name one that is awaited: member.1, member.2"));
  const auto none = names.choose("member.7", "a", {}, kStart);
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
}

TEST_F(MemberNamesTest, ThoseThatHaveComeAreNotGiven) {
  EXPECT_EQ(given(names_, "", "a", kStart, {"member.2"}), "member.2");
  EXPECT_EQ(given(names_, "member.0", "a", kStart, {"member.2"}), "");
}

}  // namespace
}  // namespace troupe::launch

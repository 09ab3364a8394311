#include "launch/folder/membership_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/launch/launch_support.h"
#include "tests/support/fails_with.h"
#include "tests/support/process_limits.h"

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const telemetry::ViewFacts kFirst{.id = "1.1", .members = {"member.0", "member.1"}};
const telemetry::ViewFacts kSecond{
    .id = "1.2", .first_step = 9, .members = {"member.1"}, .causes = {"member.0 was \"killed\""}};

const runtime::RelayToken kToken = runtime::draw_relay_token();

void write_some(MembershipFile& file) {
  ASSERT_TRUE(file.add_head(1, 0xfedcba9876543210U).ok());
  ASSERT_TRUE(file.add_slot("member.0").ok());
  ASSERT_TRUE(file.add_slot("member.1", runtime::draw_relay_token()).ok());
  ASSERT_TRUE(file.add_slot("member.1", kToken).ok());
  ASSERT_TRUE(file.add_neighbours("member.1", "member.0", 77).ok());
  ASSERT_TRUE(file.add_view(kFirst, true).ok());
  ASSERT_TRUE(file.add_view(kSecond, false).ok());
}

void expect_some(const HeadHistory& history) {
  EXPECT_EQ(history.term, 1U);
  EXPECT_THAT(history.incarnations, ElementsAre(0xfedcba9876543210U));
  EXPECT_THAT(history.slots, ElementsAre("member.0", "member.1"));
  EXPECT_EQ(history.processes(), (std::map<std::uint32_t, std::uint32_t>{{0, 1}, {1, 1}}));
  EXPECT_THAT(history.relay_tokens, ElementsAre(Pair("member.1", kToken)));
  EXPECT_THAT(history.neighbours, ElementsAre(Pair(Pair("member.0", "member.1"), 77U)));
  ASSERT_EQ(history.views.size(), 1U);
  EXPECT_EQ(history.views[0].id, "1.2");
  EXPECT_EQ(history.views[0].first_step, 9U);
  EXPECT_EQ(history.views[0].causes, kSecond.causes);
  EXPECT_EQ(history.failures, 1U);
  EXPECT_THAT(history.members, ElementsAre("member.1"));
}

class MembershipLines : public testing::Test {
 protected:
  MembershipFile opened(bool goes_on) const {
    auto file = MembershipFile::open(path_, goes_on);
    CHECK(file.ok(), file.ok() ? "" : file.error().message);
    return std::move(file).value();
  }
  void write_whole() const {
    MembershipFile file = opened(false);
    write_some(file);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "membership.jsonl";
};

TEST_F(MembershipLines, WhatOneHeadLeavesTheNextOneReads) {
  {
    MembershipFile file = opened(false);
    EXPECT_EQ(file.history().term, 0U);
    write_some(file);
    EXPECT_EQ(file.history().term, 0U) << "as it was when the file was opened";
  }
  MembershipFile second = opened(true);
  expect_some(second.history());
  ASSERT_TRUE(second.add_head(2, 5).ok());
  const MembershipFile third = opened(true);
  EXPECT_EQ(third.history().term, 2U);
  EXPECT_THAT(third.history().incarnations, ElementsAre(0xfedcba9876543210U, 5U));
}

TEST_F(MembershipLines, OfAnotherRunNothingIsKept) {
  write_whole();
  EXPECT_EQ(opened(false).history().term, 0U);
  EXPECT_THAT(opened(true).history().slots, IsEmpty());
}

TEST_F(MembershipLines, NumbersWithoutLeadingZerosAreReadToo) {
  std::ofstream(path_)
      << R"({"kind":"head","term":3,"incarnation":"5"})"
      << "\n"
      << R"({"kind":"neighbours","one":"member.0","other":"member.1","number":"4d"})"
      << "\n";
  const MembershipFile file = opened(true);
  EXPECT_EQ(file.history().term, 3U);
  EXPECT_THAT(file.history().incarnations, ElementsAre(5U));
  EXPECT_THAT(file.history().neighbours, ElementsAre(Pair(Pair("member.0", "member.1"), 0x4dU)));
}

// The head may be killed while it writes, and anybody may have put anything in the folder.
TEST_F(MembershipLines, LinesThatAreNotWholeOrNotItsOwnAreLeftOut) {
  write_whole();
  std::ofstream(path_, std::ios::app)
      << "{\"kind\":\"head\",\"term\":7}\n{\"kind\":\"neighbours\",\"one\":\"a\"}\n"
      << "nonsense: [\n{\"kind\":\"view\"}\n[1,2]\n\n{\"kind\":\"slot\",\"node\":\"member.9\"";
  {
    MembershipFile file = opened(true);
    expect_some(file.history());
    ASSERT_TRUE(file.add_slot("member.2").ok());
  }
  EXPECT_THAT(opened(true).history().slots, ElementsAre("member.0", "member.1", "member.2"));
}

// The operating system's own refusal stands for a disk that is full for a while.
TEST_F(MembershipLines, ALineThatDoesNotFitIsAnErrorAndTheNextOneIsWhole) {
  MembershipFile file = opened(false);
  write_some(file);
  const auto torn = [&] {
    const FileSizeLimit limit(std::filesystem::file_size(path_) + 5);
    return file.add_slot("member.2");
  }();
  ASSERT_FALSE(torn.ok());
  EXPECT_EQ(torn.error().kind, runtime::ErrorKind::kData);
  // Nobody has opened it anew meanwhile, who would have mended it.
  ASSERT_TRUE(file.add_slot("member.3").ok());
  EXPECT_THAT(opened(true).history().slots, ElementsAre("member.0", "member.1", "member.3"));
}

TEST_F(MembershipLines, NobodyElseMayReadIt) {
  std::ofstream(path_) << "";
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  opened(true);
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
}

TEST(MembershipFile, WhereItCannotBeWrittenThatIsAnError) {
  ASSERT_THAT(MembershipFile::open("/nowhere/membership.jsonl", false),
              FailsWith(runtime::ErrorKind::kData, "/nowhere/membership.jsonl"));
}

// Ten comes behind nine, also where names are sorted as text.
TEST(HeadHistory, KnowsTheLastProcessOfEachMember) {
  HeadHistory history;
  history.slots = {"member.0", "member.7", "member.7.10", "member.7.2", "member.7.9", "head"};
  EXPECT_EQ(history.processes(), (std::map<std::uint32_t, std::uint32_t>{{0, 1}, {7, 10}}));
}

}  // namespace
}  // namespace troupe::launch

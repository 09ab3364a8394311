// What members and the coordinator tell each other of a change of the View, on its way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/actors/field_archives.h"
#include "tests/actors/wire_parts.h"

namespace troupe::actors {
namespace {

// The problem of a View of members 4, 2 and 6, from step 10 on, that is changed so.
std::string problem_of_view(const std::function<void(pipeline::View&)>& change) {
  pipeline::View view;
  view.id = {1, 3};
  view.first_step = 10;
  view.ring = {4, 2, 6};
  view.reached = {10, 9, 10};
  view.owners = {2, 4, 4, 6};
  change(view);
  return problem_of(parts_of(ViewMessage{std::make_shared<const pipeline::View>(view)}));
}

TEST(WireMessages, ViewThatNoCoordinatorTellsIsRefused) {
  using pipeline::View;
  using testing::HasSubstr;
  const std::pair<std::function<void(View&)>, const char*> refused[] = {
      {[](View& view) { view.ring = {}, view.reached = {}; }, "of nobody"},
      {[](View& view) { view.owners = {}; }, "of nobody"},
      {[](View& view) { view.reached.pop_back(); }, "what all reached"},
      {[](View& view) { view.reached.push_back(10); }, "what all reached"},
      {[](View& view) { view.ring[2] = 4; }, "a member twice"},
      {[](View& view) {
         view.reached = {9, 9, 9};
       },
       "that nobody has reached"},
      {[](View& view) { view.first_step = 11; }, "far behind it"},
      {[](View& view) { view.reached[1] = 8; }, "far behind it"},
      {[](View& view) { view.reached[1] = 11; }, "behind what its members"},
      {[](View& view) { view.reached[1] = UINT64_MAX; }, "behind what its members"},
  };
  EXPECT_EQ(problem_of_view([](View&) {}), "");
  for (const auto& [change, why] : refused) EXPECT_THAT(problem_of_view(change), HasSubstr(why));
  // The step before the first one.
  EXPECT_THAT(problem_of_view([](View& view) {
                view.first_step = 0;
                view.reached = {0, UINT64_MAX, 0};
              }),
              HasSubstr("behind what its members"));
  // Who is new may lack more, and alone has nothing to begin from.
  EXPECT_EQ(problem_of_view([](View& view) {
              view.reached[1] = 3;
              view.newcomers = {view.ring[1]};
            }),
            "");
  EXPECT_THAT(problem_of_view([](View& view) { view.newcomers = view.ring; }),
              HasSubstr("that nobody has reached"));
}

TEST(WireMessages, ViewWithRowsOfNoRingIsRefused) {
  const auto with_rows = [](std::vector<std::uint32_t> rows) {
    return problem_of_view([rows](pipeline::View& view) {
      view.ring = {4, 5, 6};
      view.reached.assign(3, view.first_step);
      view.newcomers.clear();
      view.rows = rows;
    });
  };
  EXPECT_EQ(with_rows({}), "");
  EXPECT_EQ(with_rows({1, 2}), "");
  for (const auto& rows : std::vector<std::vector<std::uint32_t>>{{0}, {1, 1}, {2, 1}, {0, 3}}) {
    EXPECT_THAT(with_rows(rows), testing::HasSubstr("a View with rows of no ring"));
  }
}

TEST(WireMessages, ViewThatNoMemberCanReadIsNotPacked) {
  EXPECT_EQ(problem_of_view(
                [](pipeline::View& view) { view.owners.assign(pipeline::kMostMicroBatches, 2); }),
            "");
  EXPECT_DEATH(problem_of_view([](pipeline::View& view) {
                 view.owners.assign(pipeline::kMostMicroBatches + 1, 2);
               }),
               "owners");
  EXPECT_DEATH(problem_of_view([](pipeline::View& view) {
                 view.ring.assign(pipeline::kMostViewMembers + 1, 2);
               }),
               "ring");
}

TEST(WireMessages, ViewIsWrittenOnceForAllThatAreToldOfIt) {
  const auto frame_of = [](const ViewPointer& view) {
    const Parts parts = parts_of(ViewMessage{view});
    EXPECT_EQ(parts.attachments.size(), 1U);
    return parts.attachments.at(0);
  };
  pipeline::View view;
  view.ring = {1};
  view.reached = {0};
  view.owners = {1};
  const auto one = std::make_shared<const pipeline::View>(view);
  const auto other = std::make_shared<const pipeline::View>(view);
  const runtime::Buffer first = frame_of(one), second = frame_of(one), third = frame_of(other);
  EXPECT_EQ(first.data(), second.data());
  EXPECT_NE(first.data(), third.data());
}

// Its frame is larger than a header may be.
TEST(WireMessages, ViewOfAsMuchWorkAsARunMayHaveTravels) {
  EXPECT_EQ(problem_of_view([](pipeline::View& view) {
              view.ring = {1'000'000};
              view.reached = {view.first_step};
              view.newcomers.clear();
              view.owners.assign(pipeline::kMostMicroBatches, 1'000'000);
              for (std::uint64_t from = 1; from <= pipeline::kMostAssignments; ++from) {
                view.later.push_back({1000 + from, view.owners});
              }
            }),
            "");
}

TEST(WireMessages, ViewOfWhichSomeIsMissingIsRefused) {
  pipeline::View view;
  view.ring = {1};
  view.reached = {0};
  view.owners = {1};
  const Parts parts = parts_of(ViewMessage{std::make_shared<const pipeline::View>(view)});
  const std::size_t size = parts.attachments.at(0).size();
  for (std::size_t length = 0; length < size; ++length) {
    Parts cut = parts;
    cut.attachments = {runtime::Buffer::copy_of(parts.attachments[0].bytes().first(length))};
    EXPECT_NE(problem_of(cut), "") << length;
  }
  Parts without = parts, with_more = parts;
  without.attachments.clear();
  EXPECT_NE(problem_of(without), "");
  with_more.attachments.push_back(parts.attachments[0]);
  EXPECT_NE(problem_of(with_more), "");
}

}  // namespace
}  // namespace troupe::actors

#include "pipeline/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;

// 3 members of 2 replicas and 8 micro-batches.
MembershipOptions three() {
  MembershipOptions options;
  options.term = 4;
  options.ring = {0, 2, 1};
  options.replicas_per_member = 2;
  options.weights = {1, 1, 1, 1, 1, 1};
  options.micro_batches = 8;
  return options;
}

using Answer = runtime::Result<Membership::Answer>;

View expect_view(const Answer& answer) {
  EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message);
  if (!answer.ok()) return {};
  EXPECT_TRUE(answer->view);
  EXPECT_THAT(answer->left_behind, ElementsAre());
  return answer->view.value_or(View{});
}

void expect_none(const Answer& answer) {
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_FALSE(answer->view);
  EXPECT_THAT(answer->left_behind, ElementsAre());
}

void expect_refused(const Answer& answer, const std::string& what) {
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, ErrorKind::kLostPeers);
  EXPECT_THAT(answer.error().message, HasSubstr(what));
}

TEST(Membership, BeginsWithAllInTheOrderOfTheirRing) {
  Membership membership(three());
  const View& view = membership.begin(7);
  EXPECT_EQ(view.id, (ViewId{4, 1}));
  EXPECT_EQ(view.first_step, 7U);
  EXPECT_THAT(view.ring, ElementsAre(0, 2, 1));
  EXPECT_THAT(view.reached, ElementsAre(7, 7, 7));
  EXPECT_THAT(view.owners, ElementsAre(0, 0, 1, 1, 2, 3, 4, 5));
  EXPECT_FALSE(membership.change());
  EXPECT_THAT(membership.unheard(), ElementsAre());
}

TEST(Membership, GoesOnFromTheFurthestStepWhenAllThatAreLeftHaveHalted) {
  Membership membership(three());
  membership.begin(7);
  EXPECT_TRUE(membership.lose(0));
  EXPECT_EQ(membership.change(), (ViewId{4, 2}));
  EXPECT_THAT(membership.unheard(), ElementsAre(1, 2));
  expect_none(membership.halted(2, {4, 2}, 11));
  EXPECT_THAT(membership.unheard(), ElementsAre(1));
  const View view = expect_view(membership.halted(1, {4, 2}, 10));
  EXPECT_EQ(view.id, (ViewId{4, 2}));
  EXPECT_EQ(view.first_step, 11U);
  EXPECT_THAT(view.ring, ElementsAre(2, 1));
  EXPECT_THAT(view.reached, ElementsAre(11, 10));
  EXPECT_THAT(view.owners, ElementsAre(2, 3, 4, 5, 2, 3, 4, 5));
  EXPECT_EQ(membership.view().id, view.id);
  EXPECT_FALSE(membership.change());
}

TEST(Membership, LossDuringAChangeBeginsItAnew) {
  Membership membership(three());
  membership.begin(7);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  EXPECT_TRUE(membership.lose(1));
  EXPECT_EQ(membership.change(), (ViewId{4, 3}));
  expect_none(membership.halted(2, {4, 2}, 9));
  EXPECT_THAT(membership.unheard(), ElementsAre(2)) << "its answer was to another change";
  const View view = expect_view(membership.halted(2, {4, 3}, 9));
  EXPECT_THAT(view.ring, ElementsAre(2));
  EXPECT_THAT(view.owners, testing::Each(testing::AnyOf(4, 5)));
}

TEST(Membership, OneIsLostOnceAndTheLastLeavesNobodyToHalt) {
  Membership membership(three());
  membership.begin(7);
  EXPECT_TRUE(membership.lose(0));
  EXPECT_FALSE(membership.lose(0));
  EXPECT_EQ(membership.change(), (ViewId{4, 2})) << "the second time was none";
  EXPECT_FALSE(membership.lose(9)) << "there never was such a member";
  EXPECT_TRUE(membership.lose(1));
  EXPECT_TRUE(membership.lose(2));
  EXPECT_FALSE(membership.change());
  EXPECT_THAT(membership.unheard(), ElementsAre());
  EXPECT_THAT(membership.present(), ElementsAre());
}

TEST(Membership, AnswersOfThoseThatAreLostOrToNoChangeAreLetGo) {
  Membership membership(three());
  membership.begin(7);
  expect_none(membership.halted(1, {4, 1}, 7));
  membership.lose(0);
  expect_none(membership.halted(0, {4, 2}, 90));
  expect_none(membership.halted(1, {4, 3}, 90));
  expect_none(membership.halted(1, {5, 2}, 90));
  EXPECT_THAT(membership.unheard(), ElementsAre(1, 2));
}

TEST(Membership, AnswersThatCannotBeRightNameTheMember) {
  Membership membership(three());
  membership.begin(7);
  membership.lose(0);
  expect_refused(membership.halted(2, {4, 2}, 6),
                 "member.2 would make step 6 next, although it has made those before 7");
  EXPECT_THAT(membership.unheard(), ElementsAre(1, 2));
}

TEST(Membership, WhoLacksMoreThanAStepIsLeftBehindAndTheOthersGoOn) {
  Membership membership(three());
  membership.begin(7);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  const Answer answer = membership.halted(1, {4, 2}, 7);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->view);
  EXPECT_THAT(answer->left_behind, ElementsAre(1));
  EXPECT_TRUE(membership.lose(1));
  EXPECT_EQ(expect_view(membership.halted(2, {4, 3}, 9)).first_step, 9U);
}

MembershipOptions three_of_five() {
  MembershipOptions options = three();
  options.weights.resize(10, 1);
  options.slots = 4;
  return options;
}

TEST(Membership, WhoJoinsComputesFromAnIterationOnThatNobodyHasBegun) {
  Membership membership(three_of_five());
  const View first = membership.begin(7);
  EXPECT_THAT(first.owners, testing::Each(testing::Lt(6U))) << "those that may join are not there";
  membership.admit(4);
  EXPECT_THAT(membership.unheard(), ElementsAre(0, 1, 2, 4));
  for (const std::uint32_t member : {0, 1, 2}) {
    expect_none(membership.halted(member, {4, 2}, 22 - member % 2));
  }
  const View view = expect_view(membership.halted(4, {4, 2}, 15));
  EXPECT_EQ(view.first_step, 22U) << "that of those who have it from themselves";
  EXPECT_THAT(view.ring, ElementsAre(0, 2, 1, 4));
  EXPECT_THAT(view.learners, ElementsAre(4));
  EXPECT_TRUE(view.gives(0));
  EXPECT_FALSE(view.lags(4)) << "it is taught";
  // Iterations 5 and 6 may be under way.
  for (const std::uint64_t iteration : {5, 6}) EXPECT_EQ(view.owners_in(iteration), first.owners);
  for (const std::uint64_t iteration : {7, 8, 1000}) {
    EXPECT_THAT(view.owners_in(iteration), testing::Contains(8));
  }
  EXPECT_THAT(membership.present(), ElementsAre(0, 1, 2, 4));
}

// Two iterations may have been begun, in one of which the newcomer is to compute.
TEST(Membership, LossBehindAJoinKeepsWhatEachIterationWasGivenTo) {
  Membership membership(three_of_five());
  membership.begin(0);
  membership.admit(3);
  for (const std::uint32_t member : {0, 1, 2, 3}) (void)membership.halted(member, {4, 2}, 1);
  const View joined = membership.view();
  ASSERT_THAT(joined.owners_in(2), testing::Contains(testing::AnyOf(6, 7)));
  membership.lose(1);
  for (const std::uint32_t member : {0, 2}) (void)membership.halted(member, {4, 3}, 5);
  const View view = expect_view(membership.halted(3, {4, 3}, 5));
  for (const std::uint64_t iteration : {1, 2, 3}) {
    const auto &before = joined.owners_in(iteration), &after = view.owners_in(iteration);
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_TRUE(view.has(after[i] / 2)) << iteration;
      if (before[i] / 2 != 1) {
        EXPECT_EQ(after[i], before[i]) << iteration;
      }
    }
  }
  // And when the iterations before are over only the newest is of interest.
  membership.lose(2);
  (void)membership.halted(0, {4, 4}, 40);
  const View last = expect_view(membership.halted(3, {4, 4}, 40));
  EXPECT_TRUE(last.later.empty());
  EXPECT_THAT(last.owners, testing::Each(testing::AnyOf(0, 1, 6, 7)));
}

TEST(Membership, WhoIsLostWhileItJoinsLeavesTheOthersAsTheyWere) {
  Membership membership(three_of_five());
  const View first = membership.begin(7);
  membership.admit(4);
  expect_none(membership.halted(0, {4, 2}, 7));
  EXPECT_TRUE(membership.lose(4));
  for (const std::uint32_t member : {0, 1}) expect_none(membership.halted(member, {4, 3}, 7));
  const View view = expect_view(membership.halted(2, {4, 3}, 7));
  EXPECT_EQ(view.ring, first.ring);
  EXPECT_EQ(view.owners, first.owners);
  EXPECT_TRUE(view.learners.empty());
}

TEST(Membership, SharesOutAnewFromAnIterationOnThatNobodyHasBegun) {
  Membership membership(three_of_five());
  const View first = membership.begin(7);
  membership.share_anew({1, 1, 1, 1, 6, 6, 1, 1, 1, 1});
  EXPECT_EQ(membership.change(), (ViewId{4, 2}));
  EXPECT_THAT(membership.unheard(), ElementsAre(0, 1, 2));
  for (const std::uint32_t member : {0, 1}) expect_none(membership.halted(member, {4, 2}, 22));
  const View view = expect_view(membership.halted(2, {4, 2}, 22));
  EXPECT_EQ(view.owners, first.owners);
  EXPECT_EQ(view.owners_in(6), first.owners) << "may be under way";
  EXPECT_THAT(view.owners_in(7), ElementsAre(0, 1, 4, 4, 4, 5, 5, 5));
  EXPECT_TRUE(view.learners.empty());
  // Once; and the weights stay for what comes later.
  membership.lose(0);
  expect_none(membership.halted(1, {4, 3}, 60));
  const View later = expect_view(membership.halted(2, {4, 3}, 60));
  EXPECT_TRUE(later.later.empty());
  EXPECT_THAT(later.owners, ElementsAre(2, 3, 4, 4, 4, 5, 5, 5));
}

TEST(Membership, LossWhileItSharesOutAnewDoesNotForgetToDoSo) {
  Membership membership(three());
  membership.begin(0);
  membership.share_anew({1, 1, 6, 6, 1, 1});
  expect_none(membership.halted(0, {4, 2}, 2));
  membership.lose(2);
  expect_none(membership.halted(0, {4, 3}, 2));
  const View view = expect_view(membership.halted(1, {4, 3}, 2));
  EXPECT_THAT(view.owners, testing::Not(view.owners_in(4)));
  EXPECT_THAT(view.owners_in(4), ElementsAre(0, 1, 2, 2, 2, 3, 3, 3));
}

TEST(Membership, WithTooFewItWaitsForOthersToJoin) {
  MembershipOptions options = three_of_five();
  options.min_members = 3;
  Membership membership(options);
  membership.begin(7);
  EXPECT_FALSE(membership.is_short());
  membership.lose(0);
  EXPECT_TRUE(membership.is_short());
  for (const std::uint32_t member : {1, 2}) expect_none(membership.halted(member, {4, 2}, 9));
  EXPECT_THAT(membership.unheard(), ElementsAre());
  membership.lose(1);
  expect_none(membership.halted(2, {4, 3}, 9));
  membership.admit(3);
  EXPECT_TRUE(membership.is_short());
  for (const std::uint32_t member : {2, 3}) expect_none(membership.halted(member, {4, 4}, 9));
  membership.admit(4);
  EXPECT_FALSE(membership.is_short());
  for (const std::uint32_t member : {2, 3}) expect_none(membership.halted(member, {4, 5}, 9));
  const View view = expect_view(membership.halted(4, {4, 5}, 9));
  EXPECT_THAT(view.ring, ElementsAre(2, 3, 4));
  EXPECT_THAT(view.learners, ElementsAre(3, 4));
  EXPECT_FALSE(membership.is_short());
}

TEST(Membership, TooFewHandOverTheLastSumsWhenNothingIsLeftToMake) {
  MembershipOptions options = three();
  options.min_members = 3;
  options.end_step = 9;
  Membership membership(options);
  membership.begin(7);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  const View view = expect_view(membership.halted(1, {4, 2}, 8));
  EXPECT_TRUE(view.gives(2));
  EXPECT_TRUE(view.lags(1));
}

// It was told of a View, but its giver was lost before it had the sums.
TEST(Membership, LaggardThatNobodyIsLeftToHelpMakesTheStepItself) {
  Membership membership(three());
  membership.begin(7);
  membership.lose(0);
  expect_none(membership.halted(2, {4, 2}, 9));
  expect_view(membership.halted(1, {4, 2}, 8));
  membership.lose(2);
  const View view = expect_view(membership.halted(1, {4, 3}, 8));
  EXPECT_EQ(view.first_step, 8U);
  EXPECT_FALSE(view.gives(1));
}

TEST(Membership, MembersThatComputeNothingDoSoWhenNobodyElseIsLeft) {
  MembershipOptions options = three();
  options.weights = {0, 0, 1, 1, 0, 0};
  Membership membership(options);
  EXPECT_THAT(membership.begin(7).owners, testing::Each(testing::AnyOf(2, 3)));
  membership.lose(0);
  expect_none(membership.halted(1, {4, 2}, 7));
  EXPECT_THAT(expect_view(membership.halted(2, {4, 2}, 7)).owners,
              testing::Each(testing::AnyOf(2, 3)));
  membership.lose(1);
  EXPECT_THAT(expect_view(membership.halted(2, {4, 3}, 7)).owners,
              ElementsAre(4, 5, 4, 5, 4, 5, 4, 5));
}

// One random history, beside which stands what its members really do.
class History {
 public:
  explicit History(std::uint64_t seed) : seed_(seed) {
    const std::uint32_t members = 1 + below(8);
    options_.ring.clear();
    for (std::uint32_t i = 0; i < members; ++i) {
      options_.ring.insert(options_.ring.begin() + below(i + 1), i);
      present_.insert(i);
    }
    options_.term = 1 + below(5);
    options_.replicas_per_member = 1 + below(3);
    options_.micro_batches = 1 + below(20);
    options_.weights.resize(std::size_t{members} * options_.replicas_per_member);
    for (std::uint64_t& weight : options_.weights) weight = below(4);
    options_.weights[below(static_cast<std::uint32_t>(options_.weights.size()))] = 1;
    membership_.emplace(options_);
    take(membership_->begin(below(1000)));
    for (const std::uint32_t member : present_) next_[member] = view_.first_step;
  }

  void play(int turns) {
    for (int i = 0; i < turns && !testing::Test::HasFailure(); ++i) {
      const std::uint32_t turn = below(10);
      if (turn == 0) {
        lose(any_member());
      } else if (turn == 1) {
        say_wrongly();
      } else if (turn == 2) {
        say_late();
      } else if (changing_) {
        answer();
      } else {
        train();
      }
      EXPECT_EQ(membership_->present(), present_);
      EXPECT_EQ(membership_->change().has_value(), changing_);
    }
  }

  int views() const { return views_; }
  int refusals() const { return refusals_; }

 private:
  std::uint32_t below(std::uint32_t bound) {
    return runtime::random_word({.seed = seed_}, drawn_++) % bound;
  }
  std::uint32_t any_member() { return below(static_cast<std::uint32_t>(options_.ring.size())); }
  std::uint32_t member_of(std::uint32_t replica) const {
    return replica / options_.replicas_per_member;
  }

  void lose(std::uint32_t member) {
    const bool was_there = present_.erase(member) == 1;
    EXPECT_EQ(membership_->lose(member), was_there);
    if (!was_there) return;
    heard_.clear();
    if (!changing_) stop_somewhere();
    changing_ = !present_.empty();
    if (!changing_) return;
    ASSERT_TRUE(membership_->change());
    change_ = *membership_->change();
    EXPECT_GT(change_, newest_) << "an id that was used before";
    newest_ = change_;
  }

  // Who lacks a step may get it. All go on when none does.
  void train() {
    bool lacking = false;
    for (auto& [member, next] : next_) {
      if (!present_.contains(member)) continue;
      if (next < view_.first_step && below(2) == 0) ++next;
      lacking |= next < view_.first_step;
    }
    if (lacking) return;
    const std::uint64_t step = furthest() + below(3);
    for (const std::uint32_t member : present_) next_[member] = step;
  }
  // Some have made the step that others are at.
  void stop_somewhere() {
    for (const std::uint32_t member : present_) {
      if (next_[member] < view_.first_step) return;
    }
    for (const std::uint32_t member : present_) next_[member] += below(2);
  }
  std::uint64_t furthest() const {
    std::uint64_t most = 0;
    for (const std::uint32_t member : present_) most = std::max(most, next_.at(member));
    return most;
  }

  void answer() {
    const std::uint32_t member = any_member();
    const auto answer = membership_->halted(member, change_, next_.at(member));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    if (present_.contains(member)) heard_.insert(member);
    const bool complete = heard_ == present_;
    ASSERT_EQ(answer->view.has_value(), complete);
    if (complete) take(*answer->view);
  }

  void say_late() {
    const ViewId before{options_.term, below(change_.number + 1)};
    if (changing_ && before == change_) return;
    expect_none(membership_->halted(any_member(), before, below(2000)));
  }

  void say_wrongly() {
    if (!changing_) return;
    const std::uint32_t member = any_member();
    if (!present_.contains(member)) return;
    const std::uint64_t behind = reached_.at(member);
    if (behind > 0) refuse(member, behind - 1 - below(static_cast<std::uint32_t>(behind)));
  }
  void refuse(std::uint32_t member, std::uint64_t next_step) {
    const auto answer = membership_->halted(member, change_, next_step);
    ASSERT_FALSE(answer.ok());
    EXPECT_THAT(answer.error().message,
                HasSubstr(fmt::format("member.{} would make step {} next", member, next_step)));
    ++refusals_;
  }

  void take(const View& view) {
    ++views_;
    if (views_ > 1) {
      EXPECT_EQ(view.id, change_);
    }
    EXPECT_GE(view.id, newest_);
    newest_ = view.id;
    std::vector<std::uint32_t> ring;
    for (const std::uint32_t member : options_.ring) {
      if (present_.contains(member)) ring.push_back(member);
    }
    EXPECT_EQ(view.ring, ring);
    ASSERT_EQ(view.reached.size(), ring.size());
    if (views_ > 1) {
      EXPECT_EQ(view.first_step, furthest());
    }
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const std::uint64_t reached = views_ > 1 ? next_.at(ring[i]) : view.first_step;
      EXPECT_EQ(view.reached[i], reached);
      reached_[ring[i]] = reached;
    }
    check_owners(view);
    view_ = view;
    changing_ = false;
    change_ = view.id;
  }

  void check_owners(const View& view) const {
    ASSERT_EQ(view.owners.size(), options_.micro_batches);
    const auto weight_left = [&](std::uint32_t replica) {
      return present_.contains(member_of(replica)) ? options_.weights[replica] : 0;
    };
    std::uint64_t weights = 0;
    for (std::uint32_t i = 0; i < options_.weights.size(); ++i) weights += weight_left(i);
    for (std::size_t i = 0; i < view.owners.size(); ++i) {
      const std::uint32_t owner = view.owners[i];
      EXPECT_TRUE(present_.contains(member_of(owner)));
      const bool kept = views_ > 1 && present_.contains(member_of(view_.owners[i])) &&
                        (weights == 0 || weight_left(view_.owners[i]) > 0);
      if (kept) {
        EXPECT_EQ(owner, view_.owners[i]) << "a survivor keeps what it has";
      }
      if (weights > 0) {
        EXPECT_GT(weight_left(owner), 0U) << "it is to compute nothing";
      }
    }
  }

  const std::uint64_t seed_;
  std::uint32_t drawn_ = 0;
  MembershipOptions options_;
  std::optional<Membership> membership_;
  std::set<std::uint32_t> present_;
  std::map<std::uint32_t, std::uint64_t> next_;     // that the member would make
  std::map<std::uint32_t, std::uint64_t> reached_;  // when the newest View was told
  View view_;
  ViewId newest_, change_;
  bool changing_ = false;
  std::set<std::uint32_t> heard_;
  int views_ = 0, refusals_ = 0;
};

TEST(Membership, RandomHistoriesKeepWhatAViewPromises) {
  int views = 0, refusals = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    History history(seed);
    history.play(200);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    views += history.views();
    refusals += history.refusals();
  }
  EXPECT_GT(views, 5000);
  EXPECT_GT(refusals, 2000);
}

// As a coordinator that takes the place of another hears it from the members.
TEST(Membership, GoesOnFromTheViewOfAnEarlierTerm) {
  Membership before(three());
  before.begin(7);
  before.lose(1);
  expect_none(before.halted(0, {4, 2}, 9));
  const View known = expect_view(before.halted(2, {4, 2}, 9));

  MembershipOptions options = three();
  options.term = 5;
  Membership after(options);
  ASSERT_TRUE(after.go_on_from(known).ok());
  EXPECT_EQ(after.change(), (ViewId{5, 1}));
  EXPECT_THAT(after.unheard(), ElementsAre(0, 2));
  expect_none(after.halted(0, {5, 1}, 12));
  const View view = expect_view(after.halted(2, {5, 1}, 11));
  EXPECT_EQ(view.id, (ViewId{5, 1}));
  EXPECT_EQ(view.first_step, 12U);
  EXPECT_THAT(view.ring, ElementsAre(0, 2));
  EXPECT_THAT(view.reached, ElementsAre(12, 11));
  EXPECT_EQ(view.owners, known.owners) << "nobody computes anything anew";
}

TEST(Membership, WhoHasNotComeBackIsLostFromThatView) {
  Membership before(three());
  const View known = before.begin(7);
  MembershipOptions options = three();
  options.term = 5;
  Membership after(options);
  ASSERT_TRUE(after.go_on_from(known).ok());
  EXPECT_TRUE(after.lose(2));
  EXPECT_EQ(after.change(), (ViewId{5, 2}));
  expect_none(after.halted(0, {5, 2}, 8));
  EXPECT_THAT(expect_view(after.halted(1, {5, 2}, 8)).ring, ElementsAre(0, 1));
}

TEST(Membership, ViewThatThisRunCannotHaveHadIsRefused) {
  Membership before(three());
  const View known = before.begin(7);
  const auto refused = [&](const std::function<void(View&)>& change) {
    View view = known;
    change(view);
    MembershipOptions options = three();
    options.term = 5;
    return !Membership(options).go_on_from(view).ok();
  };
  EXPECT_FALSE(refused([](View&) {}));
  EXPECT_TRUE(refused([](View& view) { view.id.term = 5; }));
  EXPECT_TRUE(refused([](View& view) { view.ring.back() = 1000; }));
  EXPECT_TRUE(refused([](View& view) { view.ring.back() = 1U << 31U; })) << "2^31 x 2 is 0";
  EXPECT_TRUE(refused([](View& view) { view.owners.back() = 1000; }));
  EXPECT_TRUE(refused([](View& view) { view.owners.pop_back(); }));
  EXPECT_TRUE(refused([](View& view) { view.later.push_back({3, {0}}); }));
}

}  // namespace
}  // namespace troupe::pipeline

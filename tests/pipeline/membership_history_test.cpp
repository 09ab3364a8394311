// Random histories of losses and answers, beside which stands what members really do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pipeline/steps/membership.h"
#include "runtime/base/random.h"
#include "tests/pipeline/membership_answers.h"

namespace troupe::pipeline {
namespace {

using testing::HasSubstr;

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

TEST(MembershipHistory, RandomHistoriesKeepWhatAViewPromises) {
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
}  // namespace
}  // namespace troupe::pipeline

#pragma once

// Decides which members make steps together. When one is lost, the survivors halt and report the
// step they have reached. When all have reported, a new View begins at the furthest step. A loss in
// the meantime starts the change again under a higher number.
//
// In a planned change, in which nobody is lost, they report the first step that they have not begun
// either. The View begins at the furthest of these, and all finish what is before it in the View
// that they are in. So does a member that has handed over all its work: the next View is without
// it, and it is gone when nobody waits any more for what it sent in the one before.
//
// Survivors keep their micro-batches, so that they compute nothing twice. A newcomer gets its first
// micro-batches in an iteration that no member has begun, because all micro-batches are shared out
// anew from such an iteration on. A pure state machine: no clocks, no messages. One thread.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "pipeline/steps/member_weights.h"
#include "pipeline/steps/ring_positions.h"
#include "pipeline/steps/view.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

struct MembershipOptions {
  std::uint32_t term = 1;
  std::vector<std::uint32_t> ring{0};     // the first members in the order of their ring
  RingCosts costs{};                      // of the rings of Views
  std::uint32_t replicas_per_member = 1;  // numbered over all members in order
  // Weight of each replica of these members, some above 0, and of all that may join.
  std::vector<std::uint64_t> weights{1};
  std::uint32_t micro_batches = 1;  // M
  std::uint32_t parts = 1;          // so many of them are a worker (assign_micro_batches())
  std::uint32_t steps_per_iteration = 1;
  // With fewer members no steps are made: they halt, and go on when there are enough again.
  std::uint32_t min_members = 1;
  std::uint64_t end_step = 0;  // the first that nobody makes; 0: it is not known
};

class Membership {
 public:
  explicit Membership(MembershipOptions options);

  // The View that was told last; begin() makes the first.
  const View& view() const { return view_; }
  const View& begin(std::uint64_t first_step);

  // In place of begin(), after a coordinator was lost. `view` is the newest View that any member
  // knows, of a lower term. Its members are to halt for change(). Errors (kLostPeers): no View of
  // this run.
  runtime::Result<void> go_on_from(const View& view);

  // Members of the View that are not lost, ascending.
  const std::set<std::uint32_t>& present() const { return present_; }
  // Members that are to be in the next View, ascending.
  std::set<std::uint32_t> participants() const;
  // Those, and the ones that part with them: all are to halt for change().
  std::set<std::uint32_t> halting() const;
  // The member of the View would make `next_step` next, and what it lacks before its first View is
  // on its way to it.
  bool still_learns(std::uint32_t member, std::uint64_t next_step) const;
  // Where members stand. A newcomer is put there before it learns.
  RingPositions& positions() { return positions_; }
  // Replicas of the members present, in the order in which sites take them.
  std::vector<std::uint32_t> replicas_by_site() const { return replicas_by_site(present_); }
  // The View as it is, with the member in its ring where the next one has it, as far as is known.
  View view_with(std::uint32_t newcomer) const;
  // The id under which the survivors are to halt; none: no change is under way.
  std::optional<ViewId> change() const;
  // Nobody of the View is lost in the change under way.
  bool is_planned() const { return changing_ && !interrupts_; }
  // Members that have not halted for it yet.
  std::vector<std::uint32_t> not_halted() const;
  // True while a change waits for members to join, as there are fewer than min_members.
  bool is_short() const { return changing_ && participants().size() < options_.min_members; }

  // A change of them alone takes effect when micro-batches are shared out anew.
  const MemberWeights& weights() const { return weights_; }
  MemberWeights& weights() { return weights_; }
  // New weights of all replicas, as in the options. The members present are to halt for change().
  // They share out micro-batches by these weights from the first iteration that no member has
  // begun.
  void share_anew(std::vector<std::uint64_t> weights);
  // The member of the View is about to leave: the members present are to halt for change(). From
  // the first iteration that no member has begun it gets no micro-batches, if any other member can
  // have them.
  void relieve(std::uint32_t member);

  // The member has handed over its micro-batches: it and the others are to halt for change(), whose
  // View is without it. Where the change is no planned one, it stays and may part later.
  void part(std::uint32_t member);
  // It is in the View no longer, but others may still wait for what it sent before.
  bool is_awaited(std::uint32_t parted) const { return parted_.contains(parted); }
  // The member has all sums of the steps before that View.
  void entered(std::uint32_t member, ViewId view);
  // The newcomer has learned what the others know: it and they are to halt for change(). CHECKs
  // that it is in no View.
  void admit(std::uint32_t member);
  // The member takes no further part; the others are to halt for change(). If it was in the View,
  // or others wait for what it sent before, nothing that is begun is finished, and a member that
  // was to part stays. False: it was lost before, or has parted and nobody waits for it.
  bool lose(std::uint32_t member);
  struct Answer {
    std::optional<View> view;                // the next one
    std::vector<std::uint32_t> left_behind;  // lack more than any member can give: to be lost
    // With a View: the micro-batches that change their replica within the iteration of the View's
    // first step.
    std::uint32_t taken_over = 0;
    std::optional<std::uint32_t> parted;  // is not in it, and finishes what is before it
  };
  // The member has halted and would make `next_step` next; it has begun none from `unbegun` on, and
  // in a planned change finishes those between. The outcome is empty while others are still to halt
  // or to join, and for an answer to another change. Errors (kLostPeers) name a member that cannot
  // be right, because it went back behind where it was.
  runtime::Result<Answer> halted(std::uint32_t member, ViewId change, std::uint64_t next_step,
                                 std::uint64_t unbegun);
  runtime::Result<Answer> halted(std::uint32_t member, ViewId change, std::uint64_t next_step) {
    return halted(member, change, next_step, next_step);
  }
  // Training ends before the end_step of the options, which is this one instead. The outcome is
  // that of the change that is under way, if this is all that it has waited for.
  Answer end_at(std::uint64_t step);

 private:
  void change_anew();
  Answer settle();
  std::vector<std::uint32_t> left_behind() const;
  bool still_learns(std::uint32_t member) const {
    return still_learns(member, heard_.at(member).next_step);
  }
  std::uint64_t furthest() const;  // step that a member present would make next
  std::uint64_t first_unbegun() const;
  View next_view() const;
  std::vector<std::uint32_t> replicas_by_site(const std::set<std::uint32_t>& members) const;
  std::vector<std::uint32_t> share_out(const std::set<std::uint32_t>& members) const;
  std::uint32_t taken_over(const View& next) const;

  MembershipOptions options_;
  MemberWeights weights_;
  RingPositions positions_;
  View view_;
  std::set<std::uint32_t> present_, joining_;
  std::optional<std::uint32_t> parting_;
  struct Parted {
    ViewId view;                      // the first without it
    std::set<std::uint32_t> waiting;  // all that stay, until they enter that
  };
  std::map<std::uint32_t, Parted> parted_;
  std::uint32_t number_ = 0;                    // of the newest change
  bool changing_ = false, interrupts_ = false;  // in that change
  bool shares_anew_ = false;                    // with the next View
  struct Heard {
    std::uint64_t next_step = 0, unbegun = 0;
  };
  std::map<std::uint32_t, Heard> heard_;  // of those that have halted
  // The first step that is not sent to each newcomer of the View. In a planned View it may be one
  // of the View before, whose steps the newcomer makes as the others do.
  std::map<std::uint32_t, std::uint64_t> taught_until_;
  std::map<std::uint32_t, std::uint64_t> least_;  // next step of those present, when last heard
};

}  // namespace troupe::pipeline

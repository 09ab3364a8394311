#pragma once

// Which members make steps together, and how that changes. When a member is lost the survivors halt
// and say what they have reached; when all have said it, there is a new View, from the furthest
// step on. Another loss meanwhile begins this anew under a higher number.
//
// Survivors keep their micro-batches, so that nothing they have computed is computed again. A
// member that joins takes its first micro-batches in an iteration that nobody has begun. When
// micro-batches are shared out anew, that begins with such an iteration too.
//
// A pure state machine: no clocks, no messages. One thread.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "pipeline/steps/view.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

struct MembershipOptions {
  std::uint32_t term = 1;
  std::vector<std::uint32_t> ring{0};     // the first members in the order of their ring
  std::uint32_t replicas_per_member = 1;  // numbered over all members in order
  // How fast each replica is, of these members and of all that may join. Some of the first are
  // above 0.
  std::vector<std::uint64_t> weights{1};
  std::uint32_t micro_batches = 1;  // M
  std::uint32_t slots = 1;          // steps of an iteration
  // With fewer members no steps are made: they halt, and go on when so many are here again.
  std::uint32_t min_members = 1;
  std::uint64_t end_step = 0;  // the first that nobody makes; 0: it is not known
};

class Membership {
 public:
  explicit Membership(MembershipOptions options);

  // The View that was told last; begin() makes the first.
  const View& view() const { return view_; }
  const View& begin(std::uint64_t first_step);

  // In place of begin(), when another coordinator was lost: goes on from the newest View that
  // anybody was told, which has a lower term. Its members are to halt for change(). Errors
  // (kLostPeers): it is no View of this run.
  runtime::Result<void> go_on_from(const View& view);

  // The members of the View that are not lost, ascending.
  const std::set<std::uint32_t>& present() const { return present_; }
  // These, and the ones that are to be in the next View.
  std::set<std::uint32_t> participants() const;
  // The id under which participants are to halt; none: no change is under way.
  std::optional<ViewId> change() const;
  // Participants that have not halted for it yet.
  std::vector<std::uint32_t> unheard() const;
  // The change waits for others to join: there are fewer than min_members.
  bool is_short() const { return changing_ && participants().size() < options_.min_members; }

  // Replaces the weights of all replicas. Those present are to halt for change(), and micro-batches
  // are shared out by these weights from the first iteration on that nobody has begun.
  void share_anew(std::vector<std::uint64_t> weights);
  const std::vector<std::uint64_t>& weights() const { return options_.weights; }

  // The member has learned what the others know: it and the others are to halt for change(). CHECKs
  // that it is in no View.
  void admit(std::uint32_t member);
  // The member is gone. If there are others they are to halt for change(). False: it was no
  // participant.
  bool lose(std::uint32_t member);
  struct Answer {
    std::optional<View> view;  // the next one
    std::vector<std::uint32_t>
        left_behind;  // these lack more than anybody can give, and have to go
    // With a View: how many micro-batches of the iteration of its first step are another replica's
    // from that step on.
    std::uint32_t taken_over = 0;
  };
  // The member has halted and would make `next_step` next. The answer is empty while others have
  // still to halt or to join, and when the member has halted for another change. Errors
  // (kLostPeers) name a member that says it has gone back behind the View it was in.
  runtime::Result<Answer> halted(std::uint32_t member, ViewId change, std::uint64_t next_step);

 private:
  std::vector<std::uint32_t> left_behind() const;
  bool still_learns(std::uint32_t member) const;
  std::uint64_t furthest() const;
  View next_view() const;
  std::uint32_t taken_over(const View& next) const;
  std::vector<std::uint64_t> weights_of(const std::set<std::uint32_t>& members) const;

  MembershipOptions options_;
  View view_;
  std::set<std::uint32_t> present_, joining_;
  std::uint32_t number_ = 0;  // of the newest change
  bool changing_ = false;
  bool shares_anew_ = false;                      // with the next View
  std::map<std::uint32_t, std::uint64_t> heard_;  // next step of those that have halted
};

}  // namespace troupe::pipeline

#pragma once

// What a Reducer (reducer.h) gives to members that lack sums: to those that learn from it
// (messages.h: Teach) the sums of every step, and to one that enters a View those of the step
// before. It keeps the sums of the newest step. One thread.

#include <cstdint>
#include <map>
#include <optional>

#include "actors/messages.h"
#include "actors/ring_links.h"
#include "actors/ring_sum.h"

namespace troupe::actors {

class Teacher {
 public:
  // `replay_bytes`: so many may wait for a member that learns; with more it is taught no longer.
  Teacher(RingLinks& links, std::int64_t replay_bytes,
          std::optional<pipeline::ReductionFormat> lossy)
      : links_(links), replay_bytes_(replay_bytes), lossy_(lossy) {}

  struct Pupil {
    std::uint32_t member = 0, process = 0;
  };
  // Both give the member that may begin now: its node is met. Messages for one that cannot be
  // reached would wait here, and every step with them.
  std::optional<Pupil> told(runtime::Context& context, const Teach& teach);
  std::optional<Pupil> met(const NeighbourMet& met);
  // Gives it the sums from `next_step` on. False: it has begun before.
  bool begin(runtime::Context& context, const Pupil& pupil, std::uint64_t next_step);
  // The members of the View learn no longer.
  void let_in(const pipeline::View& view);
  // Nobody learns any longer.
  void dismiss_all();
  bool teaches(std::uint32_t member) const { return taught_.contains(member); }
  bool teaches_nobody() const { return taught_.empty(); }

  // The sums of the newest step, in place of those before.
  void keep(StepSums sums) { newest_ = std::move(sums); }
  bool has_step(std::uint64_t step) const { return newest_ && newest_->step == step; }
  std::uint64_t kept_bytes() const;  // see Halted
  // Gives the newest step to all that learn. A member of the View, or of the next one, is never too
  // slow, because it needs what it lacks until it enters; all that waits for others are lessons.
  void pass_on(runtime::Context& context, auto may_be_member) {
    for (const auto& [member, process] : std::map(taught_)) {
      if (may_be_member(member) || links_.waiting_bytes(member) <= replay_bytes_) {
        give(context, member, kLesson);
      } else {
        dismiss(context, {member, process});
      }
    }
  }
  void give(runtime::Context& context, std::uint32_t member, pipeline::ViewId view);

 private:
  void dismiss(runtime::Context& context, const Pupil& slow);

  RingLinks& links_;
  std::int64_t replay_bytes_;
  std::optional<pipeline::ReductionFormat> lossy_;
  // The process of each member that learns; of those that are to be taught as soon as they are met;
  // and of each that was met.
  std::map<std::uint32_t, std::uint32_t> taught_, to_teach_, met_;
  std::optional<StepSums> newest_;
};

}  // namespace troupe::actors

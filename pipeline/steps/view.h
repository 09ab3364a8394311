#pragma once

// Who makes the steps from one of them on: the members of a View, their ring, and which replica
// computes which micro-batch. The coordinator numbers Views; whatever belongs to another one than a
// member's own is not listened to.
//
// Values; nothing of them depends on time.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/steps/spot_check.h"

namespace troupe::pipeline {

// A later View is the greater one. {0, 0} is none.
struct ViewId {
  std::uint32_t term = 0;    // of the coordinator that numbered it
  std::uint32_t number = 0;  // grows by every change that was begun, those overtaken included
  auto operator<=>(const ViewId&) const = default;
};

// "1.3": the third of term 1.
std::string text_of(const ViewId& id);

struct View {
  ViewId id;
  std::uint64_t first_step = 0;  // that is made in it
  // Numbers of its members, in the order of the ring: each sends to the next, the last to the
  // first.
  std::vector<std::uint32_t> ring;
  // Of each of these the step it would make next. One below first_step lacks the sums of the step
  // before, which nobody will make again.
  std::vector<std::uint64_t> reached;
  // Replica of each micro-batch, in the iterations before the first of these.
  std::vector<std::uint32_t> owners;
  // From an iteration on that nobody has begun when the View is told; ascending.
  struct Assignment {
    std::uint64_t from = 0;
    std::vector<std::uint32_t> owners;
    bool operator==(const Assignment&) const = default;
  };
  std::vector<Assignment> later;
  // Members that were not in a View before. What they lack until first_step, and be it more than
  // one step, they get from who has taught them.
  std::vector<std::uint32_t> learners;
  const std::vector<std::uint32_t>& owners_in(std::uint64_t iteration) const;

  // Where the member stands in the ring; CHECKs that it does.
  std::uint32_t position_of(std::uint32_t member) const;
  bool has(std::uint32_t member) const;
  bool is_new(std::uint32_t member) const;
  // Of a member that is not new: lacks the step before first_step.
  bool lags(std::uint32_t member) const {
    return !is_new(member) && reached[position_of(member)] < first_step;
  }
  // The first of the ring that has it and is not new, if such lack it: it gives it to them.
  bool gives(std::uint32_t member) const;
  // Whether each assignment has an owner for each of so many micro-batches, and all owners are
  // replicas of its members.
  bool shares_out(std::uint32_t micro_batches, std::uint32_t replicas_per_member) const;
  // That tells of the steps and sends snapshots: the least number.
  std::uint32_t leader() const;

  // Which micro-batches are computed twice in the iteration; `every`, `seed`, `slots` and
  // `replicas_per_member` as of any View.
  SpotChecks checks(SpotChecks of_run, std::uint64_t iteration) const;
};

}  // namespace troupe::pipeline

#pragma once

// The members that make the steps from some step on, their ring, and the replica of each
// micro-batch. The coordinator numbers Views; a member ignores messages of any View but its own.
//
// Plain values that do not depend on time.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/data/short_iteration.h"
#include "pipeline/steps/spot_check.h"
#include "runtime/base/fields.h"

namespace troupe::pipeline {

// A later View is the greater one. {0, 0} is none.
struct ViewId {
  std::uint32_t term = 0;    // of the coordinator that numbered it
  std::uint32_t number = 0;  // grows by every change that was begun, overtaken ones included
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
  // Positions in it at which a row begins, as BucketRoutes has them; empty: it is one ring.
  std::vector<std::uint32_t> rows;
  // The step that each of them would make next when the View begins. A member below first_step
  // lacks the sums of the step before, which are not made again.
  std::vector<std::uint64_t> reached;
  // Replica of each micro-batch, in the iterations before the first of these.
  std::vector<std::uint32_t> owners;
  // Assignments from iterations on that no member has begun when the View is told; ascending.
  struct Assignment {
    std::uint64_t from = 0;
    std::vector<std::uint32_t> owners;
    bool operator==(const Assignment&) const = default;
  };
  std::vector<Assignment> later;
  // Members that may lack more than one step: those that this View is the first of, and those of an
  // earlier one that have not caught up. Their teacher sends them the steps before first_step, or,
  // where this one is planned, before that of their first View; they make the others themselves.
  std::vector<std::uint32_t> newcomers;
  // As if each iteration took all of them; work_of() knows which are short.
  const std::vector<std::uint32_t>& owners_in(std::uint64_t iteration) const;

  // The member's position in the ring; CHECKs that it has one.
  std::uint32_t position_of(std::uint32_t member) const;
  bool has(std::uint32_t member) const;
  bool is_new(std::uint32_t member) const;
  // True if a member that is not new lacks the step before first_step.
  bool lags(std::uint32_t member) const {
    return !is_new(member) && reached[position_of(member)] < first_step;
  }
  // The members that this one sends to, in steps of the View.
  std::vector<std::uint32_t> next_of(std::uint32_t member) const;
  // The members that this one sends that step to, as soon as it has it, in this order: in each row
  // those that have it give it to those that lack it, and with them to the next, so that it takes
  // the time of a few sendings however many lack it. In a row where nobody has it, one gets it from
  // another row. Newcomers have it from their teachers.
  std::vector<std::uint32_t> gives_to(std::uint32_t member) const;
  // Whether each assignment has an owner for each of so many micro-batches, and all owners are
  // replicas of its members.
  bool shares_out(std::uint32_t micro_batches, std::uint32_t replicas_per_member) const;
  // The member that reports the steps and sends snapshots: the one of the least number.
  std::uint32_t leader() const;

  // The micro-batches that are computed twice in the iteration; `every`, `seed`, `slots`,
  // `replicas_per_member` and `short_iteration` as of any View.
  SpotChecks checks(SpotChecks of_run, std::uint64_t iteration) const;
};

// A replica's share of an iteration.
struct ReplicaWork {
  std::vector<std::uint32_t> own;  // micro-batches, ascending
  std::optional<SpotCheck> check;  // of the iteration, whoever takes part in it
  bool is_witness = false;         // the replica computes the micro-batch of the check as well

  // With that one behind them.
  std::vector<std::uint32_t> micro_batches() const;
};
// `of_run` as for View::checks().
ReplicaWork work_of(const View& view, const SpotChecks& of_run, std::uint64_t iteration,
                    std::uint32_t replica);

// The fields, as runtime/base/fields.h has them.
//
// No View has more members, or more micro-batches.
inline constexpr std::size_t kMostViewMembers = 1024;
inline constexpr std::size_t kMostMicroBatches = std::size_t{1} << 16;
// Assignments that lie behind a View's first iteration.
inline constexpr std::size_t kMostAssignments = 16;

void fields(auto& archive, runtime::Like<ViewId> auto& id) {
  archive.number("term", id.term);
  archive.number("number", id.number);
}

void fields(auto& archive, runtime::Like<View::Assignment> auto& assignment) {
  archive.number("from", assignment.from);
  archive.list("owners", assignment.owners, kMostMicroBatches);
}

void fields(auto& archive, runtime::Like<View> auto& view) {
  archive.object("id", view.id);
  archive.number("first_step", view.first_step);
  archive.list("ring", view.ring, kMostViewMembers);
  archive.list("rows", view.rows, kMostViewMembers);
  archive.list("reached", view.reached, kMostViewMembers);
  archive.list("owners", view.owners, kMostMicroBatches);
  archive.list("later", view.later, kMostAssignments);
  archive.list("newcomers", view.newcomers, kMostViewMembers);
}

// Sound means: a ring of different members, owners, and a reached step for each member. That is
// first_step or the step before, and first_step for at least one; newcomers are further behind.
const char* fault_of(const View& view);

}  // namespace troupe::pipeline

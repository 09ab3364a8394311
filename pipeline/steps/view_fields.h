#pragma once

// The fields of a View; see runtime/base/fields.h.

#include <cstddef>

#include "pipeline/steps/view.h"
#include "runtime/base/fields.h"

namespace troupe::pipeline {

// No View has more members, or more micro-batches.
inline constexpr std::size_t kMostViewMembers = 1024;
inline constexpr std::size_t kMostMicroBatches = std::size_t{1} << 16;
// Assignments that lie behind a View's first iteration.
inline constexpr std::size_t kMostAssignments = 16;

template <class Archive>
void fields(Archive& archive, runtime::Like<ViewId> auto& id) {
  archive.number("term", id.term);
  archive.number("number", id.number);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<View::Assignment> auto& assignment) {
  archive.number("from", assignment.from);
  archive.list("owners", assignment.owners, kMostMicroBatches);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<View> auto& view) {
  archive.object("id", view.id);
  archive.number("first_step", view.first_step);
  archive.list("ring", view.ring, kMostViewMembers);
  archive.list("reached", view.reached, kMostViewMembers);
  archive.list("owners", view.owners, kMostMicroBatches);
  archive.list("later", view.later, kMostAssignments);
  archive.list("newcomers", view.newcomers, kMostViewMembers);
}

// Sound means: a ring of different members, owners, and a reached step for each member. That is
// first_step or the step before, and first_step for at least one; newcomers are further behind.
const char* fault_of(const View& view);

}  // namespace troupe::pipeline

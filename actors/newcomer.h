#pragma once

// The lessons of a replica whose member is in no View yet: a state, and the sums of every step from
// there on. With them it makes of the state what the others make of theirs, having computed nothing
// of it. One thread; sends nothing.

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "actors/messages.h"
#include "actors/step_engine.h"
#include "pipeline/steps/step_record.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"
#include "runtime/message.h"

namespace troupe::actors {

class Newcomer {
 public:
  explicit Newcomer(TrainingContext training) : training_(training) {}

  // A lesson has come before the state. It keeps its credit.
  void keep(runtime::Message lesson) { early_.push_back(std::move(lesson)); }
  std::deque<runtime::Message> take_kept() { return std::exchange(early_, {}); }

  // A bucket of sums; false: it is none of the step after `engine`'s state.
  bool take_bucket(const BucketMessage& body, const runtime::Buffer& sums,
                   const StepEngine& engine);
  // Whether the header, or its absence so far, fits what is here of that step.
  bool expects(const pipeline::StepHeader& header, const StepEngine& engine) const;
  // The expected header completes the step's record. An Error (kDiverged): this replica's state is
  // not that of the others.
  runtime::Result<pipeline::StepRecord> complete(const pipeline::StepHeader& header,
                                                 const StepEngine& engine);
  // How many headers of taught steps had the hash of its own state.
  std::uint64_t steps() const { return steps_; }

 private:
  TrainingContext training_;
  std::deque<runtime::Message> early_;
  std::optional<pipeline::StepRecord> record_;  // of the next step, as far as its sums are here
  std::uint64_t steps_ = 0;
};

}  // namespace troupe::actors

#include "actors/newcomer.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/sum_layout.h"
#include "pipeline/steps/turn_update.h"

namespace troupe::actors {

bool Newcomer::take_bucket(const BucketMessage& body, const runtime::Buffer& sums,
                           const StepEngine& engine) {
  const auto slot = training_.options.schedule[engine.state().slot];
  const pipeline::SumLayout layout =
      pipeline::sum_layout(training_.gan.contributions(slot), training_.options.gradient_sums());
  const pipeline::Bucket bucket{body.begin, body.end - body.begin, body.kind};
  if (body.step != engine.next_step() || !layout.holds(bucket) || sums.size() != bucket.bytes()) {
    return false;
  }
  if (!record_) {
    record_.emplace();
    record_->sums = runtime::Buffer::zeroed(layout.bytes());
    record_->front = layout.front;
  }
  std::memcpy(record_->sums.mutable_data() + layout.offset(body.begin), sums.data(), sums.size());
  return true;
}

bool Newcomer::expects(const pipeline::StepHeader& header, const StepEngine& engine) const {
  const pipeline::TrainingOptions& options = training_.options;
  const pipeline::TrainingState& state = engine.state();
  return header.step == engine.next_step() && record_ && !header.flagged &&
         header.micro_batches == options.micro_batches_of_step(state.iteration, state.slot) &&
         header.events == options.events_of_step(state.iteration, state.slot) &&
         pipeline::says_next_turn(header, options, state);
}

// The header carries the hash of the others' state before the step, so a difference shows before
// anything is applied to this one.
runtime::Result<pipeline::StepRecord> Newcomer::complete(const pipeline::StepHeader& header,
                                                         const StepEngine& engine) {
  const runtime::Hash128& hash = engine.state_hash();
  if (header.state_minimum != hash || header.state_maximum != hash) {
    return runtime::Error{
        runtime::ErrorKind::kDiverged,
        fmt::format("the state before step {} is {} here and {} with the members of the run; this "
                    "machine computes otherwise, or its memory is bad",
                    header.step, hash.text(), header.state_minimum.text())};
  }
  const pipeline::TrainingState& state = engine.state();
  pipeline::StepRecord record = *std::exchange(record_, std::nullopt);
  record.header = header;
  record.scales = state.scales[state.slot];
  // The header of a second attempt has measured the same numbers as that of the first, and so gives
  // the scales that the second attempt was made with.
  if (header.attempt > 0) {
    const auto& tensors = training_.gan.contributions(training_.options.schedule[state.slot]);
    record.scales = pipeline::scales_after(record.scales, header, training_.options.micro_batches,
                                           pipeline::rounded_tensors(tensors, training_.options));
  }
  ++steps_;
  return record;
}

}  // namespace troupe::actors

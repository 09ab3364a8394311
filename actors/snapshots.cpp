#include "actors/snapshots.h"

#include <memory>
#include <utility>

#include "actors/messages.h"

namespace troupe::actors {
namespace {

void post_copy(const pipeline::TrainingState& state, Outbox& outbox) {
  if (!outbox.valid()) return;
  outbox.post(
      runtime::Message::of(Snapshot{std::make_shared<const pipeline::TrainingState>(state)}));
}

}  // namespace

void Snapshots::start(runtime::Context& context) {
  checkpoints_ = Outbox(context.out("snapshots"));
  validations_ = Outbox(context.out("validation"));
}

void Snapshots::take_if_due(const pipeline::TrainingState& state, bool epoch_ended) {
  const auto is_due = [&](const config::Every& every) {
    return state.slot == 0 && every.due(state.iteration, state.epoch, epoch_ended);
  };
  if (std::exchange(requested_, false) || is_due(checkpoint_)) post_copy(state, checkpoints_);
  if (is_due(validation_)) post_copy(state, validations_);
}

}  // namespace troupe::actors

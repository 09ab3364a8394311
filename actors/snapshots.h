#pragma once

// Copies of a replica's state on their way to the Checkpointer and the Validator. One thread.

#include <cstdint>

#include "actors/outbox.h"
#include "config/units.h"
#include "pipeline/steps/training_state.h"
#include "runtime/actor.h"

namespace troupe::actors {

class Snapshots {
 public:
  Snapshots(config::Every checkpoint, config::Every validation)
      : checkpoint_(checkpoint), validation_(validation) {}

  // In start(): finds the out ports "snapshots" and "validation". Where the plan wires none, no
  // snapshots are taken for it.
  void start(runtime::Context& context);
  // A checkpoint is wanted after the next step, whether one is due or not.
  void request() { requested_ = true; }
  // A step was applied, and this is the state. The leading replica calls this.
  void take_if_due(const pipeline::TrainingState& state, bool epoch_ended);
  // Sends what credit allows. False: a snapshot still waits.
  bool flush(runtime::Context& context) {
    return checkpoints_.flush(context) && validations_.flush(context);
  }
  bool waits() const { return !checkpoints_.empty() || !validations_.empty(); }
  // How many the Validator was sent, which is another one where the head is another one.
  std::uint64_t validations() const { return validations_.sent(); }
  void forget_validations() { validations_.forget_sent(); }

 private:
  config::Every checkpoint_, validation_;
  bool requested_ = false;
  Outbox checkpoints_, validations_;
};

}  // namespace troupe::actors

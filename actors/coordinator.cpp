#include "actors/coordinator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {

using runtime::ChildDecision;
using runtime::ChildEnd;
using runtime::Context;
using runtime::Message;

Coordinator::Coordinator(CoordinatorOptions options, std::shared_ptr<RunOutcome> outcome)
    : options_(options), outcome_(std::move(outcome)) {}

void Coordinator::receive(Context& context, Message message) {
  if (const auto* end = message.as<ReplicaEnd>()) {
    take_end(context, *end);
  } else if (const auto* validation = message.as<ValidationResult>()) {
    take_validation(context, *validation);
  } else if (const auto* done = message.as<LastStateDone>()) {
    take_done(context, message.sender_name(), done->error);
  } else if (message.as<CheckpointRequest>() != nullptr && phase_ == Phase::kTraining) {
    context.send_control("replica.0", Message::of(CheckpointRequest{}));
  }
}

// When training is over only a validation takes long, and the state it validates is the last.
void Coordinator::stop(Context& context) {
  stop_training(context, std::nullopt);
  if (!awaits("validator")) return;
  outcome_->stopped = true;
  context.stop_child("validator");
}

void Coordinator::stop_training(Context& context, std::optional<runtime::Error> error) {
  if (error && !error_) error_ = std::move(error);
  if (stopping_ || phase_ != Phase::kTraining) return;
  stopping_ = true;
  outcome_->stopped = true;
  for (std::uint32_t replica = 0; replica < options_.replicas; ++replica) {
    context.send_control(fmt::format("replica.{}", replica), Message::of(StopTraining{}));
  }
}

void Coordinator::take_end(Context& context, const ReplicaEnd& end) {
  // Replicas differ by at most one applied step; the newest state is the committed one.
  const auto newer = [&] {
    return std::pair{end.state->iteration, end.state->slot} >
           std::pair{outcome_->state->iteration, outcome_->state->slot};
  };
  if (outcome_->state == nullptr || newer()) {
    outcome_->state = end.state;
    outcome_->seconds = end.seconds;
    outcome_->timed_events = end.timed_events;
  }
  if (end.replica == 0) {
    said_until_ = end.last_step ? end.last_step->step + 1 : 0;
    validations_ = end.validations;
  } else if (end.last_step && (!last_step_ || end.last_step->step > last_step_->step)) {
    last_step_ = end.last_step;
  }
  if (end.error && !error_) error_ = end.error;
  if (++replicas_ended_ == options_.replicas) save(context);
}

void Coordinator::save(Context& context) {
  phase_ = Phase::kSaving;
  awaited_ = {"checkpointer"};
  if (options_.validate && !outcome_->stopped && !error_) awaited_.emplace_back("validator");
  for (const std::string& actor : awaited_) {
    context.send_control(actor, Message::of(LastState{outcome_->state, validations_}));
  }
}

bool Coordinator::awaits(std::string_view actor) const {
  return std::find(awaited_.begin(), awaited_.end(), actor) != awaited_.end();
}

void Coordinator::take_done(Context& context, std::string_view actor,
                            const std::optional<runtime::Error>& error) {
  if (error && !error_) error_ = error;
  if (std::erase(awaited_, actor) == 0) return;
  if (actor == "checkpointer") outcome_->saved = !error;
  if (!awaited_.empty()) return;
  if (phase_ == Phase::kSaving) {
    phase_ = Phase::kFlushing;
    awaited_ = {"monitor"};
    const bool unsaid = last_step_ && said_until_ && last_step_->step >= *said_until_;
    context.send_control("checkpointer",
                         Message::of(FinishMetrics{unsaid ? last_step_ : std::nullopt}));
  } else if (error_) {
    context.fail(*error_);
  } else {
    context.finish();
  }
}

void Coordinator::take_validation(Context& context, const ValidationResult& result) {
  outcome_->validation = {result.table, result.json};
  context.send_control("checkpointer",
                       Message::of(ValidatedState{result.state, result.figure_of_merit}));
}

// An actor that cannot go on ends the run, but not before the last committed state is saved, as far
// as those who do that are alive. One that ended will not answer any more.
ChildDecision Coordinator::child_ended(Context& context, const ChildEnd& end) {
  const bool needed = end.name == "checkpointer" || end.name == "monitor" ||
                      (end.name.starts_with("replica.") && phase_ == Phase::kTraining);
  if (needed && end.error) return ChildDecision::kEscalate;
  if (phase_ == Phase::kTraining) {
    if (end.error) stop_training(context, end.error);
  } else {
    take_done(context, end.name, end.error);
  }
  return ChildDecision::kIgnore;
}

std::string Coordinator::waiting_for() const {
  switch (phase_) {
    case Phase::kTraining:
      return fmt::format("the end of training: {} of {} replicas have ended", replicas_ended_,
                         options_.replicas);
    case Phase::kSaving:
      return fmt::format("{} to finish the last state", fmt::join(awaited_, " and "));
    case Phase::kFlushing:
      return "the monitor to finish writing";
  }
  return {};
}

}  // namespace troupe::actors

#include "actors/coordinator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

// Less than the shortest patience with a standstill.
constexpr auto kGatheringPause = std::chrono::milliseconds(50);

}  // namespace

using runtime::ChildDecision;
using runtime::ChildEnd;
using runtime::Context;
using runtime::Message;

Coordinator::Coordinator(CoordinatorOptions options, std::shared_ptr<RunOutcome> outcome)
    : options_(std::move(options)),
      outcome_(std::move(outcome)),
      absent_(options_.members.begin(), options_.members.end()) {
  for (std::uint32_t i = 0; i < options_.replica_nodes.size(); ++i) training_.insert(i);
}

void Coordinator::start(Context& context) {
  if (absent_.empty()) {
    begin(context);
  } else {
    context.after(kGatheringPause);
  }
}

// Waiting for members is no standstill, however long it takes people to start them.
void Coordinator::timer(Context& context, runtime::TimerId) {
  if (phase_ != Phase::kGathering || stopping_) return;
  context.post_progress();
  context.after(kGatheringPause);
  if (!options_.never_to_come) return;
  for (const MissingMember& missing : options_.never_to_come()) {
    // Of one that was here the gate says when it is lost.
    if (absent_.contains(missing.node)) lose_member(context, missing.node, missing.error);
  }
}

void Coordinator::receive(Context& context, Message message) {
  if (const auto* end = message.as<ReplicaEnd>()) {
    take_end(context, *end);
  } else if (const auto* validation = message.as<ValidationResult>()) {
    take_validation(context, *validation);
  } else if (const auto* done = message.as<LastStateDone>()) {
    take_done(context, message.sender_name(), done->error);
  } else if (message.as<CheckpointRequest>() != nullptr && phase_ == Phase::kTraining) {
    context.send_control("replica.0", Message::of(CheckpointRequest{}));
  } else if (const auto* joined = message.as<runtime::PeerJoined>()) {
    take_joined(context, *joined);
  } else if (const auto* lost = message.as<runtime::PeerLost>()) {
    lose_member(context, lost->node, lost->error);
  } else if (const auto* left = message.as<runtime::PeerLeft>()) {
    lose_member(context, left->node,
                {runtime::ErrorKind::kLostPeers, left->node + " has left the run"});
  } else if (const auto* failed = message.as<MemberFailed>()) {
    // Of a run that ends anyway everyone may have been told to; and when training is over nobody
    // needs the others any more.
    if (failed->actor.empty() && (stopping_ || phase_ > Phase::kTraining)) return;
    stop_training(context, failed->error);
    for (std::uint32_t i = 0; i < options_.replica_nodes.size(); ++i) {
      if (failed->actor == fmt::format("replica.{}", i)) replica_ended(context, i);
    }
  }
}

void Coordinator::undeliverable(Context& context, Message message, const runtime::Error& cause) {
  if (lost_.empty()) Actor::undeliverable(context, std::move(message), cause);
}

void Coordinator::take_joined(Context& context, const runtime::PeerJoined& peer) {
  context.send_control(
      "monitor",
      Message::of(NodeChange{peer.node, peer.host, peer.pid, peer.address, "running", {}}));
  absent_.erase(peer.node);
  if (!absent_.empty()) {
    context.log().info(
        fmt::format("{} is here; waiting for {}", peer.node, fmt::join(absent_, ", ")));
  } else if (phase_ == Phase::kGathering && !stopping_) {
    begin(context);
  }
}

void Coordinator::begin(Context& context) {
  phase_ = Phase::kTraining;
  for (std::uint32_t i = 0; i < options_.replica_nodes.size(); ++i) {
    context.send_control(fmt::format("replica.{}", i), Message::of(BeginTraining{options_.state}));
  }
  for (const std::string& loader : options_.loaders) {
    context.send_control(loader, Message::of(BeginLoading{options_.state->iteration}));
  }
}

// What its replicas have not reported is lost with it; the others have it, or made it together.
void Coordinator::lose_member(Context& context, const std::string& node,
                              const runtime::Error& error) {
  if (!lost_.insert(node).second) return;
  context.send_control("monitor", Message::of(NodeChange{node, {}, 0, {}, "dead", error.message}));
  const bool needed = phase_ == Phase::kGathering ||
                      std::any_of(training_.begin(), training_.end(), [&](std::uint32_t replica) {
                        return options_.replica_nodes[replica] == node;
                      });
  if (!needed) return;
  const bool trains = phase_ == Phase::kTraining;
  stop_training(context, error);
  if (!trains) return;
  for (std::uint32_t i = 0; i < options_.replica_nodes.size(); ++i) {
    if (options_.replica_nodes[i] == node) replica_ended(context, i);
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
  if (stopping_ || phase_ > Phase::kTraining) return;
  stopping_ = true;
  outcome_->stopped = true;
  if (phase_ == Phase::kGathering) {
    end_run(context);
    return;
  }
  for (const std::uint32_t replica : training_) {
    if (lost_.contains(options_.replica_nodes[replica])) continue;
    context.send_control(fmt::format("replica.{}", replica), Message::of(StopTraining{}));
  }
}

void Coordinator::take_end(Context& context, const ReplicaEnd& end) {
  // Replicas differ by at most one applied step; the newest state is the committed one.
  const auto newer = [&] {
    return outcome_->state == nullptr ||
           std::pair{end.state->iteration, end.state->slot} >
               std::pair{outcome_->state->iteration, outcome_->state->slot};
  };
  if (end.state != nullptr && newer()) {
    outcome_->state = end.state;
    outcome_->seconds = end.seconds;
    outcome_->timed_events = end.timed_events;
  }
  if (end.replica == 0) {
    finish_.told_until = end.last_step ? end.last_step->step + 1 : 0;
    validations_ = end.validations;
  }
  if (end.last_step && (!finish_.newest || end.last_step->step > finish_.newest->step)) {
    finish_.newest = end.last_step;
  }
  if (end.error && !error_) error_ = end.error;
  replica_ended(context, end.replica);
}

void Coordinator::replica_ended(Context& context, std::uint32_t replica) {
  if (training_.erase(replica) > 0 && training_.empty()) save(context);
}

void Coordinator::save(Context& context) {
  phase_ = Phase::kSaving;
  if (outcome_->state == nullptr) {
    flush(context);
    return;
  }
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
    flush(context);
  } else {
    end_run(context);
  }
}

void Coordinator::flush(Context& context) {
  phase_ = Phase::kFlushing;
  awaited_ = {"monitor"};
  context.send_control("checkpointer", Message::of(std::move(finish_)));
}

void Coordinator::release_members(Context& context) {
  for (const std::string& member : options_.members) {
    const bool here = !lost_.contains(member) && !absent_.contains(member);
    if (here) context.send_control(member, Message::of(Release{}));
  }
}

void Coordinator::end_run(Context& context) {
  release_members(context);
  if (error_) {
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
  if (needed && end.error) {
    release_members(context);
    return ChildDecision::kEscalate;
  }
  if (phase_ <= Phase::kTraining) {
    if (end.error) stop_training(context, end.error);
  } else {
    take_done(context, end.name, end.error);
  }
  return ChildDecision::kIgnore;
}

std::string Coordinator::waiting_for() const {
  switch (phase_) {
    case Phase::kGathering:
      return fmt::format("{} to come", fmt::join(absent_, ", "));
    case Phase::kTraining:
      return fmt::format("the end of training: {} of {} replicas have ended",
                         options_.replica_nodes.size() - training_.size(),
                         options_.replica_nodes.size());
    case Phase::kSaving:
      return fmt::format("{} to finish the last state", fmt::join(awaited_, " and "));
    case Phase::kFlushing:
      return "the monitor to finish writing";
  }
  return {};
}

}  // namespace troupe::actors

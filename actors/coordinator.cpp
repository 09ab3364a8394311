#include "actors/coordinator.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

// Less than the shortest patience with a standstill.
constexpr auto kLookPause = std::chrono::milliseconds(50);

std::string replica_name(std::uint32_t replica) { return fmt::format("replica.{}", replica); }

}  // namespace

using pipeline::View;
using runtime::ChildDecision;
using runtime::ChildEnd;
using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;

Coordinator::Coordinator(CoordinatorOptions options, std::shared_ptr<RunOutcome> outcome)
    : options_(std::move(options)),
      outcome_(std::move(outcome)),
      membership_(options_.membership),
      balancer_(options_.membership.weights.size()) {
  const pipeline::MembershipOptions& membership = options_.membership;
  CHECK(options_.places.size() * membership.replicas_per_member == membership.weights.size(),
        "a place for each member");
  for (const std::uint32_t member : membership.ring) {
    if (is_away(member)) absent_.insert(member);
    for (std::uint32_t i = 0; i < membership.replicas_per_member; ++i) {
      training_.insert(member * membership.replicas_per_member + i);
    }
  }
}

void Coordinator::start(Context& context) {
  if (options_.predecessor) {
    return_to(context);
    context.after(kLookPause);
  } else if (absent_.empty()) {
    begin(context);
  } else {
    context.after(kLookPause);
  }
}

void Coordinator::timer(Context& context, runtime::TimerId) {
  if (phase_ > Phase::kTraining || stopping_) return;
  look_after_members(context);
  context.after(kLookPause);
}

void Coordinator::look_after_members(Context& context) {
  // Waiting for members is no standstill, however long it takes people to start them.
  if (phase_ < Phase::kTraining || membership_.is_short()) context.post_progress();
  if (options_.ended) {
    for (const MissingMember& missing : options_.ended()) {
      const auto member = member_at(missing.node);
      if (!member) continue;
      // Of all that ever ended a head that returns is told again.
      const bool is_news =
          phase_ != Phase::kReturning || options_.predecessor->expected.contains(*member);
      if (is_news) lose_member(context, *member, missing.error);
      lost_.insert(*member);
    }
  }
  if (phase_ == Phase::kReturning) return look_for_returned(context);
  // Those that could still have come may be lost by now.
  if (membership_.is_short() && membership_.unheard().empty()) wait_for_members(context);
  settle_quarrels(context);
  let_waiting_leave(context);
}

void Coordinator::receive(Context& context, Message message) {
  // What members want waits until it is known who they are.
  const bool waits = message.as<MemberFailed>() != nullptr || message.as<Leaving>() != nullptr;
  if (phase_ == Phase::kReturning && waits) {
    deferred_.push_back(std::move(message));
    return;
  }
  const std::string_view from = message.sender_name();
  take_drains(context, message);
  if (const auto* end = message.as<ReplicaEnd>()) {
    take_end(context, *end);
  } else if (const auto* halted = message.as<Halted>()) {
    take_halted(context, *halted, from);
  } else if (const auto* validation = message.as<ValidationResult>()) {
    take_validation(context, *validation);
  } else if (const auto* done = message.as<LastStateDone>()) {
    take_done(context, from, done->error);
  } else if (message.as<CheckpointRequest>() != nullptr) {
    ask_for_checkpoint(context);
  } else if (const auto* joined = message.as<runtime::PeerJoined>()) {
    take_joined(context, *joined);
  } else if (const auto* lost = message.as<runtime::PeerLost>()) {
    if (const auto member = member_at(lost->node)) lose_member(context, *member, lost->error);
  } else if (const auto* left = message.as<runtime::PeerLeft>()) {
    const Error error{ErrorKind::kLostPeers, left->node + " has left the run"};
    if (const auto member = member_at(left->node)) lose_member(context, *member, error, "ended");
  } else if (const auto* quarrel = message.as<FellowLost>()) {
    take_quarrel(context, *quarrel, from);
  } else if (message.as<Leaving>() != nullptr) {
    if (const auto member = member_at(from)) let_leave(context, *member, {});
  } else if (const auto* learned = message.as<Learned>()) {
    if (from == replica_name(learned->replica)) take_learned(context, *learned);
  } else if (const auto* slow = message.as<TooSlow>()) {
    take_too_slow(context, slow->member, from);
  } else if (const auto* pace = message.as<Pace>()) {
    if (from == replica_name(pace->replica)) take_pace(context, *pace);
  } else if (const auto* failed = message.as<MemberFailed>()) {
    // Of one that learns, it has cost nobody anything.
    const auto member = member_at(from);
    const bool is_new =
        phase_ == Phase::kTraining && member && !membership_.present().contains(*member);
    if (is_new) return expel(context, *member, failed->error);
    stop_training(context, failed->error);
    for (std::uint32_t i = 0; i < options_.membership.weights.size(); ++i) {
      if (failed->actor == fmt::format("replica.{}", i)) replica_ended(context, i);
    }
  }
}

void Coordinator::undeliverable(Context& context, Message message, const Error& cause) {
  if (lost_.empty()) Actor::undeliverable(context, std::move(message), cause);
}

std::optional<std::uint32_t> Coordinator::member_at(std::string_view node) const {
  for (std::uint32_t i = 0; i < options_.places.size(); ++i) {
    if (options_.places[i].node == node) return i;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Coordinator::member_of_reducer(std::string_view reducer) const {
  for (std::uint32_t i = 0; i < options_.places.size(); ++i) {
    if (options_.places[i].reducer == reducer) return i;
  }
  return std::nullopt;
}

void Coordinator::take_joined(Context& context, const runtime::PeerJoined& peer) {
  const auto member = member_at(peer.node);
  if (!member) return;
  const bool learns = phase_ == Phase::kTraining && !stopping_ && !lost_.contains(*member);
  context.send_control(
      "monitor",
      Message::of(NodeChange{
          peer.node, peer.host, peer.pid, peer.address, learns ? "joining" : "running", {}}));
  if (lost_.contains(*member)) {
    // The others have gone on without it, or whoever started it has told of its end already.
    const Error error{ErrorKind::kLostPeers,
                      fmt::format("the run has gone on without {}", peer.node)};
    context.send_control(peer.node, Message::of(Expelled{error}));
    return;
  }
  here_.insert(*member);
  if (phase_ == Phase::kReturning) return ask_returned(context, *member);
  if (learns) return teach(context, *member);
  absent_.erase(*member);
  if (!absent_.empty()) {
    std::vector<std::string> names;
    for (const std::uint32_t each : absent_) names.push_back(options_.places[each].node);
    context.log().info(
        fmt::format("{} is here; waiting for {}", peer.node, fmt::join(names, ", ")));
  } else if (phase_ == Phase::kGathering && !stopping_) {
    begin(context);
    context.after(kLookPause);
  }
}

void Coordinator::begin(Context& context) {
  phase_ = Phase::kTraining;
  for (const std::uint32_t replica : training_) {
    context.send_control(fmt::format("replica.{}", replica),
                         Message::of(BeginTraining{options_.state}));
  }
  RunOutcome::ViewChange first;
  first.view = membership_.begin(options_.first_step);
  tell_view(context, first);
}

void Coordinator::lose_member(Context& context, std::uint32_t member, const Error& error,
                              const char* state) {
  if (!lost_.insert(member).second) return;
  context.send_control(
      "monitor",
      Message::of(NodeChange{options_.places[member].node, {}, 0, {}, state, error.message}));
  if (learners_.contains(member)) return lose_learner(context, member);
  if (phase_ == Phase::kGathering) {
    if (absent_.contains(member) || here_.contains(member)) stop_training(context, error);
  } else if (phase_ == Phase::kTraining && membership_.present().contains(member)) {
    go_on_without(context, member, error);
  } else if (awaits("validator") && !membership_.view().ring.empty() &&
             member == member_of(leading_replica())) {
    context.send_control("validator", Message::of(last_state()));
  }
}

// What its replicas have not reported is lost with it; the others have it, or make it together.
void Coordinator::go_on_without(Context& context, std::uint32_t member, const Error& error) {
  const bool last = membership_.present() == std::set<std::uint32_t>{member};
  const bool trained = std::any_of(training_.begin(), training_.end(), [&](std::uint32_t replica) {
    return member_of(replica) == member;
  });
  // The last one takes with it what it had still to make.
  if (last && trained) stop_training(context, error);
  const bool was_changing = membership_.change().has_value();
  membership_.lose(member);
  std::erase_if(training_, [&](std::uint32_t replica) { return member_of(replica) == member; });
  if (training_.empty()) return save(context);
  if (stopping_) return;
  if (!was_changing) changing_since_ = context.now();
  causes_.push_back(error.message);
  context.log().warning(
      fmt::format("going on without {}: {}", options_.places[member].node, error.message));
  std::vector<std::uint32_t> untaught;
  for (const auto& [learner, about] : learners_) {
    if (about.teacher == member) untaught.push_back(learner);
  }
  for (const std::uint32_t learner : untaught) {
    expel(context, learner,
          {ErrorKind::kLostPeers,
           fmt::format("{} learned from {}, which is lost; join again",
                       options_.places[learner].node, options_.places[member].node)});
  }
  admit_learners(context);
  halt(context);
}

void Coordinator::take_quarrel(Context& context, const FellowLost& lost, std::string_view from) {
  const auto one = member_at(from), other = member_at(lost.node);
  if (!one || !other || phase_ > Phase::kTraining) return;
  quarrels_.push_back({*one, *other, lost.error, context.now()});
}

// Members that cannot reach each other cannot stand in one ring. Usually one of the two is dead and
// the head is about to notice; else the one goes that still learns, of equals the one that more
// have lost, and then the later one. What learners say counts for no other quarrel: however many of
// them cannot reach a member, the others can.
void Coordinator::settle_quarrels(Context& context) {
  const auto is_over = [&](const Quarrel& quarrel) {
    return lost_.contains(quarrel.from) || lost_.contains(quarrel.about);
  };
  std::erase_if(quarrels_, is_over);
  const auto learns = [&](std::uint32_t member) {
    return !membership_.present().contains(member) || teachers_.contains(member);
  };
  // Both live, or the others do not need the one that goes.
  const auto is_clear = [&](const Quarrel& quarrel) {
    if (learns(quarrel.from) || learns(quarrel.about)) return true;
    return std::any_of(quarrels_.begin(), quarrels_.end(), [&](const Quarrel& other) {
      return other.from == quarrel.about && other.about == quarrel.from;
    });
  };
  const auto due = std::find_if(quarrels_.begin(), quarrels_.end(), [&](const Quarrel& quarrel) {
    const auto grace = is_clear(quarrel) ? options_.parting_grace : options_.accused_grace;
    return context.now() - quarrel.since >= grace;
  });
  if (due == quarrels_.end()) return;
  const Quarrel quarrel = *due;
  const auto complaints = [&](std::uint32_t member) {
    return std::count_if(quarrels_.begin(), quarrels_.end(), [&](const Quarrel& each) {
      return (each.from == member || each.about == member) && !learns(each.from) &&
             !learns(each.about);
    });
  };
  const auto rank = [&](std::uint32_t member) {
    return std::tuple{learns(member), complaints(member), member};
  };
  const std::uint32_t leaves =
      rank(quarrel.from) > rank(quarrel.about) ? quarrel.from : quarrel.about;
  const Error error{quarrel.error.kind,
                    fmt::format("{} has lost {}: {}", options_.places[quarrel.from].node,
                                options_.places[quarrel.about].node, quarrel.error.message)};
  expel(context, leaves, error);
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
  if (phase_ == Phase::kReturning) {
    stop_asked_ = true;
    return;
  }
  stopping_ = true;
  outcome_->stopped = true;
  if (phase_ == Phase::kGathering) {
    end_run(context);
    return;
  }
  for (const std::uint32_t replica : training_) {
    context.send_control(fmt::format("replica.{}", replica), Message::of(StopTraining{}));
  }
}

void Coordinator::take_end(Context& context, const ReplicaEnd& end) {
  if (phase_ < Phase::kTraining || membership_.view().ring.empty()) return;
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
  if (end.replica == leading_replica()) {
    finish_.told_until = end.last_step ? end.last_step->step + 1 : 0;
  }
  validations_[end.replica] = end.validations;
  if (end.last_step && (!finish_.newest || end.last_step->step > finish_.newest->step)) {
    finish_.newest = end.last_step;
  }
  if (end.error && !error_) error_ = end.error;
  // Told to by a head that was lost before it had told all.
  const bool too_early = end.state != nullptr && end.state->iteration < options_.iterations;
  if (too_early && !end.error && !stopping_) {
    stop_training(context, Error{ErrorKind::kLostPeers,
                                 "the head was lost while it ended the run; go on with --resume"});
  }
  replica_ended(context, end.replica);
}

// After training, the last state is written again where its file has gone.
void Coordinator::ask_for_checkpoint(Context& context) {
  if (phase_ == Phase::kTraining) {
    context.send_control(fmt::format("replica.{}", leading_replica()),
                         Message::of(CheckpointRequest{}));
  } else if (phase_ > Phase::kTraining && outcome_->state != nullptr) {
    context.send_control("checkpointer", Message::of(Snapshot{outcome_->state}));
  }
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
    context.send_control(actor, Message::of(last_state()));
  }
}

// Of a leader that is lost no snapshot will come any more.
LastState Coordinator::last_state() const {
  // Of members that have gone before this head came.
  if (membership_.view().ring.empty()) return {outcome_->state, 0, {}};
  const std::uint32_t leader = leading_replica();
  const auto sent = validations_.find(leader);
  const bool comes = sent != validations_.end() && !lost_.contains(member_of(leader));
  return {outcome_->state, comes ? sent->second : 0, fmt::format("replica.{}", leader)};
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

void Coordinator::release(Context& context, std::uint32_t member, const std::string& why) {
  context.send_control(options_.places[member].node, Message::of(Release{why}));
}

void Coordinator::release_members(Context& context) {
  for (const std::uint32_t member : here_) {
    if (!lost_.contains(member)) release(context, member);
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
      return fmt::format("{} members to come", absent_.size());
    case Phase::kReturning:
      return fmt::format("members to come back: {} have told where they are", reports_.size());
    case Phase::kTraining:
      if (membership_.is_short()) {
        return fmt::format("members to join: {} of {} are here", membership_.participants().size(),
                           options_.membership.min_members);
      }
      if (membership_.change()) {
        return fmt::format("member.{} to halt", fmt::join(membership_.unheard(), ", member."));
      }
      return fmt::format("the end of training: {} replicas have not ended", training_.size());
    case Phase::kSaving:
      return fmt::format("{} to finish the last state", fmt::join(awaited_, " and "));
    case Phase::kFlushing:
      return "the monitor to finish writing";
  }
  return {};
}

}  // namespace troupe::actors

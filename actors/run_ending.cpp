#include "actors/run_ending.h"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::actors {

using pipeline::Roster;
using runtime::Context;
using runtime::Message;

// Replicas differ by at most one applied step, and the newest state is the committed one.
void RunEnding::add(const ReplicaEnd& end, bool leads) {
  const auto is_newer = [&] {
    return outcome_->state == nullptr ||
           std::pair{end.state->iteration, end.state->slot} >
               std::pair{outcome_->state->iteration, outcome_->state->slot};
  };
  if (end.state != nullptr && is_newer()) {
    outcome_->state = end.state;
    outcome_->seconds = end.seconds;
    outcome_->timed_events = end.timed_events;
  }
  if (leads) finish_.told_until = end.last_step ? end.last_step->step + 1 : 0;
  validations_[end.replica] = end.validations;
  if (end.last_step && (!finish_.newest || end.last_step->step > finish_.newest->step)) {
    finish_.newest = end.last_step;
  }
  note(end.error);
}

// All replicas end after the same step, and the first of them tells why.
void RunEnding::end_early(Context& context, Roster& roster,
                          const std::optional<pipeline::StoppingOptions>& stop,
                          const pipeline::TrainingState& state) const {
  if (outcome_->ended_early || state.iteration >= roster.options.iterations) return;
  outcome_->ended_early = pipeline::reason_to_stop(stop, state);
  if (!outcome_->ended_early) return;
  context.log().info(
      fmt::format("training ends after iteration {}: {}", state.iteration, *outcome_->ended_early));
  note_last_step(roster, state.step(roster.options.membership.steps_per_iteration));
}

void RunEnding::save(Context& context, const Roster& roster) {
  if (outcome_->state == nullptr) return flush(context);
  awaited_ = {"checkpointer"};
  // A run that was stopped or has failed is to end soon, so its last state is not validated.
  if (validate_ && !outcome_->stopped && !error_) awaited_.emplace_back("validator");
  for (const std::string& actor : awaited_) {
    context.send_control(actor, Message::of(last_state(roster)));
  }
}

// A leader that is lost sends no snapshots any more, so none are waited for.
LastState RunEnding::last_state(const Roster& roster) const {
  // When the members had gone before this head came, there is no View.
  if (roster.membership.view().ring.empty()) return {outcome_->state, 0, {}};
  const std::uint32_t leader = roster.leading_replica();
  const auto sent = validations_.find(leader);
  const bool comes = sent != validations_.end() && !roster.is_lost(roster.member_of(leader));
  return {outcome_->state, comes ? sent->second : 0, replica_name(leader)};
}

void RunEnding::forget_leader(Context& context, const Roster& roster) const {
  if (awaits("validator")) context.send_control("validator", Message::of(last_state(roster)));
}

bool RunEnding::awaits(std::string_view actor) const {
  return std::find(awaited_.begin(), awaited_.end(), actor) != awaited_.end();
}

void RunEnding::take_done(Context& context, const Roster& roster, std::string_view actor,
                          const std::optional<runtime::Error>& error) {
  note(error);
  if (std::erase(awaited_, actor) == 0) return;
  if (actor == "checkpointer") outcome_->saved = !error;
  if (!awaited_.empty()) return;
  if (flushing_) {
    end(context, roster);
  } else {
    flush(context);
  }
}

void RunEnding::flush(Context& context) {
  flushing_ = true;
  awaited_ = {"monitor"};
  context.send_control("checkpointer", Message::of(std::move(finish_)));
}

void RunEnding::release_members(Context& context, const Roster& roster) const {
  for (std::uint32_t member = 0; member < roster.members.size(); ++member) {
    if (roster.is_here(member)) context.send_control(roster.nodes[member], Message::of(Release{}));
  }
}

void RunEnding::end(Context& context, const Roster& roster) const {
  release_members(context, roster);
  if (error_) {
    context.fail(*error_);
  } else {
    context.finish();
  }
}

std::string RunEnding::waiting_for() const {
  if (flushing_) return "the monitor to finish writing";
  return fmt::format("{} to finish the last state", fmt::join(awaited_, " and "));
}

}  // namespace troupe::actors

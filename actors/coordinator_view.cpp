// The part of the Coordinator that goes from one View to the next, and has newcomers taught.

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator.h"

namespace troupe::actors {

using pipeline::View;
using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;

// By the leader, which sends snapshots anyway.
void Coordinator::teach(Context& context, std::uint32_t member) {
  const std::uint32_t teacher = *membership_.present().begin();
  learners_[member] = {teacher, {}};
  context.log().info(fmt::format("{} is here and learns from {}", options_.places[member].node,
                                 options_.places[teacher].node));
  context.send_control(options_.places[teacher].reducer, Message::of(Teach{member, true}));
}

void Coordinator::take_learned(Context& context, const Learned& learned) {
  if (phase_ != Phase::kTraining || stopping_) return;
  if (learned.complete) {
    teachers_.erase(member_of(learned.replica));
    return let_waiting_leave(context);
  }
  const auto learner = learners_.find(member_of(learned.replica));
  if (learner == learners_.end()) return;
  learner->second.steps[learned.replica] = learned.steps;
  if (!may_join(learner->first)) return;
  if (!membership_.change()) changing_since_ = context.now();
  admit_learners(context);
  halt(context);
}

void Coordinator::take_too_slow(Context& context, std::uint32_t member, std::string_view teacher) {
  const auto learner = learners_.find(member);
  const bool is_so =
      learner != learners_.end() && options_.places[learner->second.teacher].reducer == teacher;
  if (!is_so) return;
  expel(context, member,
        {ErrorKind::kLostPeers,
         fmt::format("{} learns more slowly than the run makes steps, and more than cluster.replay "
                     "of their sums were waiting for it; join again from a faster machine, or over "
                     "a faster line",
                     options_.places[member].node)});
}

// All of its replicas have shown that they apply a step as the others do, or have a state and no
// steps are made that they could show it by.
bool Coordinator::may_join(std::uint32_t member) const {
  if (membership_.participants().contains(member)) return false;
  const auto& steps = learners_.at(member).steps;
  const auto has_shown = [&](const auto& each) {
    return membership_.is_short() || each.second >= kProvenSteps;
  };
  return steps.size() == options_.membership.replicas_per_member &&
         std::all_of(steps.begin(), steps.end(), has_shown);
}

void Coordinator::admit_learners(Context& context) {
  for (const auto& [member, about] : learners_) {
    if (!may_join(member)) continue;
    membership_.admit(member);
    context.log().info(fmt::format("{} has learned", options_.places[member].node));
  }
}

// All that are left have halted. Until others join, if any can.
void Coordinator::wait_for_members(Context& context) {
  const auto here = membership_.participants();
  bool may_come = false;
  for (std::uint32_t member = 0; member < options_.places.size(); ++member) {
    may_come = may_come || (!lost_.contains(member) && !here.contains(member));
  }
  const std::string what =
      fmt::format("{} of at least {} members (cluster.failure.min_members) are left", here.size(),
                  options_.membership.min_members);
  if (!may_come) {
    return stop_training(
        context,
        Error{ErrorKind::kLostPeers,
              what + " and every place of the run has been taken; go on with --resume, and "
                     "with a higher cluster.joiners or cluster.failure.restart"});
  }
  if (std::exchange(told_short_, true)) return;
  context.log().warning(what + "; waiting for others to join");
}

void Coordinator::take_pace(Context& context, const Pace& pace) {
  const std::vector<std::uint64_t>& weights = membership_.weights();
  // It would begin with the next iteration but one.
  const bool is_late = options_.iterations > 0 && pace.iteration + 2 >= options_.iterations;
  const bool counts = options_.shares_anew && phase_ == Phase::kTraining && !stopping_ &&
                      !is_late && pace.replica < weights.size() && pace.seconds > 0.0;
  if (!counts) return;
  balancer_.measure(pace.replica, static_cast<double>(pace.micro_batches), pace.seconds);
  if (membership_.change()) return;
  std::vector<bool> present;
  for (std::uint32_t replica = 0; replica < weights.size(); ++replica) {
    present.push_back(membership_.present().contains(member_of(replica)));
  }
  const View& view = membership_.view();
  const auto& owners = view.later.empty() ? view.owners : view.later.back().owners;
  auto better = balancer_.judge(owners, weights, present);
  if (!better) return;
  shares_anew_ = fmt::format("an iteration takes {:.3g} s and would take {:.3g} s",
                             better->seconds_now, better->seconds_then);
  context.log().info("sharing out micro-batches anew: " + shares_anew_);
  changing_since_ = context.now();
  membership_.share_anew(std::move(better->weights));
  halt(context);
}

void Coordinator::halt(Context& context) {
  for (const std::uint32_t member : membership_.participants()) {
    context.send_control(options_.places[member].reducer, Message::of(Halt{*membership_.change()}));
  }
}

// It has cost the others nothing; what it was taught nobody needs to send any more.
void Coordinator::lose_learner(Context& context, std::uint32_t member) {
  const Learner learner = learners_.at(member);
  learners_.erase(member);
  if (phase_ != Phase::kTraining || stopping_) return;
  context.send_control(options_.places[learner.teacher].reducer, Message::of(Teach{member, false}));
  if (membership_.lose(member) && membership_.change()) halt(context);
}

void Coordinator::expel(Context& context, std::uint32_t member, const Error& error) {
  context.send_control(options_.places[member].node, Message::of(Expelled{error}));
  lose_member(context, member, error);
}

// Known to who takes this one's place before anybody is in it.
void Coordinator::tell_view(Context& context, RunOutcome::ViewChange& change) {
  change.id = text_of(change.view.id);
  change.first_step = change.view.first_step;
  if (options_.time_of_day) change.time = options_.time_of_day();
  for (const std::uint32_t member : change.view.ring) {
    change.members.push_back(options_.places[member].node);
  }
  if (options_.on_view) options_.on_view(change);
  const auto shared = std::make_shared<const View>(change.view);
  for (const std::uint32_t member : change.view.ring) {
    context.send_control(options_.places[member].reducer, Message::of(ViewMessage{shared}));
  }
}

void Coordinator::take_halted(Context& context, const Halted& halted, std::string_view reducer) {
  const auto member = member_of_reducer(reducer);
  if (!member) return;
  if (phase_ == Phase::kReturning) return take_report(context, halted, *member);
  if (phase_ != Phase::kTraining || stopping_) return;
  const View& view = membership_.view();
  const auto teacher = teachers_.find(*member);
  const bool is_cut_off = view.is_new(*member) && halted.next_step < view.first_step &&
                          teacher != teachers_.end() && lost_.contains(teacher->second);
  if (is_cut_off) {
    return expel(
        context, *member,
        {ErrorKind::kLostPeers,
         fmt::format("{} lacks what {} was sending it, which is lost; join again",
                     options_.places[*member].node, options_.places[teacher->second].node)});
  }
  // Of the first View it has not heard, nor anybody made a step in it without it.
  const bool begins_late = halted.view == nullptr && halted.next_step == 0 &&
                           !view.is_new(*member) && view.first_step == options_.first_step;
  const std::uint64_t next_step = begins_late ? view.first_step : halted.next_step;
  if (halted.change == membership_.change()) {
    most_kept_ = std::max(most_kept_, halted.kept_bytes);
  }
  const auto answer = membership_.halted(*member, halted.change, next_step);
  if (!answer.ok()) return stop_training(context, answer.error());
  take_answer(context, *answer);
}

void Coordinator::take_answer(Context& context, const pipeline::Membership::Answer& answer) {
  for (const std::uint32_t each : answer.left_behind) {
    expel(
        context, each,
        {ErrorKind::kLostPeers, fmt::format("{} lacks more than the others can give it; join again",
                                            options_.places[each].node)});
  }
  if (!answer.view) {
    if (membership_.is_short() && membership_.unheard().empty()) wait_for_members(context);
    return;
  }
  told_short_ = false;
  RunOutcome::ViewChange change;
  change.view = *answer.view;
  change.causes = std::exchange(causes_, {});
  change.shared_anew = std::exchange(shares_anew_, {});
  change.taken_over = answer.taken_over;
  change.kept_bytes = std::exchange(most_kept_, 0);
  for (const std::uint32_t each : change.view.learners) {
    const auto learner = learners_.find(each);
    if (learner == learners_.end()) continue;
    change.joined.push_back(options_.places[each].node);
    context.send_control("monitor",
                         Message::of(NodeChange{change.joined.back(), {}, 0, {}, "running", {}}));
    teachers_[each] = learner->second.teacher;
    learners_.erase(learner);
    for (std::uint32_t i = 0; i < options_.membership.replicas_per_member; ++i) {
      training_.insert(each * options_.membership.replicas_per_member + i);
    }
  }
  change.halted_seconds = std::chrono::duration<double>(context.now() - changing_since_).count();
  tell_view(context, change);
  if (untold_from_) {
    const std::string leader = fmt::format("replica.{}", leading_replica());
    context.send_control(leader, Message::of(TellSteps{*std::exchange(untold_from_, {})}));
    context.send_control(leader, Message::of(CheckpointRequest{}));
  }
  const std::uint64_t step = change.view.first_step;
  context.log().info(fmt::format("View {}: {} make the steps from {} on", change.id,
                                 fmt::join(change.members, ", "), step));
  const telemetry::ViewFacts& facts = change;
  context.send_control("monitor", Message::of(EventMetrics{{0.0, step, facts}}));
  outcome_->changes.push_back(std::move(change));
}

}  // namespace troupe::actors

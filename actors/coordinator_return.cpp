// The part of the Coordinator that takes the place of one that was lost with its head.

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

void Coordinator::return_to(Context& context) {
  phase_ = Phase::kReturning;
  changing_since_ = context.now();
  return_by_ = context.now() + options_.return_within;
  untold_from_ = options_.predecessor->untold_step;
  causes_.emplace_back("the head was lost; another process has taken its place");
}

// Who comes for the first time waits until the others go on.
void Coordinator::ask_returned(Context& context, std::uint32_t member) {
  if (!options_.predecessor->taken.contains(member)) return;
  context.send_control(options_.places[member].reducer,
                       Message::of(Halt{{options_.membership.term, 1}}));
}

void Coordinator::take_report(Context& context, const Halted& report, std::uint32_t member) {
  reports_[member] = report;
  look_for_returned(context);
}

void Coordinator::look_for_returned(Context& context) {
  const View* newest = nullptr;
  for (const auto& [member, report] : reports_) {
    if (report.view != nullptr && (newest == nullptr || report.view->id > newest->id)) {
      newest = report.view.get();
    }
  }
  std::set<std::uint32_t> awaited = options_.predecessor->expected;
  if (newest != nullptr) awaited.insert(newest->ring.begin(), newest->ring.end());
  std::erase_if(awaited, [&](std::uint32_t member) {
    return lost_.contains(member) || reports_.contains(member);
  });
  if (!awaited.empty() && context.now() < return_by_) return;
  if (newest != nullptr) return go_on_from(context, *newest);
  if (options_.predecessor->made_all) {
    outcome_->state = options_.state;
    outcome_->stopped = stop_asked_;
    return save(context);
  }
  // The head may have been lost just before it told of the first View.
  const std::vector<std::uint32_t>& ring = options_.membership.ring;
  const bool all_here = std::all_of(ring.begin(), ring.end(), [&](std::uint32_t member) {
    return reports_.contains(member) && !lost_.contains(member);
  });
  if (all_here) {
    absent_.clear();
    causes_.clear();
    begin(context);
    return take_deferred(context);
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.return_within);
  if (!error_) {
    const std::string why =
        awaited.empty() ? "all of them were lost with the head or after it"
                        : fmt::format("none did within {} s of its restart", seconds.count());
    error_ = Error{ErrorKind::kLostPeers,
                   fmt::format("no member that trains has come back to the head: {}", why)};
  }
  end_run(context);
}

void Coordinator::go_on_from(Context& context, const View& view) {
  if (const auto ours = membership_.go_on_from(view); !ours.ok()) {
    error_ = ours.error();
    return end_run(context);
  }
  phase_ = Phase::kTraining;
  absent_.clear();
  training_.clear();
  std::set<std::uint32_t> missing;
  for (const std::uint32_t member : view.ring) {
    for (std::uint32_t i = 0; i < options_.membership.replicas_per_member; ++i) {
      training_.insert(member * options_.membership.replicas_per_member + i);
    }
    if (lost_.contains(member) || !reports_.contains(member)) missing.insert(member);
  }
  // Who was sending a newcomer what it lacks is not known any more.
  for (const std::uint32_t member : view.learners) {
    const auto report = reports_.find(member);
    if (report != reports_.end() && report->second.next_step < view.first_step) {
      missing.insert(member);
    }
  }
  begin_late(context, view);
  part_from_others(context, view);
  for (const std::uint32_t member : missing) {
    const bool lags = reports_.contains(member) && !lost_.contains(member);
    const Error error{ErrorKind::kLostPeers,
                      options_.places[member].node +
                          (lags ? " lacks steps that were on their way when the head was lost; "
                                  "join again"
                                : " has not come back to the head since its restart")};
    if (lost_.contains(member)) {
      go_on_without(context, member, error);
    } else if (here_.contains(member)) {
      expel(context, member, error);
    } else {
      lose_member(context, member, error);
    }
  }
  // Else those that are left are asked again.
  for (const auto& [member, report] : std::exchange(reports_, {})) {
    if (missing.empty()) take_halted(context, report, options_.places[member].reducer);
  }
  take_deferred(context);
  for (const std::uint32_t member : here_) {
    const bool is_new = !membership_.participants().contains(member) && !lost_.contains(member);
    if (is_new && phase_ == Phase::kTraining && !stopping_) teach(context, member);
  }
}

void Coordinator::take_deferred(Context& context) {
  if (stop_asked_) stop_training(context, std::nullopt);
  for (Message& message : std::exchange(deferred_, {})) receive(context, std::move(message));
}

// Of the first View some may not have been told; without them nobody has made a step.
void Coordinator::begin_late(Context& context, const View& view) {
  if (options_.first_step != view.first_step) return;
  for (const auto& [member, report] : reports_) {
    if (report.view != nullptr || !view.has(member) || view.is_new(member)) continue;
    for (std::uint32_t i = 0; i < options_.membership.replicas_per_member; ++i) {
      const std::uint32_t replica = member * options_.membership.replicas_per_member + i;
      context.send_control(fmt::format("replica.{}", replica),
                           Message::of(BeginTraining{options_.state}));
    }
  }
}

// Who was in no View cannot be known to have learned anything, and has to join again.
void Coordinator::part_from_others(Context& context, const View& view) {
  for (const std::uint32_t member : options_.predecessor->taken) {
    if (view.has(member) || lost_.contains(member)) continue;
    for (const std::uint32_t each : view.ring) {
      context.send_control(options_.places[each].reducer, Message::of(Teach{member, false}));
    }
    if (!here_.contains(member)) {
      lost_.insert(member);
      continue;
    }
    expel(context, member,
          {ErrorKind::kLostPeers,
           fmt::format("{} was no member yet when the head was lost; join again",
                       options_.places[member].node)});
  }
}

}  // namespace troupe::actors

#include "pipeline/steps/roster.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/nearest_members.h"
#include "pipeline/steps/places.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {
using runtime::Error;
using runtime::ErrorKind;
using Member = Roster::Member;
using Phase = Roster::Phase;

Error lost_peers(std::string text) { return {ErrorKind::kLostPeers, std::move(text)}; }

void expel(Roster& roster, std::uint32_t member, const Error& error) {
  roster.actions.push_back(SendExpelled{member, error});
  lose(roster, member, error, "dead");
}

void teach(Roster& roster, std::uint32_t member) {
  const std::uint32_t teacher = nearest_teacher(roster, member);
  put_in_ring(roster, member);
  Member& pupil = roster.members[member];
  pupil.teacher = teacher;
  pupil.awaits_view = true;
  pupil.steps.clear();
  roster.actions.push_back(LogLine{false, fmt::format("{} is here and learns from {}",
                                                      roster.name(member), roster.name(teacher))});
  roster.actions.push_back(SendTeach{teacher, member, true});
}

void admit_newcomers(Roster& roster) {
  for (std::uint32_t member = 0; member < roster.members.size(); ++member) {
    if (!roster.may_join(member)) continue;
    roster.membership.admit(member);
    roster.actions.push_back(LogLine{false, fmt::format("{} has learned", roster.name(member))});
  }
}

// A pupil's loss has cost the others nothing. Nobody needs to send it anything any more.
void lose_newcomer(Roster& roster, std::uint32_t member) {
  Member& pupil = roster.members[member];
  pupil.awaits_view = false;
  if (roster.phase != Phase::kTraining) return;
  roster.actions.push_back(SendTeach{*pupil.teacher, member, false});
  if (roster.membership.lose(member) && roster.membership.change()) halt(roster);
}

// Nobody knows what was on its way to them.
void expel_pupils(Roster& roster, std::uint32_t teacher) {
  std::vector<std::uint32_t> pupils;
  for (std::uint32_t each = 0; each < roster.members.size(); ++each) {
    const Member& one = roster.members[each];
    if (one.awaits_view && one.teacher == teacher) pupils.push_back(each);
  }
  for (const std::uint32_t pupil : pupils) {
    expel(roster, pupil,
          lost_peers(fmt::format("{} learned from {}, which is lost; join again",
                                 roster.name(pupil), roster.name(teacher))));
  }
}

// The member's replicas report nothing any more; the others have its steps, or make them together.
// When it was the last that makes steps, training stops. Else the others halt for a new View,
// unless all are in one without it.
void go_on_without(Roster& roster, std::uint32_t member, const Error& error) {
  const auto is_its_own = [&](std::uint32_t each) { return roster.member_of(each) == member; };
  const bool trained = std::any_of(roster.training.begin(), roster.training.end(), is_its_own);
  if (roster.is_last(member) && trained) stop(roster, error);
  const bool was_changing = roster.membership.change().has_value();
  const auto teacher = roster.members[member].teacher;
  if (teacher && !roster.is_lost(*teacher)) {
    roster.actions.push_back(SendTeach{*teacher, member, false});
  }
  const bool is_missed = roster.membership.lose(member);
  std::erase_if(roster.training, is_its_own);
  if (roster.training.empty()) {
    roster.phase = Phase::kOver;
    roster.actions.push_back(SaveState{});
    return;
  }
  if (roster.phase != Phase::kTraining) return;
  if (!is_missed) return;
  if (!was_changing) roster.changing_since = roster.now;
  roster.causes.push_back(error.message);
  roster.actions.push_back(
      LogLine{true, fmt::format("going on without {}: {}", roster.name(member), error.message)});
  expel_pupils(roster, member);
  admit_newcomers(roster);
  halt(roster);
}

// All that are left have halted. They wait for others to join, if any place is left.
void wait_for_members(Roster& roster) {
  if (!roster.membership.is_short() || !roster.membership.not_halted().empty()) return;
  const auto here = roster.membership.participants();
  bool may_come = false;
  for (std::uint32_t member = 0; member < roster.members.size(); ++member) {
    if (roster.is_lost(member) && !roster.is_reused(member)) continue;
    may_come = may_come || !here.contains(member);
  }
  const std::string what =
      fmt::format("{} of at least {} members (cluster.failure.min_members) are left", here.size(),
                  roster.options.membership.min_members);
  if (!may_come) {
    stop(roster, lost_peers(what + " and every member slot of the run has been taken; go on with "
                                   "--resume, and with a higher cluster.joiners or "
                                   "cluster.failure.restart"));
  } else if (!std::exchange(roster.told_short, true)) {
    roster.actions.push_back(LogLine{true, what + "; waiting for others to join"});
  }
}

// All have halted, and the next View is known; or some of them lack more than the others can give.
void take_answer(Roster& roster, Membership::Answer answer) {
  for (const std::uint32_t each : answer.left_behind) {
    expel(roster, each,
          lost_peers(fmt::format("{} lacks more than the others can give it; join again",
                                 roster.name(each))));
  }
  if (!answer.view) return wait_for_members(roster);
  roster.told_short = false;
  TellView told;
  told.view = std::move(*answer.view);
  told.causes = std::exchange(roster.causes, {});
  told.shared_anew = std::exchange(roster.shared_anew, {});
  told.taken_over = answer.taken_over;
  told.kept_bytes = std::exchange(roster.most_kept, 0);
  told.halted_seconds = runtime::seconds(roster.now - roster.changing_since);
  for (const std::uint32_t each : told.view.newcomers) {
    if (!std::exchange(roster.members[each].awaits_view, false)) continue;
    told.joined.push_back(each);
    roster.training.merge(roster.replicas_of(each));
  }
  told.parted = answer.parted;
  if (told.parted) {
    const std::string why = why_left(roster, *told.parted).message;
    told.causes.push_back(why);
    roster.actions.push_back(
        LogLine{false, fmt::format("going on without {}: {}", roster.name(*told.parted), why)});
  }
  for (const std::uint32_t each : told.view.ring) roster.members[each].parts = false;
  roster.actions.push_back(std::move(told));
  release_parted(roster);
}

void settle_quarrels(Roster& roster) {
  const auto verdict =
      roster.quarrels.settle([&](std::uint32_t member) { return roster.is_lost(member); },
                             [&](std::uint32_t member) {
                               return !roster.membership.present().contains(member) ||
                                      roster.members[member].teacher.has_value();
                             },
                             roster.now);
  if (!verdict) return;
  const Quarrels::Quarrel& quarrel = verdict->quarrel;
  expel(roster, verdict->leaves,
        {quarrel.error.kind, fmt::format("{} has lost {}: {}", roster.name(quarrel.from),
                                         roster.name(quarrel.about), quarrel.error.message)});
}

// The first View was not told to all of them before the head was lost. Without these nobody can
// have made a step in it.
void begin_late(Roster& roster, const View& view, const Reports& reports) {
  if (roster.options.first_step != view.first_step) return;
  for (const auto& [member, report] : reports) {
    if (report.view != nullptr || !view.has(member) || view.is_new(member)) continue;
    for (const std::uint32_t replica : roster.replicas_of(member)) {
      roster.actions.push_back(SendBegin{replica});
    }
  }
}

// Nobody knows which of the View's members taught it.
void forget_in(Roster& roster, const View& view, std::uint32_t pupil) {
  for (const std::uint32_t each : view.ring) {
    roster.actions.push_back(SendTeach{each, pupil, false});
  }
}

// A member that was in no View may have learned anything or nothing, so it has to join again.
void part_from_others(Roster& roster, const View& view, const std::set<std::uint32_t>& taken) {
  for (const std::uint32_t member : taken) {
    if (view.has(member) || roster.is_lost(member)) continue;
    forget_in(roster, view, member);
    if (!roster.is_here(member)) {
      roster.members[member].state = Member::State::kLost;
      continue;
    }
    expel(roster, member,
          lost_peers(fmt::format("{} was in no View of the run when the head was lost; join again",
                                 roster.name(member))));
  }
}

// Members of the View that cannot go on in it: they are gone, or are newcomers that lack lessons.
// Nobody knows any more whether one lacks only what all would give it.
std::set<std::uint32_t> missing_of(const Roster& roster, const View& view, const Reports& reports) {
  std::set<std::uint32_t> missing;
  for (const std::uint32_t member : view.ring) {
    const auto report = reports.find(member);
    // A process that is in no View may have come in the place of the one that was in this.
    const bool is_another =
        report != reports.end() && report->second.view == nullptr && roster.is_reused(member);
    if (roster.is_lost(member) || report == reports.end() || is_another) missing.insert(member);
  }
  for (const std::uint32_t member : view.newcomers) {
    const auto report = reports.find(member);
    if (report != reports.end() && report->second.next_step < view.first_step) {
      missing.insert(member);
    }
  }
  return missing;
}

}  // namespace

Roster::Roster(RosterOptions of_run)
    : options(std::move(of_run)),
      nodes(options.names),
      membership(options.membership),
      members(options.names.size()),
      quarrels(options.parting_grace, options.accused_grace),
      balancer(options.membership.weights.size(), options.membership.parts) {
  const std::uint32_t replicas = options.membership.replicas_per_member;
  CHECK(members.size() * replicas == options.membership.weights.size(), "a place for each member");
  for (const std::uint32_t member : options.membership.ring) training.merge(replicas_of(member));
}

std::optional<std::uint32_t> Roster::member_at(std::string_view name) const {
  const auto found = std::find(options.names.begin(), options.names.end(), name);
  if (found == options.names.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - options.names.begin());
}

bool Roster::may_join(std::uint32_t member) const {
  const Member& pupil = members[member];
  if (!pupil.awaits_view || membership.participants().contains(member)) return false;
  const auto has_shown = [&](const auto& each) {
    return membership.is_short() || each.second >= options.proven_steps;
  };
  return pupil.steps.size() == options.membership.replicas_per_member &&
         std::all_of(pupil.steps.begin(), pupil.steps.end(), has_shown);
}

std::set<std::uint32_t> Roster::replicas_of(std::uint32_t member) const {
  std::set<std::uint32_t> replicas;
  const std::uint32_t each = options.membership.replicas_per_member;
  for (std::uint32_t i = 0; i < each; ++i) replicas.insert(member * each + i);
  return replicas;
}

std::vector<std::uint32_t> Roster::absent() const {
  std::set<std::uint32_t> away;
  for (const std::uint32_t member : options.membership.ring) {
    const bool is_awaited = members[member].state == Member::State::kAwaited;
    if (is_awaited && !name(member).empty()) away.insert(member);
  }
  return {away.begin(), away.end()};
}

void halt(Roster& roster) {
  for (const std::uint32_t member : roster.membership.halting()) {
    roster.actions.push_back(
        SendHalt{member, *roster.membership.change(), roster.membership.is_planned()});
  }
}

void begin(Roster& roster) {
  roster.phase = Phase::kTraining;
  for (const std::uint32_t replica : roster.training) roster.actions.push_back(SendBegin{replica});
  TellView first;
  first.begins = true;
  first.view = roster.membership.begin(roster.options.first_step);
  roster.actions.push_back(std::move(first));
}

void arrive(Roster& roster, std::uint32_t member, const std::string& host) {
  roster.members[member].state = Member::State::kHere;
  roster.members[member].host = host;
  if (roster.phase == Phase::kTraining) teach(roster, member);
}

void lose(Roster& roster, std::uint32_t member, const Error& error, std::string_view state) {
  if (roster.is_lost(member)) return;
  const auto& ring = roster.options.membership.ring;
  const bool was_awaited = roster.is_here(member) || std::ranges::count(ring, member) > 0;
  roster.members[member].state = Member::State::kLost;
  roster.actions.push_back(TellLoss{member, std::string(state), error});
  const bool trains = roster.phase == Phase::kTraining || roster.phase == Phase::kStopping;
  if (roster.members[member].awaits_view) {
    roster.actions.push_back(LogLine{
        state == "dead", fmt::format("{} does not join: {}", roster.name(member), error.message)});
    lose_newcomer(roster, member);
  } else if (roster.phase == Phase::kGathering) {
    if (was_awaited) stop(roster, error);
  } else if (trains &&
             (roster.membership.present().contains(member) || roster.members[member].parts)) {
    go_on_without(roster, member, error);
  }
}

void note_learned(Roster& roster, std::uint32_t replica, std::uint64_t steps, bool complete) {
  if (roster.phase != Phase::kTraining) return;
  const std::uint32_t member = roster.member_of(replica);
  Member& pupil = roster.members[member];
  // With all that its first View lacked it needs its teacher no more. Members that had to stay
  // because they alone knew this may leave.
  if (complete) {
    if (!pupil.awaits_view) pupil.teacher.reset();
    return let_waiting_leave(roster);
  }
  if (!pupil.awaits_view) return;
  pupil.steps[replica] = steps;
  if (!roster.may_join(member)) return;
  if (!roster.membership.change()) roster.changing_since = roster.now;
  admit_newcomers(roster);
  halt(roster);
}

void note_too_slow(Roster& roster, std::uint32_t member, std::uint32_t process,
                   std::optional<std::uint32_t> teacher) {
  const bool is_known = teacher && member < roster.members.size();
  if (!is_known || roster.members[member].process != process ||
      !roster.members[member].awaits_view || roster.members[member].teacher != teacher) {
    return;
  }
  expel(roster, member,
        lost_peers(fmt::format(
            "{} learns more slowly than the run makes steps, and more than cluster.replay of their "
            "sums were waiting for it; join again from a faster machine, or over a faster line",
            roster.name(member))));
}

void note_pace(Roster& roster, std::uint32_t replica, std::uint64_t iteration, double micro_batches,
               double seconds) {
  const std::vector<std::uint64_t>& weights = roster.membership.weights().all();
  // Shares change with the next iteration but one.
  const bool is_late = roster.options.iterations > 0 && iteration + 2 >= roster.options.iterations;
  const bool counts = roster.options.shares_anew && roster.phase == Phase::kTraining && !is_late &&
                      replica < weights.size() && seconds > 0.0;
  if (!counts) return;
  roster.balancer.measure(replica, micro_batches, seconds);
  if (roster.membership.change() || !roster.membership.weights().relieved().empty()) return;
  const View& view = roster.membership.view();
  const auto& owners = view.later.empty() ? view.owners : view.later.back().owners;
  auto better = roster.balancer.judge(owners, weights, roster.membership.replicas_by_site());
  if (!better) return;
  roster.shared_anew = fmt::format("an iteration takes {:.3g} s and would take {:.3g} s",
                                   better->seconds_now, better->seconds_then);
  roster.actions.push_back(LogLine{false, "sharing out micro-batches anew: " + roster.shared_anew});
  roster.changing_since = roster.now;
  roster.membership.share_anew(std::move(better->weights));
  halt(roster);
}

// A member has halted, and says which step it would make next.
void note_halted(Roster& roster, std::uint32_t member, const Roster::Report& report) {
  if (roster.phase != Phase::kTraining) return;
  const View& view = roster.membership.view();
  const auto teacher = roster.members[member].teacher;
  const bool is_cut_off = roster.membership.still_learns(member, report.next_step) && teacher &&
                          roster.is_lost(*teacher);
  if (is_cut_off) {
    expel(roster, member,
          lost_peers(fmt::format("{} lacks what {} was sending it, which is lost; join again",
                                 roster.name(member), roster.name(*teacher))));
    return;
  }
  // It has not heard of the first View, and without it nobody has made a step in that.
  const bool begins_late = report.view == nullptr && report.next_step == 0 &&
                           !view.is_new(member) && view.first_step == roster.options.first_step;
  if (report.change == roster.membership.change()) {
    roster.most_kept = std::max(roster.most_kept, report.kept_bytes);
  }
  auto answer = begins_late ? roster.membership.halted(member, report.change, view.first_step)
                            : roster.membership.halted(member, report.change, report.next_step,
                                                       std::max(report.next_step, report.unbegun));
  if (!answer.ok()) return stop(roster, answer.error());
  take_answer(roster, std::move(*answer));
}

void note_failure(Roster& roster, std::optional<std::uint32_t> member,
                  std::optional<std::uint32_t> replica, const Error& error) {
  const bool trains = roster.phase == Phase::kTraining || roster.phase == Phase::kStopping;
  // The failure of a member that learns has cost nobody anything.
  if (trains && member && !roster.membership.present().contains(*member)) {
    expel(roster, *member, error);
    return;
  }
  stop(roster, error);
  if (replica) note_replica_end(roster, *replica);
}

void note_replica_end(Roster& roster, std::uint32_t replica) {
  if (roster.training.erase(replica) == 0 || !roster.training.empty()) return;
  roster.phase = Phase::kOver;
  roster.actions.push_back(SaveState{});
}

void note_last_step(Roster& roster, std::uint64_t step) {
  auto answer = roster.membership.end_at(step);
  if (roster.phase == Phase::kTraining) take_answer(roster, std::move(answer));
}

void look_after(Roster& roster) {
  // Those that could still have come may be lost by now.
  wait_for_members(roster);
  settle_quarrels(roster);
  let_waiting_leave(roster);
  await_others(roster);
}

// The effect depends on the phase: replicas that train are told to stop, a run that gathers its
// members ends at once, and a head whose members are on their way back remembers the wish.
void stop(Roster& roster, std::optional<Error> error) {
  StopTrainingOf stops{std::move(error), false, {}};
  const bool gathers = roster.phase == Phase::kGathering;
  if (gathers || roster.phase == Phase::kTraining) stops.stops = true;
  if (roster.phase == Phase::kReturning) roster.stop_asked = true;
  if (roster.phase == Phase::kTraining) {
    roster.phase = Phase::kStopping;
    stops.replicas.assign(roster.training.begin(), roster.training.end());
  }
  roster.actions.push_back(std::move(stops));
  if (!gathers) return;
  roster.phase = Phase::kOver;
  roster.actions.push_back(EndRun{});
}

const View* newest_view(const Reports& reports) {
  const View* newest = nullptr;
  for (const auto& [member, report] : reports) {
    const View* const view = report.view.get();
    // A newcomer takes its first View before the others are as far, and no step is made without it.
    const bool lacks =
        view != nullptr && view->is_new(member) && report.next_step < view->first_step;
    if (view != nullptr && !lacks && (newest == nullptr || view->id > newest->id)) newest = view;
  }
  return newest;
}

void go_on_from(Roster& roster, const View& view, const Reports& reports,
                const std::set<std::uint32_t>& taken) {
  if (const auto ours = roster.membership.go_on_from(view); !ours.ok()) {
    roster.actions.push_back(StopTrainingOf{ours.error(), false, {}});
    roster.actions.push_back(EndRun{});
    return;
  }
  for (const std::uint32_t member : view.ring) put_in_ring(roster, member);
  roster.phase = Phase::kTraining;
  roster.training.clear();
  for (const std::uint32_t member : view.ring) roster.training.merge(roster.replicas_of(member));
  const std::set<std::uint32_t> missing = missing_of(roster, view, reports);
  for (const std::uint32_t member : view.newcomers) {
    if (missing.contains(member)) forget_in(roster, view, member);
  }
  begin_late(roster, view, reports);
  part_from_others(roster, view, taken);
  for (const std::uint32_t member : missing) {
    const bool lags = reports.contains(member) && !roster.is_lost(member);
    const Error error =
        lost_peers(roster.name(member) +
                   (lags ? " lacks steps that were on their way when the head was lost; join again"
                         : " has not come back to the head since its restart"));
    if (roster.is_lost(member)) {
      go_on_without(roster, member, error);
    } else if (roster.is_here(member)) {
      expel(roster, member, error);
    } else {
      lose(roster, member, error, "dead");
    }
  }
  // The reports answer the first change of the term. A missing member has begun another one, for
  // which all are asked again.
  for (const auto& [member, report] : reports) {
    if (missing.empty()) note_halted(roster, member, report);
  }
}

void teach_newcomers(Roster& roster) {
  const auto participants = roster.membership.participants();
  for (std::uint32_t member = 0; member < roster.members.size(); ++member) {
    const bool is_new = roster.is_here(member) && !participants.contains(member);
    if (is_new && roster.phase == Phase::kTraining) teach(roster, member);
  }
}

}  // namespace troupe::pipeline

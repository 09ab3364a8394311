#pragma once

// A Roster (pipeline/steps/roster.h) of a run that trains, and its actions in words.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "pipeline/steps/roster.h"

namespace troupe::pipeline {

using Lines = std::vector<std::string>;
inline const runtime::Error kDeath{runtime::ErrorKind::kLostPeers, "its connection closed"};

struct Words {
  std::string operator()(const SendHalt& halt) const {
    return fmt::format("halt {} for {}{}", halt.member, text_of(halt.change),
                       halt.planned ? " as planned" : "");
  }
  std::string operator()(const SendTeach& teach) const {
    return fmt::format("{} {} {}", teach.teacher, teach.begins ? "teaches" : "forgets",
                       teach.member);
  }
  std::string operator()(const SendBegin& begins) const {
    return fmt::format("begin {}", begins.replica);
  }
  std::string operator()(const SendExpelled& expelled) const {
    return fmt::format("expel {}: {}", expelled.member, expelled.error.message);
  }
  std::string operator()(const SendRelease& release) const {
    return fmt::format("release {}", release.member);
  }
  std::string operator()(const AwaitAnother& awaited) const {
    return fmt::format("process {} of {} may come", awaited.process, awaited.member);
  }
  std::string operator()(const TellLoss& loss) const {
    return fmt::format("{} is {}", loss.member, loss.state);
  }
  std::string operator()(const TellView& told) const {
    return fmt::format("View {} of {} from {}{}", text_of(told.view.id),
                       fmt::join(told.view.ring, " "), told.view.first_step,
                       told.parted ? fmt::format(" without {}", *told.parted) : "");
  }
  std::string operator()(const RefuseLeave& refused) const {
    return fmt::format("{} may not leave", refused.member);
  }
  std::string operator()(const StopTrainingOf& stops) const {
    return fmt::format("stop {}: {}", fmt::join(stops.replicas, " "),
                       stops.error ? stops.error->message : "");
  }
  std::string operator()(const SaveState&) const { return "save"; }
  std::string operator()(const EndRun&) const { return "end"; }
  std::string operator()(const LogLine&) const { return {}; }
};

// The actions that follow from the event, but for what goes into the log.
inline Lines after(Roster& roster, const std::function<void()>& event) {
  roster.actions.clear();
  event();
  Lines lines;
  for (const RosterAction& action : roster.actions) {
    if (!std::holds_alternative<LogLine>(action)) lines.push_back(std::visit(Words{}, action));
  }
  return lines;
}

// Members of one replica each, of which the last `newcomers` may join. The others are here and
// train from step 5 on, unless `begins` is false.
inline Roster run_of(std::uint32_t members, std::uint32_t newcomers = 0,
                     std::uint32_t min_members = 1, bool begins = true) {
  RosterOptions options;
  options.membership.ring.clear();
  for (std::uint32_t i = 0; i < members; ++i) {
    if (i + newcomers < members) options.membership.ring.push_back(i);
    options.names.push_back(fmt::format("member.{}", i));
  }
  options.membership.weights.assign(members, 1);
  options.membership.micro_batches = 6;
  options.membership.min_members = min_members;
  options.first_step = 5;
  options.parting_grace = options.accused_grace = std::chrono::seconds(2);
  Roster roster(options);
  if (!begins) return roster;
  for (const std::uint32_t member : options.membership.ring) arrive(roster, member);
  begin(roster);
  return roster;
}

inline Lines halted(Roster& roster, std::uint32_t member, std::uint64_t next_step) {
  const auto change = roster.membership.change().value_or(ViewId{});
  return after(roster, [&] {
    note_halted(
        roster, member,
        {change, next_step, next_step, 0, std::make_shared<const View>(roster.membership.view())});
  });
}

// Member 2 of 3 comes, learns and is admitted; the others make step 8 next.
inline Roster run_with_newcomer() {
  Roster roster = run_of(3, 1);
  arrive(roster, 2);
  note_learned(roster, 2, 0, false);
  note_learned(roster, 2, 2, false);
  for (const std::uint32_t member : {0U, 1U}) (void)halted(roster, member, 8);
  (void)halted(roster, 2, 7);
  return roster;
}

}  // namespace troupe::pipeline

#include "actors/drains.h"

#include <fmt/format.h>

#include "config/plan.h"

namespace troupe::actors {

using pipeline::Roster;
using runtime::Error;
using runtime::ErrorKind;

std::optional<Error> objection_to_drain(const Roster& roster, const std::string& node) {
  const auto usage = [](std::string text) { return Error{ErrorKind::kUsage, std::move(text)}; };
  if (roster.phase > Roster::Phase::kTraining) {
    return Error{ErrorKind::kLostPeers, "the run is ending, and its members with it"};
  }
  if (roster.phase == Roster::Phase::kReturning) {
    return Error{ErrorKind::kLostPeers,
                 "the head has just been restarted, and its members are on their way back; try "
                 "again in a moment"};
  }
  if (node == config::kHeadNode) {
    return usage(
        fmt::format("{} leads the run, which would end without it; SIGTERM to it ends the run and "
                    "saves its state",
                    node));
  }
  const auto member = node.empty() ? std::nullopt : roster.member_at(node);
  const std::vector<std::string> members = roster.present_names();
  if (!member) {
    return usage(
        fmt::format("no member of the run has the name '{}'; those that make its steps are {}",
                    node, fmt::join(members, ", ")));
  }
  if (roster.is_lost(*member)) return usage(fmt::format("{} has already left the run", node));
  if (roster.phase == Roster::Phase::kGathering) {
    return usage(
        fmt::format("the run has not begun, and cannot without {}; stop it, or try again when it "
                    "trains",
                    node));
  }
  if (!roster.is_here(*member)) {
    return usage(
        fmt::format("nobody has joined the run as {} yet; those that make its steps are {}", node,
                    fmt::join(members, ", ")));
  }
  if (roster.is_last(*member)) return objection_to_last(node);
  return std::nullopt;
}

Error objection_to_last(const std::string& node) {
  return {ErrorKind::kUsage,
          fmt::format("{} is the last member that makes steps, and the run would end without it; "
                      "let another one join first, or end the run with SIGTERM to its head, which "
                      "saves its state",
                      node)};
}

}  // namespace troupe::actors

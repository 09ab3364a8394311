// The part of the Coordinator that is asked from outside to let a member leave (`troupe drain`).

#include <utility>

#include <fmt/format.h>

#include "actors/coordinator.h"
#include "config/cluster_plan.h"

namespace troupe::actors {

using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;

std::optional<Error> Coordinator::objection_to_drain(const std::string& node) const {
  const auto usage = [](std::string text) { return Error{ErrorKind::kUsage, std::move(text)}; };
  if (stopping_ || phase_ > Phase::kTraining) {
    return Error{ErrorKind::kLostPeers, "the run is ending, and its members with it"};
  }
  if (phase_ == Phase::kReturning) {
    return Error{ErrorKind::kLostPeers,
                 "the head has just been restarted, and its members are on their way back; try "
                 "again in a moment"};
  }
  std::vector<std::string> members;
  for (const std::uint32_t each : membership_.present()) {
    members.push_back(options_.places[each].node);
  }
  if (node == config::kHeadNode) {
    return usage(
        fmt::format("{} leads the run, which would end without it; SIGTERM to it ends the "
                    "run and saves its state",
                    node));
  }
  const auto member = node.empty() ? std::nullopt : member_at(node);
  if (!member) {
    return usage(
        fmt::format("no member of the run has the name '{}'; those that make its steps "
                    "are {}",
                    node, fmt::join(members, ", ")));
  }
  if (lost_.contains(*member)) return usage(fmt::format("{} has already left the run", node));
  if (phase_ == Phase::kGathering) {
    return usage(
        fmt::format("the run has not begun, and cannot without {}; stop it, or try again "
                    "when it trains",
                    node));
  }
  if (!here_.contains(*member)) {
    return usage(
        fmt::format("nobody has joined the run as {} yet; those that make its steps are "
                    "{}",
                    node, fmt::join(members, ", ")));
  }
  if (membership_.present() == std::set<std::uint32_t>{*member}) {
    return usage(
        fmt::format("{} is the last member that makes steps, and the run would end "
                    "without it; let another one join first, or end the run with SIGTERM "
                    "to its head, which saves its state",
                    node));
  }
  return std::nullopt;
}

void Coordinator::drain(Context& context, const runtime::DrainAsked& asked) {
  const auto member = member_at(asked.node);
  // Whoever asks twice waits twice for the same.
  if (member && drains_.contains(*member)) {
    drains_.emplace(*member, asked.reply);
    return;
  }
  if (auto objection = objection_to_drain(asked.node)) {
    asked.reply->answer(std::move(*objection));
    return;
  }
  const std::string why = fmt::format("{} has asked for it (troupe drain)", asked.by);
  context.log().info(fmt::format("{} is let go: {}", asked.node, why));
  drains_.emplace(*member, asked.reply);
  let_leave(context, *member, why);
}

void Coordinator::take_drains(Context& context, const runtime::Message& message) {
  const auto tell = [this](const std::string& node, const runtime::Result<void>& answer) {
    const auto member = member_at(node);
    if (!member) return;
    const auto [first, last] = drains_.equal_range(*member);
    for (auto each = first; each != last; ++each) each->second->answer(answer);
    drains_.erase(first, last);
  };
  if (const auto* asked = message.as<runtime::DrainAsked>()) {
    drain(context, *asked);
  } else if (const auto* left = message.as<runtime::PeerLeft>()) {
    tell(left->node, {});
  } else if (const auto* lost = message.as<runtime::PeerLost>()) {
    tell(lost->node, Error{ErrorKind::kLostPeers,
                           fmt::format("{} was lost while it left: {}; the others go on without it",
                                       lost->node, lost->error.message)});
  }
}

}  // namespace troupe::actors

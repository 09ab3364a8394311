// The part of the Coordinator that lets members leave, and is asked to from outside (`troupe
// drain`).

#include <algorithm>
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
  if (is_last(*member)) return objection_to_last(*member);
  return std::nullopt;
}

Error Coordinator::objection_to_last(std::uint32_t member) const {
  return {ErrorKind::kUsage,
          fmt::format("{} is the last member that makes steps, and the run would end "
                      "without it; let another one join first, or end the run with SIGTERM "
                      "to its head, which saves its state",
                      options_.places[member].node)};
}

bool Coordinator::is_last(std::uint32_t member) const {
  return membership_.present() == std::set<std::uint32_t>{member};
}

// All others are in the View, and lack of the steps before it what is on its way to them.
bool Coordinator::alone_knows(std::uint32_t member) const {
  const std::set<std::uint32_t>& present = membership_.present();
  return std::all_of(present.begin(), present.end(), [&](std::uint32_t each) {
    return each == member || teachers_.contains(each);
  });
}

void Coordinator::let_leave(Context& context, std::uint32_t member, const std::string& why) {
  const std::string& node = options_.places[member].node;
  const Error error{ErrorKind::kLostPeers,
                    fmt::format("{} has left the run: it was told to end", node)};
  // In a run that ends all are released in the end.
  if (stopping_ || phase_ > Phase::kTraining || lost_.contains(member)) return;
  if (phase_ == Phase::kGathering || is_last(member)) return stop_training(context, error);
  if (membership_.present().contains(member) && alone_knows(member)) {
    context.log().info(
        fmt::format("{} stays until one of the others has the steps that it teaches them", node));
    // Who wants it itself does not depend on others any more, who may have asked for it as well.
    const auto [waiting, added] = leaving_.try_emplace(member, why);
    if (!added && why.empty()) waiting->second.clear();
    return;
  }
  release(context, member, why);
  lose_member(context, member, error, "ended");
}

void Coordinator::let_waiting_leave(Context& context) {
  for (const auto& [member, why] : std::map<std::uint32_t, std::string>(leaving_)) {
    const bool last = is_last(member);
    if (!last && alone_knows(member) && !lost_.contains(member)) continue;
    leaving_.erase(member);
    // Those that it taught are lost.
    if (last && !why.empty()) {
      answer_drains(member, objection_to_last(member));
    } else {
      let_leave(context, member, why);
    }
  }
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

void Coordinator::answer_drains(std::uint32_t member, const runtime::Result<void>& answer) {
  const auto [first, last] = drains_.equal_range(member);
  for (auto each = first; each != last; ++each) each->second->answer(answer);
  drains_.erase(first, last);
}

void Coordinator::take_drains(Context& context, const runtime::Message& message) {
  const auto tell = [this](const std::string& node, const runtime::Result<void>& answer) {
    if (const auto member = member_at(node)) answer_drains(*member, answer);
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

#include "actors/member.h"

#include <utility>

#include <fmt/format.h>

#include "config/cluster_plan.h"

namespace troupe::actors {

using runtime::ChildDecision;
using runtime::ChildEnd;
using runtime::Context;
using runtime::Error;
using runtime::Message;

void Member::receive(Context& context, Message message) {
  if (message.as<Release>() != nullptr) {
    if (error_) {
      context.fail(std::move(*error_));
    } else {
      context.finish();
    }
  } else if (const auto* lost = message.as<runtime::PeerLost>()) {
    lose(context, *lost);
  } else if (const auto* left = message.as<runtime::PeerLeft>()) {
    if (left->node != config::kHeadNode) return;
    context.fail(error_.value_or(
        Error{runtime::ErrorKind::kLostPeers, fmt::format("{} ended without a word", left->node)}));
  }
}

void Member::lose(Context& context, const runtime::PeerLost& lost) {
  if (lost.node == config::kHeadNode) {
    context.fail(error_.value_or(lost.error));
    return;
  }
  const std::string message =
      fmt::format("{} has lost {}: {}", context.name(), lost.node, lost.error.message);
  context.send_control("coordinator", Message::of(MemberFailed{{}, {lost.error.kind, message}}));
}

void Member::stop(Context& context) {
  const std::string message =
      fmt::format("{} has left the run: it was told to end", context.name());
  context.send_control("coordinator",
                       Message::of(MemberFailed{{}, {runtime::ErrorKind::kLostPeers, message}}));
}

void Member::undeliverable(Context&, Message, const Error&) {}

ChildDecision Member::child_ended(Context& context, const ChildEnd& end) {
  if (!end.error) return ChildDecision::kIgnore;
  if (!error_) error_ = end.error;
  context.send_control("coordinator", Message::of(MemberFailed{end.name, *end.error}));
  return ChildDecision::kIgnore;
}

}  // namespace troupe::actors

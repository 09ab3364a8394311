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
  } else if (const auto* expelled = message.as<Expelled>()) {
    context.fail(error_.value_or(expelled->error));
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
  context.send_control("coordinator", Message::of(FellowLost{lost.node, lost.error}));
}

void Member::stop(Context& context) { context.send_control("coordinator", Message::of(Leaving{})); }

void Member::undeliverable(Context&, Message, const Error&) {}

ChildDecision Member::child_ended(Context& context, const ChildEnd& end) {
  if (!end.error) return ChildDecision::kIgnore;
  if (!error_) error_ = end.error;
  context.send_control("coordinator", Message::of(MemberFailed{end.name, *end.error}));
  return ChildDecision::kIgnore;
}

}  // namespace troupe::actors

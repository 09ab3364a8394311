#include "actors/member.h"

#include <chrono>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "config/cluster_plan.h"
#include "telemetry/trace/trace_bytes.h"

namespace troupe::actors {

namespace {

// Many times what computing a micro-batch takes, after which the replica hears what it is asked.
constexpr auto kTellWithin = std::chrono::minutes(5);

}  // namespace

using runtime::ChildDecision;
using runtime::ChildEnd;
using runtime::Context;
using runtime::Error;
using runtime::Message;

void Member::receive(Context& context, Message message) {
  if (const auto* release = message.as<Release>()) {
    if (!release->why.empty()) context.log().info("leaves the run: " + release->why);
    if (failure_) {
      fail(context, failure_->error);
    } else {
      context.finish();
    }
  } else if (const auto* expelled = message.as<Expelled>()) {
    fail(context, expelled->error);
  } else if (const auto* lost = message.as<runtime::PeerLost>()) {
    if (lost->node == config::kHeadNode) return lose_head(context, *lost);
    lose(context, *lost);
  } else if (const auto* left = message.as<runtime::PeerLeft>()) {
    if (left->node != config::kHeadNode) return;
    fail(context,
         {runtime::ErrorKind::kLostPeers, fmt::format("{} ended without a word", left->node)});
  } else if (message.as<runtime::PeerAway>() != nullptr) {
    head_is_away_ = true;
    // The others notice, as when it dies.
    if (leaves_) context.finish();
  } else if (const auto* joined = message.as<runtime::PeerJoined>()) {
    if (joined->node == config::kHeadNode) {
      if (head_is_away_) tell_again(context);
    } else if (!options_.reducer.empty()) {
      context.send_control(options_.reducer, Message::of(FellowMet{joined->node}));
    }
  } else if (const auto* own = message.as<OwnState>()) {
    if (!orphaned_) return;
    options_.outcome->orphan_state = own->state;
    fail(context, *orphaned_);
  } else if (const auto* probe = message.as<Probe>()) {
    report(context, *probe);
  }
}

// What finds no room is dropped, as all metrics.
void Member::report(Context& context, const Probe& probe) const {
  const runtime::PortId port = context.out("metrics");
  if (!port.valid()) return;
  NodeReport report{probe.request, probe.sent, probe.wants, context.now(), {}};
  if (options_.sample) report.sample = options_.sample();
  runtime::Buffer contents;
  if (probe.wants == Probe::Wants::kTrace && options_.trace) {
    contents = runtime::Buffer::copy_of(telemetry::pack_actors(options_.trace()));
  } else if (probe.wants == Probe::Wants::kWaits && options_.waits) {
    const std::string text = options_.waits();
    contents = runtime::Buffer::copy_of(std::as_bytes(std::span(text)));
  }
  std::vector<runtime::Buffer> payloads;
  const bool fits = contents.size() <= NodeReport::kMostContents;
  if (fits && !contents.empty()) payloads.push_back(std::move(contents));
  context.send(port, Message::of(std::move(report), std::move(payloads)));
}

void Member::fail(Context& context, const Error& error) {
  context.fail(failure_ ? failure_->error : error);
}

// Whoever was refused is not alone: others go on with the run.
void Member::lose_head(Context& context, const runtime::PeerLost& lost) {
  if (!lost.unheard || options_.replica.empty()) return fail(context, lost.error);
  orphaned_ = lost.error;
  context.send_control(options_.replica, Message::of(TellState{}));
  context.after(kTellWithin);
}

void Member::timer(Context& context, runtime::TimerId) {
  if (orphaned_) fail(context, *orphaned_);
}

void Member::lose(Context& context, const runtime::PeerLost& lost) {
  lost_.push_back({lost.node, lost.error});
  context.send_control("coordinator", Message::of(FellowLost(lost_.back())));
}

void Member::tell_again(Context& context) {
  head_is_away_ = false;
  for (const FellowLost& lost : lost_) {
    context.send_control("coordinator", Message::of(FellowLost(lost)));
  }
  if (failure_) context.send_control("coordinator", Message::of(MemberFailed(*failure_)));
}

void Member::stop(Context& context) {
  leaves_ = true;
  if (head_is_away_) return context.finish();
  context.send_control("coordinator", Message::of(Leaving{}));
}

void Member::undeliverable(Context& context, Message message, const Error&) {
  if (message.as<TellState>() != nullptr && orphaned_) fail(context, *orphaned_);
}

ChildDecision Member::child_ended(Context& context, const ChildEnd& end) {
  if (orphaned_ && end.name == options_.replica) fail(context, *orphaned_);
  if (!end.error) return ChildDecision::kIgnore;
  MemberFailed failure{end.name, *end.error};
  if (!failure_) failure_ = failure;
  context.send_control("coordinator", Message::of(std::move(failure)));
  return ChildDecision::kIgnore;
}

}  // namespace troupe::actors

#include "actors/member.h"

#include <chrono>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "actors/leave_text.h"
#include "config/plan.h"
#include "telemetry/trace/trace_bytes.h"

namespace troupe::actors {

namespace {

// A replica hears the question when it has computed its micro-batch, which takes a small part of
// this.
constexpr auto kTellWithin = std::chrono::minutes(5);

}  // namespace

using runtime::ChildDecision;
using runtime::ChildEnd;
using runtime::Context;
using runtime::Error;
using runtime::Message;

void Member::start(Context&) {
  on<Release>(&Member::receive_release);
  on<Expelled>(&Member::receive_expelled);
  on<runtime::PeerLost>(&Member::receive_peer_lost);
  on<runtime::PeerLeft>(&Member::receive_peer_left);
  on<runtime::PeerAway>(&Member::receive_peer_away);
  on<runtime::PeerJoined>(&Member::receive_peer_joined);
  on<OwnState>(&Member::receive_own_state);
  on<Probe>(&Member::receive_probe);
}

void Member::receive_release(Context& context, const Release& release) {
  if (!release.why.empty()) context.log().info(kLeavesRun + release.why);
  if (failure_) {
    fail(context, failure_->error);
  } else {
    context.finish();
  }
}

void Member::receive_expelled(Context& context, const Expelled& expelled) {
  fail(context, expelled.error);
}

void Member::receive_peer_lost(Context& context, const runtime::PeerLost& lost) {
  if (lost.node == config::kHeadNode) return lose_head(context, lost);
  lost_.push_back({lost.node, lost.error});
  context.send_control("coordinator", Message::of(NeighbourLost(lost_.back())));
}

void Member::receive_peer_left(Context& context, const runtime::PeerLeft& left) {
  if (left.node != config::kHeadNode) return;
  fail(context, {runtime::ErrorKind::kLostPeers,
                 fmt::format("{} has ended, and the run with it", left.node)});
}

void Member::receive_peer_away(Context& context, const runtime::PeerAway&) {
  head_is_away_ = true;
  // Without a head nobody can release this member. The others notice its end, as when it dies.
  if (leaves_) context.finish();
}

void Member::receive_peer_joined(Context& context, const runtime::PeerJoined& joined) {
  if (joined.node == config::kHeadNode) {
    if (head_is_away_) repeat_reports(context);
    return;
  }
  // Those that were this member before are over, and no head needs to hear of them.
  const auto member = config::member_number(joined.node);
  std::erase_if(lost_, [&](const NeighbourLost& lost) {
    return member && config::member_number(lost.node) == member;
  });
  if (options_.reducer.empty()) return;
  context.send_control(options_.reducer, Message::of(NeighbourMet{joined.node}));
}

void Member::receive_own_state(Context& context, const OwnState& own) {
  if (!orphaned_) return;
  options_.outcome->orphan_state = own.state;
  fail(context, *orphaned_);
}

// An answer that the link has no room for is dropped, as all metrics are.
void Member::receive_probe(Context& context, const Probe& probe) {
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

// The state is saved only where nothing was heard of the head any more. A member that the head has
// refused is not alone: the others go on with the run.
void Member::lose_head(Context& context, const runtime::PeerLost& lost) {
  if (!lost.fell_silent || options_.replica.empty()) return fail(context, lost.error);
  orphaned_ = lost.error;
  context.send_control(options_.replica, Message::of(TellState{}));
  context.after(kTellWithin);
}

void Member::timer(Context& context, runtime::TimerId) {
  if (orphaned_) fail(context, *orphaned_);
}

void Member::repeat_reports(Context& context) {
  head_is_away_ = false;
  for (const NeighbourLost& lost : lost_) {
    context.send_control("coordinator", Message::of(NeighbourLost(lost)));
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

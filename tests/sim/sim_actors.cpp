#include "tests/sim/sim_actors.h"

#include <fmt/format.h>

#include <utility>

namespace troupe::sim {
namespace {

using runtime::Context;
using runtime::Error;
using runtime::Message;
using runtime::TimerId;

// How often something is looked at that nobody tells of.
constexpr Duration kLook = std::chrono::milliseconds(20);
// The fate of a message is known by then, whatever happens to connections.
constexpr Duration kSettledWithin = std::chrono::seconds(10);
constexpr Duration kRunEndsWithin = std::chrono::seconds(120);

}  // namespace

Worker::Held::~Held() {
  const Item item = *message.as<Item>();
  message = Message();
  ledger.let_go(item.link, item.number);
}

Worker::Worker(World& world, Ledger& ledger, ProcessId process, WorkerTraits traits)
    : world_(world), ledger_(ledger), process_(process), traits_(std::move(traits)) {
  for (const WorkerTraits::Out& out : traits_.outs) {
    ledger_.expect(out.link, out.items);
    sending_.emplace_back();
    sending_.back().to_send = out.items;
  }
}

Worker::~Worker() {
  held_.clear();
  ledger_.ended(name_);
}

void Worker::start(Context& context) {
  name_ = context.name();
  if (traits_.life) dying_ = context.after(*traits_.life);
  send_all(context);
}

bool Worker::send_one(Context& context, std::size_t out) {
  Sending& sending = sending_[out];
  const WorkerTraits::Out& traits = traits_.outs[out];
  if (sending.next.empty()) sending.next = ledger_.make(traits.link, traits_.most_bytes);
  const std::uint64_t number = sending.next.as<Item>()->number;
  const std::int64_t bytes = sending.next.bytes();
  if (!context.send(traits.port, sending.next)) return false;
  if (world_.traced()) {
    world_.note(process_, fmt::format("{} sends {} of {}", name_, number, traits.port));
  }
  ledger_.accepted(traits.link, number, bytes);
  --sending.to_send;
  return true;
}

void Worker::send_all(Context& context) {
  if (stopped_ || pausing_ != TimerId{}) return;
  bool more = true;
  while (more) {
    more = false;
    for (std::size_t out = 0; out < sending_.size(); ++out) {
      if (sending_[out].to_send == 0 || !send_one(context, out)) continue;
      if (traits_.pause > Duration(0)) {
        pausing_ = context.after(traits_.pause);
        return;
      }
      more = true;
    }
  }
}

void Worker::credit_returned(Context& context, std::string_view /*port*/) { send_all(context); }

void Worker::receive(Context& context, Message message) {
  const Item item = *message.as<Item>();
  if (world_.traced()) {
    world_.note(process_,
                fmt::format("{} receives {} of {}", name_, item.number, message.sender_name()));
  }
  ledger_.received(message);
  held_.push_back(std::make_unique<Held>(ledger_, std::move(message)));
  if (stopped_) held_.clear();
  work(context);
}

void Worker::work(Context& context) {
  while (!held_.empty() && working_ == TimerId{}) {
    if (traits_.work > Duration(0)) {
      working_ = context.after(traits_.work);
      return;
    }
    use_up_first(context);
  }
}

void Worker::use_up_first(Context& context) {
  held_.pop_front();
  for (std::size_t out = 0; out < sending_.size(); ++out) {
    if (traits_.outs[out].relay) ++sending_[out].to_send;
  }
  send_all(context);
}

void Worker::timer(Context& context, TimerId id) {
  if (id == dying_) {
    context.finish();
  } else if (id == working_) {
    working_ = {};
    if (!held_.empty()) use_up_first(context);
    work(context);
  } else if (id == pausing_) {
    pausing_ = {};
    send_all(context);
  } else if (id == ending_) {
    end_when_settled(context);
  }
}

void Worker::undeliverable(Context&, Message message, const Error& cause) {
  const Item item = *message.as<Item>();
  if (world_.traced()) {
    world_.note(process_, fmt::format("{} has {} back: {}", name_, item.number, cause.message));
  }
  ledger_.returned(message);
  const Held let_go(ledger_, std::move(message));
}

void Worker::stop(Context& context) {
  stopped_ = context.now();
  held_.clear();
  end_when_settled(context);
}

void Worker::end_when_settled(Context& context) {
  if (!ledger_.settled(name_)) {
    if (context.now() - *stopped_ < kSettledWithin) {
      ending_ = context.after(kLook);
      return;
    }
    ledger_.fail(
        fmt::format("{} never heard what became of its messages{}", name_, ledger_.unsettled()));
  }
  context.finish();
}

void SimRoot::start(Context& context) {
  if (first()) (void)context.after(kLook);
}

bool SimRoot::everybody_came() const {
  for (ProcessId id = 1; id < world_.processes(); ++id) {
    if (!met_.contains(world_.name(id)) && !world_.killed(id) && !world_.end(id)) return false;
  }
  return true;
}

void SimRoot::timer(Context& context, TimerId) {
  if (context.now() > kRunEndsWithin) {
    ledger_.fail("the run does not come to its end" + ledger_.unsettled());
  }
  if (!everybody_came() || !ledger_.all_settled()) {
    (void)context.after(kLook);
    return;
  }
  for (ProcessId id = 1; id < roots_.size(); ++id) {
    context.send_control(roots_[id], Message::of(EndNow{}));
  }
  context.finish();
}

void SimRoot::receive(Context& context, Message message) {
  if (const auto* joined = message.as<runtime::PeerJoined>()) {
    met_.insert(joined->node);
  } else if (const auto* lost = message.as<runtime::PeerLost>()) {
    world_.note(process_, "has lost " + lost->node + ": " + lost->error.message);
    met_.insert(lost->node);
    for (ProcessId id = 0; mild_ && id < world_.processes(); ++id) {
      if (world_.name(id) != lost->node || world_.end(id)) continue;
      ledger_.fail("a peer was given up for a broken connection: " + lost->error.message);
    }
    if (lost->node == world_.name(0)) context.finish();
  } else if (const auto* left = message.as<runtime::PeerLeft>()) {
    if (left->node == world_.name(0)) context.finish();
  } else if (message.as<EndNow>() != nullptr) {
    context.finish();
  }
}

}  // namespace troupe::sim

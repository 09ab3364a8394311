#include "bench/gate_actors.h"

#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "bench/payload.h"
#include "bench/root_actor.h"
#include "runtime/base/clock.h"

namespace troupe::bench {

using runtime::Actor;
using runtime::ActorPlan;
using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::TimePoint;

struct Numbered {
  static constexpr std::string_view kName = "numbered";
  std::int64_t number = 0;
};

template <class Archive>
void fields(Archive& archive, runtime::Like<Numbered> auto& body) {
  archive.integer("number", body.number);
}

namespace {

// Notes how long it takes from the end of the warming to the last message.
class Stopwatch {
 public:
  Stopwatch(const GateLoad& load, GateRun& run) : load_(load), run_(run) {}
  void count(std::int64_t done, TimePoint now) {
    if (done == load_.warming) {
      start_ = now;
      cores_ = core_seconds();
    }
    if (done != load_.all()) return;
    run_.seconds = std::chrono::duration<double>(now - start_).count();
    run_.core_seconds = core_seconds() - cores_;
  }

 private:
  const GateLoad load_;
  GateRun& run_;
  TimePoint start_{};
  double cores_ = 0;
};

// The payloads are made before the time starts and sent again and again, one more of them than can
// be under way. Each has its position in the ring in its first word.
std::vector<Buffer> ring_of(const GateLoad& load) {
  std::vector<Buffer> ring;
  if (load.payload_bytes == 0) return ring;
  for (std::int64_t i = 0; i <= load.credits; ++i) {
    ring.push_back(payload_of(load.payload_bytes, static_cast<std::uint64_t>(i)));
  }
  return ring;
}

bool is_right(const Message& message, std::int64_t number, const GateLoad& load) {
  const auto* body = message.as<Numbered>();
  if (body == nullptr || body->number != number) return false;
  if (load.payload_bytes == 0) return message.payloads().empty();
  if (message.payloads().size() != 1) return false;
  if (message.payloads()[0].size() != load.payload_bytes) return false;
  return is_payload(message.payloads()[0].as<std::uint64_t>(),
                    static_cast<std::uint64_t>(number % (load.credits + 1)), load.whole);
}

class Producer final : public Actor {
 public:
  Producer(const GateLoad& load, GateRun& run)
      : load_(load), ring_(ring_of(load)), watch_(load, run) {}

  void start(Context& context) override {
    out_ = context.out("out");
    send_all(context);
  }
  void receive(Context&, Message) override {}
  void credit_returned(Context& context, std::string_view) override { send_all(context); }

 private:
  void send_all(Context& context) {
    while (next_ < load_.all()) {
      std::vector<Buffer> payloads;
      if (!ring_.empty()) payloads.push_back(ring_[static_cast<std::size_t>(next_) % ring_.size()]);
      make_message(context);
      if (!context.send(out_, Message::of(Numbered{next_}, std::move(payloads)))) return;
      watch_.count(++next_, context.now());
    }
    context.finish();
  }
  // Takes its time, once for each message, however often that is offered.
  void make_message(Context& context) {
    if (made_ > next_) return;
    ++made_;
    if (load_.producing.count() == 0) return;
    std::this_thread::sleep_for(load_.producing);
    context.post_progress();
  }

  const GateLoad load_;
  const std::vector<Buffer> ring_;
  Stopwatch watch_;
  runtime::PortId out_;
  std::int64_t next_ = 0, made_ = 0;
};

class Consumer final : public Actor {
 public:
  Consumer(const GateLoad& load, GateRun& run) : load_(load), run_(run), watch_(load, run) {}

  void receive(Context& context, Message message) override {
    if (!is_right(message, next_, load_)) run_.complaint = "a message was lost or garbled";
    std::this_thread::sleep_for(load_.consuming);
    watch_.count(++next_, context.now());
    if (next_ == load_.all()) context.finish();
  }

 private:
  const GateLoad load_;
  GateRun& run_;
  Stopwatch watch_;
  std::int64_t next_ = 0;
};

// The one link, and the nodes its ends are on; both "" where there is only one node.
runtime::Plan gate_plan(const GateLoad& load, const std::string& consumer_node,
                        const std::string& producer_node) {
  runtime::Plan plan;
  const std::string consumer_root = "root of the consumer";
  const bool alone = consumer_node == producer_node;
  const std::string producer_root = alone ? consumer_root : "root of the producer";
  plan.actors.push_back({consumer_root, "root", "", false, consumer_node});
  plan.actors.push_back({"consumer", "consumer", consumer_root, false, consumer_node});
  if (!alone) plan.actors.push_back({producer_root, "root", "", false, producer_node});
  plan.actors.push_back({"producer", "producer", producer_root, false, producer_node});
  runtime::LinkPlan link;
  link.from = "producer";
  link.from_port = "out";
  link.to = "consumer";
  link.to_port = "in";
  link.message_credits = load.credits;
  plan.links.push_back(link);
  return plan;
}

// `consumed` and `produced` are filled by the end of the node that has the actor.
runtime::ActorFactory gate_actors(const GateLoad& load, GateRun& consumed, GateRun& produced) {
  return [&load, &consumed, &produced](const ActorPlan& actor) -> std::unique_ptr<Actor> {
    if (actor.kind == "root") return std::make_unique<Root>();
    if (actor.kind == "producer") return std::make_unique<Producer>(load, produced);
    return std::make_unique<Consumer>(load, consumed);
  };
}

}  // namespace

GateRun run_gate_node(const GateLoad& load) {
  GateRun consumed, produced;
  const runtime::SteadyClock clock;
  runtime::Log log = runtime::Log::silent();
  runtime::Node node(gate_plan(load, "", ""), gate_actors(load, consumed, produced), {}, clock,
                     log);
  const runtime::NodeEnd end = node.run();
  if (end.error) consumed.complaint = end.error->message;
  return consumed;
}

GateRun run_gate_node(const GateLoad& load, runtime::Wire& wire, const std::string& listener,
                      bool listens) {
  GateRun consumed, produced;
  const runtime::SteadyClock clock;
  runtime::Log log = runtime::Log::silent();
  runtime::WireTypes types;
  types.add<Numbered>();
  runtime::GateOptions gate;
  gate.node = listens ? "consumers" : "producers";
  if (!listens) gate.head_address = listener;
  gate.incarnation = static_cast<std::uint64_t>(::getpid());
  // The machine may be busy with something else, and nobody is to be taken for dead over it.
  gate.dead_after = std::chrono::seconds(30);
  runtime::Node node(gate_plan(load, "consumers", "producers"),
                     gate_actors(load, consumed, produced), {}, clock, log,
                     runtime::Uplink{std::move(gate), wire, types});
  const runtime::NodeEnd end = node.run();
  GateRun& run = listens ? consumed : produced;
  if (end.error) run.complaint = end.error->message;
  return run;
}

}  // namespace troupe::bench

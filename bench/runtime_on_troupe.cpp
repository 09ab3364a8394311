#include <memory>
#include <utility>

#include "bench/root_actor.h"
#include "bench/runtime_cases.h"
#include "runtime/base/clock.h"
#include "runtime/node/node.h"

namespace troupe::bench {
namespace {

using runtime::Actor;
using runtime::ActorPlan;
using runtime::Context;
using runtime::Message;
using runtime::PortId;
using runtime::TimePoint;

// Enough for a sender to fill one turn on its thread, little enough to stay in the cache.
constexpr std::int64_t kCredits = 512;

struct Number {
  static constexpr std::string_view kName = "number";
  std::int32_t sender;
  std::int64_t value;
};

struct Times {
  TimePoint first = TimePoint::max();
  TimePoint last{0};
  std::string complaint;
};

class Sender final : public Actor {
 public:
  Sender(std::int32_t number, std::int64_t count, Times& times)
      : number_(number), count_(count), times_(times) {}

  void start(Context& context) override {
    out_ = context.out("out");
    if (number_ == 0) times_.first = context.now();
    send_all(context);
  }
  void receive(Context&, Message) override {}
  void credit_returned(Context& context, std::string_view) override { send_all(context); }

 private:
  void send_all(Context& context) {
    while (next_ < count_) {
      if (!context.send(out_, Message::of(Number{number_, next_}))) return;
      ++next_;
    }
    context.finish();
  }

  std::int32_t number_;
  std::int64_t count_;
  Times& times_;
  PortId out_;
  std::int64_t next_ = 0;
};

class Receiver final : public Actor {
 public:
  Receiver(std::int64_t count, int senders, Times& times)
      : left_(count), expected_(static_cast<std::size_t>(senders)), times_(times) {}

  void receive(Context& context, Message message) override {
    const Number* number = message.as<Number>();
    if (number == nullptr ||
        expected_[static_cast<std::size_t>(number->sender)]++ != number->value) {
      times_.complaint = "a message came out of order or with other content";
    }
    if (--left_ > 0) return;
    times_.last = context.now();
    context.finish();
  }

 private:
  std::int64_t left_;
  std::vector<std::int64_t> expected_;
  Times& times_;
};

class Player final : public Actor {
 public:
  Player(bool serves, std::int64_t turns, Times& times)
      : serves_(serves), turns_(turns), times_(times) {}

  void start(Context& context) override {
    out_ = context.out("out");
    if (!serves_) return;
    times_.first = context.now();
    context.send(out_, Message::of(Number{0, 0}));
  }

  void receive(Context& context, Message message) override {
    const Number* number = message.as<Number>();
    if (number == nullptr || number->value != turn_) times_.complaint = "a ball was lost";
    ++turn_;
    if (serves_ && turn_ == turns_) times_.last = context.now();
    if (!serves_ || turn_ < turns_) {
      context.send(out_, Message::of(Number{0, serves_ ? turn_ : number->value}));
    }
    if (turn_ == turns_) context.finish();
  }

 private:
  bool serves_;
  std::int64_t turns_;
  Times& times_;
  PortId out_;
  std::int64_t turn_ = 0;
};

runtime::Plan plan_of(const RuntimeCase& run) {
  runtime::Plan plan;
  plan.actors.push_back({"root", "root", "", false});
  const auto link = [&](const std::string& from, const std::string& to) {
    runtime::LinkPlan link;
    link.from = from;
    link.from_port = "out";
    link.to = to;
    link.to_port = "in";
    link.message_credits = kCredits;
    link.tokens = 1;
    plan.links.push_back(link);
  };
  if (run.pattern == RuntimeCase::Pattern::kPingPong) {
    plan.actors.push_back({"ping", "server", "root", false});
    plan.actors.push_back({"pong", "player", "root", false});
    link("ping", "pong");
    link("pong", "ping");
    return plan;
  }
  plan.actors.push_back({"receiver", "receiver", "root", false});
  const int senders = run.pattern == RuntimeCase::Pattern::kFanIn ? kFanInSenders : 1;
  for (int i = 0; i < senders; ++i) {
    plan.actors.push_back({std::to_string(i), "sender", "root", false});
    link(std::to_string(i), "receiver");
  }
  return plan;
}

}  // namespace

RuntimeRun run_on_troupe(const RuntimeCase& run) {
  Times times;
  const int senders = run.pattern == RuntimeCase::Pattern::kFanIn ? kFanInSenders : 1;
  const auto make = [&](const ActorPlan& actor) -> std::unique_ptr<Actor> {
    if (actor.kind == "root") return std::make_unique<Root>();
    if (actor.kind == "receiver") return std::make_unique<Receiver>(run.messages, senders, times);
    if (actor.kind == "sender") {
      return std::make_unique<Sender>(std::stoi(actor.name), run.messages / senders, times);
    }
    return std::make_unique<Player>(actor.kind == "server", run.messages, times);
  };
  runtime::NodeOptions options;
  options.scheduler_threads = run.threads;
  const runtime::SteadyClock clock;
  runtime::Log log = runtime::Log::silent();
  runtime::Node node(plan_of(run), make, options, clock, log);
  const runtime::NodeEnd end = node.run();
  if (end.error) times.complaint = end.error->message;
  return {std::chrono::duration<double>(times.last - times.first).count(), times.complaint};
}

}  // namespace troupe::bench

#pragma once

// A small theatre for tests of the runtime: actors written as lambdas, a plan written in a few
// lines, run on real threads or on a seeded StepScheduler.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/node/node.h"
#include "runtime/step_scheduler.h"

namespace troupe::runtime {

// What most tests send.
struct Number {
  static constexpr std::string_view kName = "number";
  std::int64_t value;
};

// The handlers of one actor; those left out behave as Actor's own. Copied for each incarnation.
struct Script {
  std::function<void(Context&)> start;
  std::function<void(Context&, Message)> receive;
  std::function<void(Context&, std::string_view)> credit_returned;
  std::function<void(Context&, TimerId)> timer;
  std::function<void(Context&, Message, const Error&)> undeliverable;
  std::function<void(Context&)> stop;
  std::function<ChildDecision(Context&, const ChildEnd&)> child_ended;
  std::function<std::string()> waiting_for;
};

class ScriptedActor final : public Actor {
 public:
  explicit ScriptedActor(Script script) : script_(std::move(script)) {}

  void start(Context& context) override {
    if (script_.start) script_.start(context);
  }
  void receive(Context& context, Message message) override {
    if (script_.receive) script_.receive(context, std::move(message));
  }
  void credit_returned(Context& context, std::string_view port) override {
    if (script_.credit_returned) script_.credit_returned(context, port);
  }
  void timer(Context& context, TimerId id) override {
    if (script_.timer) script_.timer(context, id);
  }
  void undeliverable(Context& context, Message message, const Error& cause) override {
    if (script_.undeliverable) {
      script_.undeliverable(context, std::move(message), cause);
    } else {
      Actor::undeliverable(context, std::move(message), cause);
    }
  }
  void stop(Context& context) override {
    script_.stop ? script_.stop(context) : Actor::stop(context);
  }
  ChildDecision child_ended(Context& context, const ChildEnd& end) override {
    return script_.child_ended ? script_.child_ended(context, end)
                               : Actor::child_ended(context, end);
  }
  std::string waiting_for() const override {
    return script_.waiting_for ? script_.waiting_for() : std::string();
  }

 private:
  Script script_;
};

// Makes the script of one incarnation of an actor.
using ScriptMaker = std::function<Script()>;

class Stage {
 public:
  Stage() {
    LogOptions log_options;
    log_options.to_stderr = false;
    log_options.level = LogLevel::kDebug;
    log_options.also = [this](LogLevel, std::string_view line) {
      const std::scoped_lock lock(lines_mutex_);
      lines_ += std::string(line) + "\n";
    };
    log_ = std::make_unique<Log>(Log::open(log_options).value());
    options_.scheduler_threads = 2;
  }

  Stage& actor(const std::string& name, const std::string& owner, ScriptMaker maker,
               bool own_thread = false) {
    plan_.actors.push_back({name, "scripted", owner, own_thread});
    makers_[name] = std::move(maker);
    return *this;
  }
  Stage& actor(const std::string& name, const std::string& owner, Script script,
               bool own_thread = false) {
    return actor(name, owner, ScriptMaker([script = std::move(script)] { return script; }),
                 own_thread);
  }
  // A link from.out -> to.in, unless other ports are named. Every link holds a token, so that plans
  // of tests may have circles.
  Stage& link(const std::string& from, const std::string& to, std::int64_t message_credits,
              Lane lane = Lane::kData, const std::string& port = "out",
              std::int64_t byte_credits = std::int64_t{1} << 30) {
    plan_.links.push_back({from, port, to, "in", lane, message_credits, byte_credits, 1});
    return *this;
  }
  NodeOptions& options() { return options_; }
  const Plan& plan() const { return plan_; }

  // On threads; the node stays for a look at its statistics until the next run.
  NodeEnd run_on_threads() {
    node_ = std::make_unique<Node>(plan_, factory(), options_, steady_clock_, *log_);
    return node_->run();
  }
  NodeEnd run_in_steps(std::uint64_t seed) {
    make_in_steps(seed);
    return node_->run();
  }
  // For tests that drive the node by hand.
  Node& make_in_steps(std::uint64_t seed) {
    node_.reset();
    manual_clock_ = std::make_unique<ManualClock>();
    scheduler_ = std::make_unique<StepScheduler>(seed, *manual_clock_);
    node_ = std::make_unique<Node>(plan_, factory(), options_, *manual_clock_, *log_, *scheduler_);
    return *node_;
  }
  Node& make_on_threads() {
    node_ = std::make_unique<Node>(plan_, factory(), options_, steady_clock_, *log_);
    return *node_;
  }
  void drop_node() { node_.reset(); }

  Node& node() { return *node_; }
  StepScheduler& scheduler() { return *scheduler_; }
  ManualClock& clock() { return *manual_clock_; }
  std::string log_lines() const {
    const std::scoped_lock lock(lines_mutex_);
    return lines_;
  }
  LinkStats link_stats(const std::string& from, const std::string& port = "out") const {
    for (const LinkStats& stats : node_->link_stats()) {
      if (stats.plan.from == from && stats.plan.from_port == port) return stats;
    }
    return {};
  }

 private:
  ActorFactory factory() {
    return [this](const ActorPlan& actor) {
      return std::make_unique<ScriptedActor>(makers_.at(actor.name)());
    };
  }

  Plan plan_;
  NodeOptions options_;
  mutable std::mutex lines_mutex_;
  std::string lines_;
  std::unique_ptr<Log> log_;
  SteadyClock steady_clock_;
  std::unique_ptr<ManualClock> manual_clock_;
  std::unique_ptr<StepScheduler> scheduler_;
  std::unique_ptr<Node> node_;
  // Last, so that messages kept by scripts go before the node.
  std::map<std::string, ScriptMaker> makers_;
};

// Scripts that many tests share.

// A root that finishes when `children` of its children have finished.
inline Script root_of(int children) {
  Script script;
  script.child_ended = [left = std::make_shared<int>(children)](Context& context,
                                                                const ChildEnd& end) {
    if (end.error) return ChildDecision::kEscalate;
    if (--*left == 0) context.finish();
    return ChildDecision::kIgnore;
  };
  return script;
}

// Sends Number{0} .. Number{count - 1} on "out", as credit allows, and finishes.
inline Script counting_sender(std::int64_t count) {
  auto next = std::make_shared<std::int64_t>(0);
  const auto send = [next, count](Context& context) {
    while (*next < count) {
      if (!context.send("out", Message::of(Number{*next}))) return;
      ++*next;
    }
    context.finish();
  };
  Script script;
  script.start = send;
  script.credit_returned = [send](Context& context, std::string_view) { send(context); };
  return script;
}

}  // namespace troupe::runtime

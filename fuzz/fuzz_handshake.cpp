// A stranger at the gate of a head, who may say anything in any order: connect, speak, fall silent,
// close, come back, and play the member that trains. The head must refuse or survive it, and end
// when it is asked to.

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/coordinator.h"
#include "actors/messages.h"
#include "actors/monitor.h"
#include "actors/reducer.h"
#include "actors/wire_messages.h"
#include "fuzz/frames.h"
#include "fuzz/talk.h"
#include "runtime/actor.h"
#include "runtime/base/error.h"
#include "runtime/node.h"
#include "runtime/step_scheduler.h"
#include "tests/pipeline/state_example.h"

namespace {

using namespace troupe;
using runtime::ConnectionId;

// Hands the node what the talk says, and throws away what the node answers.
class TalkWire final : public runtime::Wire {
 public:
  explicit TalkWire(runtime::ManualClock& clock) : clock_(clock) {}

  void add(fuzz::Line line) { lines_.push_back(std::move(line)); }

  std::string address() const override { return "talk"; }
  runtime::Result<ConnectionId> dial(const std::string&) override { return ConnectionId{++last_}; }
  void send(ConnectionId, runtime::Lane, runtime::Packet) override {}
  void close(ConnectionId connection) override {
    if (open_ == connection) open_.reset();
  }
  void poll(runtime::WireEvents& events, runtime::TimePoint) override {
    for (fuzz::Line& line : std::exchange(lines_, {})) say(events, line);
  }
  void wake() override {}

 private:
  void say(runtime::WireEvents& events, fuzz::Line& line) {
    switch (line.deed) {
      case fuzz::Deed::kConnect:
        hang_up(events);
        open_ = ConnectionId{++last_};
        return events.connected(*open_, {false, "talk", ""});
      case fuzz::Deed::kClose:
        return hang_up(events);
      case fuzz::Deed::kWait:
        return clock_.advance(std::chrono::milliseconds(100 * (1 + line.lane)));
      case fuzz::Deed::kSay:
        if (!open_) return;
        return events.arrived(*open_, static_cast<runtime::Lane>(line.lane),
                              std::move(line.packet));
    }
  }
  void hang_up(runtime::WireEvents& events) {
    if (open_)
      events.disconnected(*std::exchange(open_, std::nullopt),
                          {runtime::ErrorKind::kLostPeers, "it was closed"});
  }

  runtime::ManualClock& clock_;
  std::uint64_t last_ = 0;
  std::optional<ConnectionId> open_;
  std::vector<fuzz::Line> lines_;
};

// In the place of the Checkpointer, and of everyone on the other node.
class Clerk final : public runtime::Actor {
 public:
  void receive(runtime::Context& context, runtime::Message message) override {
    if (message.as<actors::LastState>() != nullptr) {
      context.send_control("coordinator", runtime::Message::of(actors::LastStateDone{}));
    } else if (message.as<actors::FinishMetrics>() != nullptr) {
      context.send_control("monitor", std::move(message));
    }
  }
};

// A head and one member, whose only replica makes every step alone.
runtime::Plan plan_of_two() {
  runtime::Plan plan;
  plan.actors = {{"coordinator", "coordinator", "", false, "head"},
                 {"reducer", "reducer", "coordinator", false, "head"},
                 {"checkpointer", "clerk", "coordinator", false, "head"},
                 {"monitor", "monitor", "coordinator", false, "head"},
                 {"node-1", "clerk", "", false, "node-1"},
                 {"replica.0", "clerk", "node-1", false, "node-1"}};
  plan.links = {{"replica.0", "contributions", "reducer", "contributions"},
                {"reducer", "reduced.0", "replica.0", "reduced"},
                {"replica.0", "snapshots", "checkpointer", "snapshots"},
                {"replica.0", "metrics", "monitor", "metrics", runtime::Lane::kMetrics}};
  plan.links[1].tokens = 1;
  return plan;
}

std::unique_ptr<runtime::Actor> make_actor(const runtime::ActorPlan& plan,
                                           const pipeline::StateExample& example) {
  if (plan.kind == "coordinator") {
    actors::CoordinatorOptions options;
    options.state = std::make_shared<const pipeline::TrainingState>(
        pipeline::initial_state(example.layout, example.options, "", {}));
    options.replica_nodes = {"node-1"};
    options.loaders = {};
    options.members = {"node-1"};
    options.validate = false;
    return std::make_unique<actors::Coordinator>(options, std::make_shared<actors::RunOutcome>());
  }
  if (plan.kind == "reducer") {
    return std::make_unique<actors::Reducer>(
        actors::ReducerOptions{1, example.options.micro_batches});
  }
  if (plan.kind == "monitor") {
    actors::MonitorOptions options;
    options.metrics_path = "/dev/null";
    options.losses.resize(example.layout.loss_weights.size());
    options.schedule = example.options.schedule;
    return std::make_unique<actors::Monitor>(options);
  }
  return std::make_unique<Clerk>();
}

void run(runtime::Node& node, runtime::StepScheduler& scheduler) {
  node.turn_gate(runtime::TimePoint{0});
  while (scheduler.run_one()) {
  }
  node.tend();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const runtime::Plan kPlan = plan_of_two();
  static const pipeline::StateExample kExample = pipeline::state_example();
  static const runtime::WireTypes kTypes = [] {
    runtime::WireTypes types;
    actors::add_wire_messages(types, [](const pipeline::TrainingState& state) {
      return pipeline::check_state(state, kExample.layout, kExample.options);
    });
    return types;
  }();
  runtime::ManualClock clock;
  runtime::Log log = runtime::Log::silent();
  runtime::StepScheduler scheduler(1, clock);
  TalkWire wire(clock);
  runtime::GateOptions options;
  options.node = "head";
  options.terms = {{"topology", "0123456789abcdef"}};
  const runtime::ActorFactory make = [](const runtime::ActorPlan& plan) {
    return make_actor(plan, kExample);
  };
  runtime::Node node(kPlan, make, {}, clock, log, runtime::Uplink{options, wire, kTypes, false},
                     &scheduler);
  node.begin();
  for (fuzz::Line& line : fuzz::talk_of(std::as_bytes(std::span(data, size)))) {
    wire.add(std::move(line));
    run(node, scheduler);
  }
  node.request_stop();
  // In small steps: a node that has slept itself forgives the others their silence.
  for (int i = 0; i < 600 && !node.tend(); ++i) {
    clock.advance(std::chrono::milliseconds(100));
    run(node, scheduler);
  }
  CHECK(node.end().unstopped.empty(), "the node did not end");
  return 0;
}

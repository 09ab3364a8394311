// An unknown peer at the gate of a head, which may say anything in any order: connect, speak, fall
// silent, close, come back, and play the member that trains, with the other Reducer of a ring of
// two. The head must refuse or survive it, and end when it is asked to.

#include <memory>
#include <span>

#include "actors/coordinator.h"
#include "actors/message_fields.h"
#include "actors/messages.h"
#include "actors/monitor.h"
#include "actors/reducer.h"
#include "fuzz/contributor.h"
#include "fuzz/talk.h"
#include "fuzz/talk_wire.h"
#include "runtime/actor.h"
#include "runtime/base/error.h"
#include "runtime/node/node.h"
#include "runtime/step_scheduler.h"
#include "tests/pipeline/state_example.h"

namespace {

using namespace troupe;

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

// A head that trains, and one member.
runtime::Plan plan_of_two() {
  runtime::Plan plan;
  plan.actors = {{"coordinator", "coordinator", "", false, "head"},
                 {"reducer.0", "reducer", "coordinator", false, "head"},
                 {"replica.0", "contributor", "coordinator", false, "head"},
                 {"checkpointer", "clerk", "coordinator", false, "head"},
                 {"monitor", "monitor", "coordinator", false, "head"},
                 {"node-1", "clerk", "", false, "node-1"},
                 {"reducer.1", "clerk", "node-1", false, "node-1"},
                 {"replica.1", "clerk", "node-1", false, "node-1"}};
  plan.links = {{"reducer.1", "ring.0", "reducer.0", "ring"},
                {"reducer.0", "ring.1", "reducer.1", "ring"},
                {"replica.1", "snapshots", "checkpointer", "snapshots"},
                {"replica.1", "metrics", "monitor", "metrics", runtime::Lane::kMetrics},
                {"replica.0", "contributions", "reducer.0", "contributions"},
                {"reducer.0", "reduced.0", "replica.0", "reduced"},
                {"node-1", "reports", "monitor", "metrics", runtime::Lane::kMetrics}};
  plan.links[0].tokens = 1;
  plan.links[5].tokens = 1;
  return plan;
}

std::unique_ptr<runtime::Actor> make_coordinator(const pipeline::StateExample& example) {
  actors::CoordinatorOptions options;
  options.state = std::make_shared<const pipeline::TrainingState>(
      pipeline::initial_state(example.layout, example.options, "", {}));
  options.membership.ring = {0, 1};
  // The first replica has one micro-batch.
  options.membership.weights = {1, example.options.micro_batches - 1};
  options.membership.micro_batches = example.options.micro_batches;
  options.member_slots = {{"", "reducer.0"}, {"node-1", "reducer.1"}};
  options.validate = false;
  return std::make_unique<actors::Coordinator>(options, std::make_shared<actors::RunOutcome>());
}

std::unique_ptr<runtime::Actor> make_actor(const runtime::ActorPlan& plan,
                                           const pipeline::StateExample& example) {
  if (plan.kind == "coordinator") return make_coordinator(example);
  if (plan.kind == "contributor") return std::make_unique<fuzz::Contributor>(0, false);
  if (plan.kind == "reducer") {
    actors::ReducerOptions options;
    options.micro_batches = example.options.micro_batches;
    options.events = 0;
    return std::make_unique<actors::Reducer>(options);
  }
  if (plan.kind == "monitor") {
    static runtime::FileDisk disk;
    actors::MonitorOptions options;
    options.sinks.metrics_path = "/dev/null";
    options.sinks.history = std::make_shared<telemetry::History>();
    options.sample = [] { return telemetry::NodeSample{}; };
    options.losses.resize(example.layout.loss_weights.size());
    options.schedule = example.options.schedule;
    return std::make_unique<actors::Monitor>(options, disk);
  }
  return std::make_unique<Clerk>();
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
  fuzz::TalkWire wire(clock, "");
  runtime::GateOptions options;
  options.node = "head";
  options.terms = {{"topology", "0123456789abcdef"}};
  const runtime::ActorFactory make = [](const runtime::ActorPlan& plan) {
    return make_actor(plan, kExample);
  };
  runtime::Node node(kPlan, make, {}, clock, log, runtime::Uplink{options, wire, kTypes, false},
                     &scheduler);
  std::vector<fuzz::Line> talk = fuzz::talk_of(std::as_bytes(std::span(data, size)));
  // There is one unknown peer.
  for (fuzz::Line& line : talk) line.speaker = 0;
  fuzz::hold_talk(node, wire, scheduler, clock, std::move(talk));
  return 0;
}

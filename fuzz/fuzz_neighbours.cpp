// A member among unknown peers: the head that it dials, the neighbour that it dials when the head
// says so, and the neighbour that dials it may say anything in any order: tell of others, introduce
// themselves, pass on what they like in the ring, fall silent, close and come back. The member must
// refuse or survive it, and end when it is asked to.

#include <memory>
#include <span>

#include "actors/member.h"
#include "actors/message_fields.h"
#include "actors/messages.h"
#include "actors/reducer.h"
#include "fuzz/contributor.h"
#include "fuzz/talk.h"
#include "fuzz/talk_wire.h"
#include "runtime/actor.h"
#include "runtime/base/error.h"
#include "runtime/node/node.h"
#include "runtime/step_scheduler.h"

namespace {

using namespace troupe;

constexpr const char* kHeadAddress = "tcp://127.0.0.1:8500";

// In the place of everyone on the other nodes.
class Nobody final : public runtime::Actor {
 public:
  void receive(runtime::Context&, runtime::Message) override {}
};

// A ring of three members; the one in the middle is real. It dials the one that is named before it.
runtime::Plan plan_of_ring() {
  runtime::Plan plan;
  plan.actors = {{"coordinator", "nobody", "", false, "head"},
                 {"member.0", "nobody", "", false, "member.0"},
                 {"reducer.0", "nobody", "member.0", false, "member.0"},
                 {"member.1", "member", "", false, "member.1"},
                 {"replica.1", "contributor", "member.1", false, "member.1"},
                 {"reducer.1", "reducer", "member.1", false, "member.1"},
                 {"member.2", "nobody", "", false, "member.2"},
                 {"reducer.2", "nobody", "member.2", false, "member.2"}};
  plan.links = {{"reducer.0", "ring.1", "reducer.1", "ring"},
                {"reducer.1", "ring.2", "reducer.2", "ring"},
                {"reducer.2", "ring.0", "reducer.0", "ring"},
                {"replica.1", "contributions", "reducer.1", "contributions"},
                {"reducer.1", "reduced.1", "replica.1", "reduced"},
                {"reducer.1", "ring.0", "reducer.0", "ring"},
                {"reducer.2", "ring.1", "reducer.1", "ring"},
                {"reducer.0", "ring.2", "reducer.2", "ring"}};
  for (runtime::LinkPlan& link : plan.links)
    link.tokens = link.from_port == "contributions" ? 0 : 1;
  return plan;
}

std::unique_ptr<runtime::Actor> make_actor(const runtime::ActorPlan& plan) {
  if (plan.kind == "member") return std::make_unique<actors::Member>();
  if (plan.kind == "contributor") return std::make_unique<fuzz::Contributor>(1, true);
  if (plan.kind == "reducer") {
    actors::ReducerOptions options;
    options.first_replica = 1;
    options.micro_batches = 3;
    options.events = 0;
    options.member = 1;
    options.lossy = pipeline::ReductionFormat::kInt8;
    options.slot_floats = {fuzz::Contributor::kElements};
    return std::make_unique<actors::Reducer>(options);
  }
  return std::make_unique<Nobody>();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const runtime::Plan kPlan = plan_of_ring();
  static const runtime::WireTypes kTypes = [] {
    runtime::WireTypes types;
    actors::add_wire_messages(types);
    return types;
  }();
  runtime::ManualClock clock;
  runtime::Log log = runtime::Log::silent();
  runtime::StepScheduler scheduler(1, clock);
  fuzz::TalkWire wire(clock, kHeadAddress);
  runtime::GateOptions options;
  options.node = "member.1";
  options.head_address = kHeadAddress;
  options.terms = {{"topology", "0123456789abcdef"}};
  // A head that never answers is given up before the talk's end is.
  options.dial_within = std::chrono::seconds(10);
  runtime::Node node(kPlan, make_actor, {}, clock, log,
                     runtime::Uplink{options, wire, kTypes, false}, &scheduler);
  fuzz::hold_talk(node, wire, scheduler, clock,
                  fuzz::talk_of(std::as_bytes(std::span(data, size))));
  return 0;
}

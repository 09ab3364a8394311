// Members that are to talk to each other are connected before they have something to say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/message_fields.h"
#include "actors/reducer.h"
#include "tests/runtime/stage.h"
#include "tests/sim/world.h"

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;
using runtime::Context;
using runtime::Message;
using runtime::Script;
using runtime::ScriptedActor;
using testing::ElementsAre;

// Notes whom a process asks the first one for.
class Wishes final : public NetworkWatcher {
 public:
  explicit Wishes(const runtime::WireTypes& types) : types_(types) {}
  void sent(const Passage& passage) override {
    const auto read = unpack(*passage.packet, types_);
    if (!read.ok()) return;
    const auto* wanted = std::get_if<runtime::Wanted>(&*read);
    if (wanted != nullptr) names_.insert(names_.end(), wanted->nodes.begin(), wanted->nodes.end());
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  const runtime::WireTypes& types_;
  std::vector<std::string> names_;
};

// Nobody has contributed anything yet.
TEST(SimulatedMeeting, ReducerThatIsToldOfAViewMeetsTheNextInTheRing) {
  runtime::Plan plan;
  plan.actors = {{"coordinator", "coordinator", "", false, "head"},
                 {"member.0", "root", "", false, "member.0"},
                 {"reducer", "reducer", "member.0", false, "member.0"},
                 {"replica", "replica", "member.0", false, "member.0"},
                 {"member.1", "root", "", false, "member.1"}};
  plan.links = {{"reducer", "ring.1", "member.1", "ring"},
                {"reducer", "reduced.0", "replica", "reduced"}};
  Script coordinator, other;
  coordinator.start = [](Context& context) { context.after(1s); };
  coordinator.timer = [](Context& context, runtime::TimerId) {
    auto view = std::make_shared<pipeline::View>();
    view->id = {1, 1};
    view->ring = {0, 1};
    view->reached = {0, 0};
    view->owners = {0, 1};
    context.send_control("reducer", Message::of(actors::ViewMessage{std::move(view)}));
  };
  runtime::WireTypes types;
  actors::add_wire_messages(types, nullptr);
  World world(1, types);
  Wishes wishes(types);
  for (const char* node : {"head", "member.0", "member.1"}) {
    ProcessSetup setup;
    setup.factory = [&](const runtime::ActorPlan& actor) -> std::unique_ptr<runtime::Actor> {
      if (actor.kind == "coordinator") return std::make_unique<ScriptedActor>(coordinator);
      if (actor.kind != "reducer") return std::make_unique<ScriptedActor>(other);
      actors::ReducerOptions options;
      options.micro_batches = 2;
      return std::make_unique<actors::Reducer>(options);
    };
    world.add(plan, node, std::move(setup));
  }
  world.network().watch(wishes);
  (void)world.run(3s);
  EXPECT_THAT(wishes.names(), ElementsAre("member.1"));
}

}  // namespace
}  // namespace troupe::sim

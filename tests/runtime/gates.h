#pragma once

// A stage for tests of what nodes say to each other: scripted actors on several nodes, over
// simulated wires.

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/stage.h"
#include "tests/sim/world.h"

namespace troupe::runtime {

template <class Archive>
void fields(Archive& archive, Like<Number> auto& body) {
  archive.integer("value", body.value);
}

inline const WireTypes& number_types() {
  static const WireTypes kTypes = [] {
    WireTypes types;
    types.add<Number>();
    return types;
  }();
  return kTypes;
}

// Calls back for every packet that is sent.
class Tap final : public sim::NetworkWatcher {
 public:
  explicit Tap(std::function<void(const sim::Passage&, const AnyPacket&)> sent)
      : sent_(std::move(sent)) {}
  void sent(const sim::Passage& passage) override {
    const auto read = unpack(*passage.packet, number_types());
    ASSERT_TRUE(read.ok()) << read.error().message;
    sent_(passage, *read);
  }

 private:
  std::function<void(const sim::Passage&, const AnyPacket&)> sent_;
};

// Nodes "a", "b", ... with scripted actors, over simulated wires. Every node's root is told what
// happens to peers, notes it, and ends with an error when one is lost.
class Gates : public ::testing::Test {
 protected:
  struct Told {
    TimePoint when;
    std::string what;  // "joined a", "left a", "lost a: why"
  };

  Gates() { make_world(1); }
  void make_world(std::uint64_t seed) {
    world_ = std::make_unique<sim::World>(
        seed, number_types(), sim::NetworkOptions{},
        [this](std::string_view line) { trace_ += std::string(line) + "\n"; });
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(trace_.c_str(), stderr);
  }

  // The first actor of a node is its root.
  void actor(const std::string& node, const std::string& name, Script script) {
    std::string owner;
    for (const ActorPlan& other : plan_.actors) {
      if (other.node == node && other.owner.empty()) owner = other.name;
    }
    plan_.actors.push_back({name, "scripted", owner, false, node});
    scripts_[name] = std::move(script);
  }
  void link(const std::string& from, const std::string& to, std::int64_t credits,
            Lane lane = Lane::kData) {
    plan_.links.push_back({from, "out", to, "in", lane, credits, 1 << 20, 1});
  }

  // A root that ends when `children` of its children and `peers` other nodes have ended.
  Script root(const std::string& node, int children, int peers = 0) {
    Script script;
    auto left = std::make_shared<int>(children + peers);
    const auto count = [left](Context& context) {
      if (--*left == 0) context.finish();
    };
    script.child_ended = [count](Context& context, const ChildEnd& end) {
      if (end.error) return ChildDecision::kEscalate;
      count(context);
      return ChildDecision::kIgnore;
    };
    script.receive = [this, node, peers, count](Context& context, Message message) {
      std::vector<Told>& told = told_[node];
      if (const auto* joined = message.as<PeerJoined>()) {
        told.push_back({context.now(), "joined " + joined->node});
      } else if (const auto* left_peer = message.as<PeerLeft>()) {
        told.push_back({context.now(), "left " + left_peer->node});
        if (peers > 0) count(context);
      } else if (const auto* lost = message.as<PeerLost>()) {
        told.push_back({context.now(), "lost " + lost->node + ": " + lost->error.message});
        context.fail(lost->error);
      }
    };
    return script;
  }

  // For a process that runs the plan's node.
  sim::ProcessId add(const std::string& node, sim::ProcessSetup setup = {}) {
    setup.factory = [this](const ActorPlan& plan) {
      return std::make_unique<ScriptedActor>(scripts_.at(plan.name));
    };
    return world_->add(plan_, node, std::move(setup));
  }
  std::string told(const std::string& node) const {
    std::string all;
    const auto found = told_.find(node);
    if (found == told_.end()) return all;
    for (const Told& told : found->second) all += told.what + "\n";
    return all;
  }
  std::string error_of(sim::ProcessId process) const {
    const auto& end = world_->end(process);
    if (!end) return "not ended";
    return end->error ? end->error->message : "";
  }
  LinkStats stats_of(sim::ProcessId process, const std::string& from) {
    for (const LinkStats& stats : world_->node(process).link_stats()) {
      if (stats.plan.from == from) return stats;
    }
    return {};
  }

  std::string trace_;
  Plan plan_;
  std::map<std::string, Script> scripts_;
  std::map<std::string, std::vector<Told>> told_;
  std::unique_ptr<sim::World> world_;
};

// Notes the numbers it is sent, and ends after `count` of them.
inline Script noting_receiver(std::vector<std::int64_t>& numbers, std::size_t count) {
  Script script;
  script.receive = [&numbers, count](Context& context, Message message) {
    numbers.push_back(message.as<Number>()->value);
    if (numbers.size() == count) context.finish();
  };
  return script;
}

}  // namespace troupe::runtime

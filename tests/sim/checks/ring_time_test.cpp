// How long an all-reduce takes over simulated wires that have a rate and a delay, and nothing else
// does take time: what docs/performance.md says of it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "actors/reducer.h"
#include "config/plan.h"
#include "config/plan_links.h"
#include "launch/meeting/node_uplink.h"
#include "pipeline/steps/buckets.h"
#include "pipeline/steps/ring_rows.h"
#include "pipeline/steps/ring_schedule.h"
#include "tests/runtime/stage.h"
#include "tests/sim/training/training_play.h"
#include "tests/support/stride.h"

namespace troupe::sim {
namespace {

using actors::BucketMessage;
using actors::HeaderMessage;
using actors::ViewMessage;
using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::Script;
using namespace std::chrono_literals;

struct Ring {
  std::uint32_t members = 2;
  std::int64_t elements = 100'000;  // of 8 bytes
  std::int64_t segment_bytes = 1 << 20;
  double bytes_per_second = 12.5e6;
  double delay = 1e-3;  // seconds
  std::vector<std::uint32_t> rows{};

  double bytes() const { return 8.0 * static_cast<double>(elements); }
};

constexpr std::uint64_t kSteps = 2;  // in the first the members have to meet

pipeline::View view_of(const Ring& ring) {
  pipeline::View view;
  view.id = {1, 1};
  view.ring.resize(ring.members);
  std::iota(view.ring.begin(), view.ring.end(), 0);
  view.owners = view.ring;
  view.rows = ring.rows;
  view.reached.assign(ring.members, 0);
  return view;
}

// Contributes to one after the other and notes when each was reduced.
Script contributor(const Ring& ring, std::uint32_t number, World& world,
                   std::vector<TimePoint>& reduced, std::uint32_t& ended) {
  struct Part {
    std::uint64_t step = 0;
    std::int64_t received = 0;
    std::deque<Message> out;
  };
  const auto part = std::make_shared<Part>();
  const auto contribute = [part, ring](Context& context) {
    const auto buckets = pipeline::make_buckets(ring.elements, ring.segment_bytes, ring.members);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      part->out.push_back(
          Message::of(BucketMessage{part->step, 0, static_cast<std::uint32_t>(i), buckets[i].offset,
                                    buckets[i].end(), buckets[i].kind, view_of(ring).id},
                      {Buffer::zeroed(buckets[i].bytes())}));
    }
    HeaderMessage header;
    header.view = view_of(ring).id;
    header.header.step = part->step;
    header.header.micro_batches = 1;
    header.header.events = 1;
    part->out.push_back(Message::of(std::move(header)));
    while (!part->out.empty() && context.send("contributions", part->out.front())) {
      part->out.pop_front();
    }
  };
  Script script;
  // It owns the reducer of its node, and tells it what the coordinator would.
  script.start = [ring, number](Context& context) {
    auto view = std::make_shared<const pipeline::View>(view_of(ring));
    context.send_control(fmt::format("reducer.{}", number), Message::of(ViewMessage{view}));
  };
  script.credit_returned = [part](Context& context, std::string_view) {
    while (!part->out.empty() && context.send("contributions", part->out.front())) {
      part->out.pop_front();
    }
  };
  script.receive = [=, &world, &reduced, &ended](Context& context, const Message& message) {
    if (message.as<ViewMessage>() != nullptr) return contribute(context);
    if (const auto* bucket = message.as<BucketMessage>())
      part->received += bucket->end - bucket->begin;
    if (message.as<HeaderMessage>() == nullptr) return;
    EXPECT_EQ(std::exchange(part->received, 0), ring.elements) << "member " << number;
    reduced[part->step] = std::max(reduced[part->step], world.clock().now());
    if (++part->step < kSteps) return contribute(context);
    if (++ended == ring.members) world.stop();
  };
  return script;
}

runtime::Plan plan_of(const Ring& ring) {
  runtime::Plan plan;
  plan.actors.push_back({"coordinator", "coordinator", "", false, config::kHeadNode});
  std::vector<std::string> reducers;
  for (std::uint32_t i = 0; i < ring.members; ++i) {
    const std::string node = config::member_name(i);
    const std::string replica = fmt::format("replica.{}", i);
    reducers.push_back(fmt::format("reducer.{}", i));
    plan.actors.push_back({replica, "replica", "", false, node});
    plan.actors.push_back({reducers.back(), "reducer", replica, false, node});
    constexpr std::int64_t kMessages = 1 << 16, kBytes = std::int64_t{1} << 40;
    plan.links.push_back({replica, "contributions", reducers.back(), "contributions",
                          runtime::Lane::kData, kMessages, kBytes, 0});
    plan.links.push_back({reducers.back(), fmt::format("reduced.{}", i), replica, "reduced",
                          runtime::Lane::kData, kMessages, kBytes, 1});
  }
  config::Topology topology;
  topology.reducer.segment_bytes = ring.segment_bytes;
  config::add_ring_links({topology, {0, ring.elements, 0}, ring.members}, reducers, plan);
  // Ends of links that nothing uses would only take the simulator's time.
  const pipeline::BucketRoutes routes(ring.members, ring.rows);
  for (const runtime::MeshPlan& mesh : std::exchange(plan.meshes, {})) {
    for (std::uint32_t from = 0; from < ring.members; ++from) {
      for (const std::uint32_t to : routes.next_of(from)) {
        plan.links.push_back(mesh.link(from, to));
      }
    }
  }
  return plan;
}

// Seconds of the second step.
double simulated(const Ring& ring) {
  static TrainingStage stage;
  const launch::TrainingSetup& setup = stage.setup(2);
  const runtime::WireTypes types = launch::wire_types(*setup.gan, setup.options);
  NetworkOptions network;
  network.least_delay = network.most_delay =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(ring.delay));
  network.bytes_per_second = ring.bytes_per_second;
  World world(1, types, network);
  const runtime::Plan plan = plan_of(ring);
  std::vector<TimePoint> reduced(kSteps, TimePoint(0));
  std::uint32_t ended = 0;
  ProcessSetup head;
  head.factory = [](const runtime::ActorPlan&) {
    return std::make_unique<runtime::ScriptedActor>(Script{});
  };
  world.add(plan, config::kHeadNode, head);
  for (std::uint32_t i = 0; i < ring.members; ++i) {
    ProcessSetup member;
    member.factory = [&, i](const runtime::ActorPlan& actor) -> std::unique_ptr<runtime::Actor> {
      if (actor.kind != "reducer") {
        return std::make_unique<runtime::ScriptedActor>(
            contributor(ring, i, world, reduced, ended));
      }
      actors::ReducerOptions options;
      options.first_replica = i;
      options.member = i;
      options.micro_batches = ring.members;
      options.events = ring.members;
      return std::make_unique<actors::Reducer>(options);
    };
    world.add(plan, config::member_name(i), std::move(member));
  }
  world.run(1000s, 20'000'000);
  EXPECT_EQ(ended, ring.members);
  return std::chrono::duration<double>(reduced[1] - reduced[0]).count();
}

// The figures of docs/performance.md.
double predicted(const Ring& ring) {
  const double rows = ring.rows.empty() ? 1.0 : static_cast<double>(ring.rows.size());
  const double length = std::ceil(ring.members / rows);
  const double bucket =
      8.0 *
      static_cast<double>(
          pipeline::make_buckets(ring.elements, ring.segment_bytes, ring.members).back().size);
  const auto turn = [&](double members) {
    const double busy = ring.bytes() / members / ring.bytes_per_second;
    return std::max(busy, ring.delay + bucket / ring.bytes_per_second);
  };
  return 2 * (length - 1) * turn(length) + 2 * (rows - 1) * turn(length * rows);
}

TEST(RingTime, IsWhatTheModelSays) {
  const auto many = static_cast<std::uint32_t>(32 / stride(6));
  const Ring rings[] = {
      {.members = 2},
      {.members = 4, .delay = 0.02},
      {.members = 8, .elements = 1'000'000},
      {.members = 4, .segment_bytes = 16 << 10},
      {.members = 4, .segment_bytes = 16 << 10, .delay = 0.05},
      {.members = static_cast<std::uint32_t>(64 / stride(4)), .elements = 1'000'000},
      {.members = 16, .rows = pipeline::even_rows(16, 4)},
      {.members = 16, .delay = 1e-5, .rows = pipeline::even_rows(16, 4)},
      {.members = 25, .delay = 0.02, .rows = pipeline::even_rows(25, 5)},
      {.members = many * many, .rows = pipeline::even_rows(many * many, many)},
  };
  for (const Ring& ring : rings) {
    const double seconds = simulated(ring), model = predicted(ring);
    const auto where = fmt::format("{} members in {} rows, segments of {}, {} s", ring.members,
                                   ring.rows.size(), ring.segment_bytes, ring.delay);
    EXPECT_LT(seconds, 1.1 * model) << where;
    // In the model a column begins behind all rows, and not as soon as a bucket comes.
    EXPECT_GT(seconds, (ring.rows.empty() ? 0.9 : 0.8) * model) << where;
  }
}

}  // namespace
}  // namespace troupe::sim

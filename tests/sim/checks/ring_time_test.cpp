// How long an all-reduce takes over simulated wires that have a rate and a delay, and nothing else
// does take time: what docs/performance.md says of it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "actors/coordinator.h"
#include "actors/member.h"
#include "actors/reducer.h"
#include "config/plan.h"
#include "config/plan_links.h"
#include "launch/meeting/node_uplink.h"
#include "pipeline/steps/buckets.h"
#include "pipeline/steps/ring_rows.h"
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
  double delay = 1e-3;   // seconds
  bool in_rows = false;  // a ring of rings
  // So many members join, one each second from kFirstChange on, and as many others leave.
  std::uint32_t newcomers = 0;

  double bytes() const { return 8.0 * static_cast<double>(elements); }
  double bucket_bytes() const {
    return 8.0 * static_cast<double>(
                     pipeline::make_buckets(elements, segment_bytes, members).back().size);
  }
  std::uint32_t places() const { return members + newcomers; }
};

constexpr std::uint64_t kSteps = 2;  // in the first the members have to meet
constexpr Duration kFirstChange = 2s;

// When each step was reduced by the last of those that contributed to it.
class StepTimes {
 public:
  void note(std::uint64_t step, TimePoint now) {
    if (ends_.size() <= step) {
      // All have the steps before, without which none contributes to this one.
      if (when_complete) when_complete(ends_.size());
      ends_.resize(step + 1);
    }
    ends_[step] = std::max(ends_[step], now);
  }
  double mean_between(TimePoint from, TimePoint to) const {
    const auto first = std::ranges::lower_bound(ends_, from);
    const auto last = std::ranges::lower_bound(ends_, to) - 1;
    return runtime::seconds(*last - *first) / static_cast<double>(last - first);
  }
  double last() const { return runtime::seconds(ends_[kSteps - 1] - ends_[kSteps - 2]); }

  std::function<void(std::uint64_t steps)> when_complete;

 private:
  std::vector<TimePoint> ends_;
};

// A replica that computes nothing: it contributes to one step after the other, in the View that its
// reducer tells, and notes when each was reduced. A newcomer's says that it has learned.
class Contributor {
 public:
  Contributor(const Ring& ring, std::uint32_t number, World& world, StepTimes& times)
      : ring_(ring), number_(number), world_(world), times_(times) {}

  void receive(Context& context, const Message& message) {
    if (const auto* told = message.as<ViewMessage>()) {
      if (view_ == nullptr && lessons_ > 0) learned(context, true);
      view_ = told->view;
      step_ = std::max(step_, view_->first_step);
      received_.clear();
      contribute(context);
    } else if (const auto* bucket = message.as<BucketMessage>()) {
      received_[bucket->begin] = bucket->end - bucket->begin;
    } else if (const auto* header = message.as<HeaderMessage>()) {
      take(context, *header);
    }
  }
  void flush(Context& context) {
    while (!out_.empty() && context.send("contributions", out_.front())) out_.pop_front();
  }

 private:
  void take(Context& context, const HeaderMessage& message) {
    std::int64_t received = 0;
    for (const auto& [begin, elements] : std::exchange(received_, {})) received += elements;
    EXPECT_EQ(received, ring_.elements) << "member " << number_;
    EXPECT_EQ(message.header.micro_batches, ring_.members) << "member " << number_;
    step_ = message.header.step + 1;
    if (view_ == nullptr) {
      if (++lessons_ == actors::kProvenSteps) learned(context, false);
      return;
    }
    times_.note(message.header.step, world_.clock().now());
    contribute(context);
  }
  void learned(Context& context, bool complete) const {
    context.send_control("coordinator", Message::of(actors::Learned{number_, lessons_, complete}));
  }
  void contribute(Context& context) {
    const std::vector<std::uint32_t>& owners = view_->owners_in(step_);
    const auto own = static_cast<std::uint32_t>(std::ranges::count(owners, number_));
    if (own == 0) {
      context.send_control("coordinator", Message::of(actors::Pace{number_, step_, 0, 0.0}));
    }
    const auto buckets = pipeline::make_buckets(ring_.elements, ring_.segment_bytes,
                                                static_cast<std::uint32_t>(view_->ring.size()));
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      out_.push_back(
          Message::of(BucketMessage{step_, 0, static_cast<std::uint32_t>(i), buckets[i].offset,
                                    buckets[i].end(), buckets[i].kind, view_->id},
                      {Buffer::zeroed(buckets[i].bytes())}));
    }
    HeaderMessage header;
    header.view = view_->id;
    header.header.step = step_;
    header.header.micro_batches = own;
    header.header.events = own;
    out_.push_back(Message::of(std::move(header)));
    flush(context);
  }

  const Ring ring_;
  const std::uint32_t number_;
  World& world_;
  StepTimes& times_;
  actors::ViewPointer view_;
  std::uint64_t step_ = 0, lessons_ = 0;
  // Elements of each part of the sums, by its first.
  std::map<std::int64_t, std::int64_t> received_;
  std::deque<Message> out_;
};

Script script_of(std::shared_ptr<Contributor> contributor) {
  Script script;
  script.receive = [contributor](Context& context, const Message& message) {
    contributor->receive(context, message);
  };
  script.credit_returned = [contributor](Context& context, std::string_view) {
    contributor->flush(context);
  };
  return script;
}

runtime::Plan plan_of(const Ring& ring) {
  runtime::Plan plan;
  plan.actors.push_back({"coordinator", "coordinator", "", false, config::kHeadNode});
  plan.actors.push_back({"monitor", "monitor", "coordinator", false, config::kHeadNode});
  std::vector<std::string> reducers;
  for (std::uint32_t i = 0; i < ring.places(); ++i) {
    const std::string node = config::member_name(i);
    const std::string replica = actors::replica_name(i);
    reducers.push_back(fmt::format("reducer.{}", i));
    plan.actors.push_back({node, "member", "", false, node});
    plan.actors.push_back({replica, "replica", node, false, node});
    plan.actors.push_back({reducers.back(), "reducer", node, false, node});
    constexpr std::int64_t kMessages = 1 << 16, kBytes = std::int64_t{1} << 40;
    plan.links.push_back({replica, "contributions", reducers.back(), "contributions",
                          runtime::Lane::kData, kMessages, kBytes, 0});
    plan.links.push_back({reducers.back(), fmt::format("reduced.{}", i), replica, "reduced",
                          runtime::Lane::kData, kMessages, kBytes, 1});
  }
  config::Topology topology;
  topology.reducer.segment_bytes = ring.segment_bytes;
  config::add_ring_links({topology, {0, ring.elements, 0}, ring.places()}, reducers, plan);
  return plan;
}

pipeline::RingCosts costs_of(const Ring& ring) {
  pipeline::RingCosts costs;
  costs.step_bytes = ring.bytes();
  costs.bucket_bytes = ring.bucket_bytes();
  if (!ring.in_rows) costs.least = ring.places();
  return costs;
}

actors::CoordinatorOptions coordinator_options(const Ring& ring, actors::StatePointer state) {
  actors::CoordinatorOptions options;
  options.state = std::move(state);
  options.membership.ring.resize(ring.members);
  std::iota(options.membership.ring.begin(), options.membership.ring.end(), 0);
  options.membership.weights.assign(ring.places(), 1);
  options.membership.micro_batches = ring.members;
  options.membership.costs = costs_of(ring);
  options.shares_anew = false;
  options.member_slots.clear();
  for (std::uint32_t i = 0; i < ring.places(); ++i) {
    options.member_slots.push_back({config::member_name(i), fmt::format("reducer.{}", i)});
  }
  return options;
}

// Joins and leaves as Ring::newcomers has them.
void plan_changes(const Ring& ring, World& world) {
  for (std::uint32_t i = 0; i < ring.newcomers; ++i) {
    // Members between the first, which teaches, and the last.
    const ProcessId leaver = 1 + ring.members * (i + 1) / (ring.newcomers + 1);
    world.at(kFirstChange + i * 1s + 500ms,
             [&world, leaver] { world.node(leaver).request_stop(); });
  }
}

struct Simulated {
  StepTimes steps;
  std::shared_ptr<actors::RunOutcome> outcome = std::make_shared<actors::RunOutcome>();
};

Simulated simulate(const Ring& ring) {
  static TrainingStage stage;
  const launch::TrainingSetup& setup = stage.setup(2);
  const runtime::WireTypes types = launch::wire_types(*setup.gan, setup.options);
  NetworkOptions network;
  network.least_delay = network.most_delay =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(ring.delay));
  network.bytes_per_second = ring.bytes_per_second;
  World world(1, types, network);
  const runtime::Plan plan = plan_of(ring);
  Simulated simulated;
  ProcessSetup head;
  head.factory = [&](const runtime::ActorPlan& actor) -> std::unique_ptr<runtime::Actor> {
    if (actor.kind != "coordinator") return std::make_unique<runtime::ScriptedActor>(Script{});
    return std::make_unique<actors::Coordinator>(coordinator_options(ring, stage.initial_state()),
                                                 simulated.outcome);
  };
  world.add(plan, config::kHeadNode, head);
  for (std::uint32_t i = 0; i < ring.places(); ++i) {
    ProcessSetup member;
    member.factory = [&, i](const runtime::ActorPlan& actor) -> std::unique_ptr<runtime::Actor> {
      if (actor.kind == "replica") {
        return std::make_unique<runtime::ScriptedActor>(
            script_of(std::make_shared<Contributor>(ring, i, world, simulated.steps)));
      }
      if (actor.kind == "member") {
        actors::MemberOptions options;
        options.reducer = fmt::format("reducer.{}", i);
        return std::make_unique<actors::Member>(options);
      }
      actors::ReducerOptions options;
      options.first_replica = i;
      options.member = i;
      options.micro_batches = ring.members;
      options.events = ring.members;
      return std::make_unique<actors::Reducer>(options);
    };
    if (i >= ring.members) member.start = kFirstChange + (i - ring.members) * 1s;
    world.add(plan, config::member_name(i), std::move(member));
  }
  plan_changes(ring, world);
  const Duration end = ring.newcomers == 0 ? 0s : kFirstChange + ring.newcomers * 1s + 1s;
  bool has_ended = false;
  simulated.steps.when_complete = [&](std::uint64_t steps) {
    has_ended = steps >= kSteps && world.clock().now() >= end;
    if (has_ended) world.stop();
  };
  world.run(1000s, 200'000'000);
  CHECK(has_ended, "all members go on with steps");
  simulated.steps.when_complete = nullptr;
  return simulated;
}

// The figures of docs/performance.md.
double predicted(const Ring& ring) {
  std::vector<std::uint32_t> members(ring.members);
  std::iota(members.begin(), members.end(), 0);
  const auto rows = static_cast<double>(
      std::max<std::size_t>(pipeline::ring_rows(members, costs_of(ring)).size(), 1));
  const double length = std::ceil(ring.members / rows);
  const auto turn = [&](double members) {
    const double busy = ring.bytes() / members / ring.bytes_per_second;
    return std::max(busy, ring.delay + ring.bucket_bytes() / ring.bytes_per_second);
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
      {.members = 16, .in_rows = true},
      {.members = 16, .delay = 1e-5, .in_rows = true},
      {.members = 25, .delay = 0.02, .in_rows = true},
      {.members = many * many, .in_rows = true},
  };
  for (const Ring& ring : rings) {
    const double seconds = simulate(ring).steps.last(), model = predicted(ring);
    const auto where = fmt::format("{} members{}, segments of {}, {} s", ring.members,
                                   ring.in_rows ? " in rows" : "", ring.segment_bytes, ring.delay);
    EXPECT_LT(seconds, 1.1 * model) << where;
    // In the model a column begins behind all rows, and not as soon as a bucket comes.
    EXPECT_GT(seconds, (ring.in_rows ? 0.8 : 0.9) * model) << where;
  }
}

// Each second one joins and one leaves, behind a first in which all have met.
TEST(RingTime, IsThatOfTheModelWhileMembersComeAndGoEverySecond) {
  const Ring ring{.members = 25, .in_rows = true, .newcomers = 3};
  const Simulated simulated = simulate(ring);
  const auto& changes = simulated.outcome->changes;
  std::set<std::string> joined;
  for (const auto& change : changes) joined.insert(change.joined.begin(), change.joined.end());
  EXPECT_EQ(joined.size(), ring.newcomers);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.back().view.ring.size(), ring.members);
  const double seconds =
      simulated.steps.mean_between(kFirstChange, kFirstChange + ring.newcomers * 1s);
  RecordProperty("quiet_step", fmt::format("{:.4f} s", simulated.steps.mean_between(
                                                           kFirstChange / 2, kFirstChange)));
  RecordProperty("step", fmt::format("{:.4f} s", seconds));
  RecordProperty("model", fmt::format("{:.4f} s", predicted(ring)));
  EXPECT_LT(seconds, 1.1 * predicted(ring));
}

}  // namespace
}  // namespace troupe::sim

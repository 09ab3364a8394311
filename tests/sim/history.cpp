#include "tests/sim/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "tests/sim/packet_checker.h"

namespace troupe::sim {
namespace {

using runtime::ActorPlan;
using runtime::Plan;
using namespace std::chrono_literals;

// Long after everything must be over: a run ends itself within 120 s, and its nodes with it.
constexpr TimePoint kLimit = 200s;
constexpr Duration kLastTrouble = 3s;

std::string node_name(std::size_t position) { return fmt::format("node.{}", position); }

template <class Value, std::size_t kCount>
Value one_of(Dice& dice, const Value (&values)[kCount]) {
  return values[dice.below(kCount)];
}

void draw_actors(Dice& dice, HistoryDraft& draft) {
  const std::size_t nodes = 2 + dice.below(3);
  for (std::size_t node = 0; node < nodes; ++node) {
    const std::string root = fmt::format("root.{}", node);
    draft.plan.actors.push_back({root, "root", "", false, node_name(node)});
    draft.workers.emplace_back();
    draft.starts.push_back(dice.one_in(4) ? dice.between(0s, 1s) : Duration(0));
    const std::size_t workers = 1 + dice.below(3);
    for (std::size_t i = 0; i < workers; ++i) {
      const std::string name = fmt::format("worker.{}.{}", node, i);
      draft.plan.actors.push_back({name, "worker", root, false, node_name(node)});
      WorkerTraits traits;
      traits.most_bytes = one_of<std::size_t>(dice, {0, 64, 512, 4096});
      traits.pause = one_of<Duration>(dice, {0s, 0s, 100us, 3ms});
      traits.work = one_of<Duration>(dice, {0s, 0s, 200us, 2ms, 20ms});
      if (dice.one_in(6)) traits.life = dice.between(0s, 1s);
      draft.workers.push_back(std::move(traits));
    }
  }
}

void draw_link(Dice& dice, HistoryDraft& draft) {
  const std::size_t actors = draft.plan.actors.size();
  const std::size_t from = dice.below(actors), to = dice.below(actors);
  const bool workers =
      draft.plan.actors[from].kind == "worker" && draft.plan.actors[to].kind == "worker";
  if (!workers || from == to) return;
  WorkerTraits& traits = draft.workers[from];
  runtime::LinkPlan link;
  link.from = draft.plan.actors[from].name;
  link.from_port = fmt::format("out.{}", traits.outs.size());
  link.to = draft.plan.actors[to].name;
  link.to_port = fmt::format("in.{}", dice.below(2));
  link.lane = one_of(dice, {Lane::kData, Lane::kData, Lane::kData, Lane::kControl, Lane::kMetrics});
  link.message_credits = one_of<std::int64_t>(dice, {1, 2, 3, 8, 32});
  link.byte_credits = one_of<std::int64_t>(dice, {1, 400, 2000, 1 << 20});
  link.tokens = 1;  // circles are meant: what workers make of their own accord needs no input
  WorkerTraits::Out out;
  out.port = link.from_port;
  out.link = static_cast<std::uint32_t>(draft.plan.links.size());
  out.items = one_of<std::uint64_t>(dice, {0, 3, 20, 60});
  // Only upwards, so that what is passed on comes to an end.
  out.relay = to > from && dice.one_in(3);
  traits.outs.push_back(out);
  draft.plan.links.push_back(std::move(link));
}

// Sets off one fault; what it hits is drawn when its time has come.
void make_trouble(World& world, bool deadly, bool mild) {
  Dice& dice = world.dice();
  const TimePoint now = world.clock().now();
  const ProcessId one = dice.below(world.processes());
  const ProcessId other = (one + 1 + dice.below(world.processes() - 1)) % world.processes();
  const Duration while_lasting =
      dice.one_in(3) ? dice.between(300ms, 4s) : dice.between(1ms, 200ms);
  switch (mild ? 0 : dice.below(deadly ? 7 : 6)) {
    case 0:
    case 1: {
      const std::vector<ConnectionId> all = world.network().connections();
      if (all.empty()) return;
      const ConnectionId dropped = all[dice.below(all.size())];
      world.note(one, fmt::format("sees connection #{} break", dropped.number));
      world.network().drop(dropped);
      return;
    }
    case 2:
      world.note(one, fmt::format("cannot exchange anything with process {}", other));
      world.network().block(one, other, now + while_lasting);
      world.network().block(other, one, now + while_lasting);
      return;
    case 3:
      world.note(one, fmt::format("does not get through to process {}", other));
      world.network().block(one, other, now + while_lasting);
      return;
    case 4:
      world.network().slow(one, other, static_cast<int>(dice.below(60) + 2), now + while_lasting);
      return;
    case 5:
      world.pause(one, now + while_lasting);
      return;
    default:
      world.kill(one);
      return;
  }
}

ProcessSetup setup_of(World& world, Ledger& ledger, const HistoryDraft& draft, ProcessId process) {
  ProcessSetup setup;
  setup.gate = draft.gate;
  setup.start = draft.starts[process];
  setup.listens = process == 0 || process != draft.outbound;
  setup.factory = [&world, &ledger, &draft,
                   process](const ActorPlan& actor) -> std::unique_ptr<runtime::Actor> {
    if (actor.kind == "root") {
      std::vector<std::string> roots;
      for (std::size_t i = 0; i < draft.starts.size(); ++i) {
        roots.push_back(fmt::format("root.{}", i));
      }
      return std::make_unique<SimRoot>(world, ledger, process, std::move(roots), draft.mild);
    }
    const auto position = static_cast<std::size_t>(
        std::distance(draft.plan.actors.begin(),
                      std::find(draft.plan.actors.begin(), draft.plan.actors.end(), actor)));
    return std::make_unique<Worker>(world, ledger, process, draft.workers[position]);
  };
  return setup;
}

void check_ends(World& world, Ledger& ledger, bool undisturbed) {
  for (ProcessId id = 0; id < world.processes(); ++id) {
    if (world.killed(id)) continue;
    const auto& end = world.end(id);
    if (!end) {
      ledger.fail(world.name(id) + " has not ended");
    } else if (end->error) {
      ledger.fail(fmt::format("{} ended with: {}", world.name(id), end->error->message));
    } else if (undisturbed &&
               world.log_lines(id).find("has not acknowledged") != std::string::npos) {
      ledger.fail(world.name(id) + " waited in vain for acknowledgements");
    }
  }
}

HistoryEnd summary_of(World& world, const Ledger& ledger) {
  HistoryEnd end;
  end.failures = ledger.failures();
  end.simulated = world.clock().now();
  end.events = world.events();
  end.arrived = ledger.arrived();
  end.came_back = ledger.came_back();
  for (ProcessId one = 0; one < world.processes(); ++one) {
    for (ProcessId other = 0; other < one; ++other) end.parted += world.parted(one, other) ? 1 : 0;
    if (!world.has_node(one)) continue;
    for (const runtime::PeerStats& peer : world.node(one).peer_stats()) {
      end.reconnections += static_cast<int>(std::max<std::int64_t>(0, peer.connections - 1));
    }
  }
  return end;
}

}  // namespace

HistoryDraft draft_of(std::uint64_t seed) {
  Dice dice(runtime::mix64(seed) + 1);
  HistoryDraft draft;
  draw_actors(dice, draft);
  const std::size_t links = 2 + dice.below(8);
  for (std::size_t i = 0; i < links; ++i) draw_link(dice, draft);
  draft.gate.heartbeat = one_of<Duration>(dice, {50ms, 200ms, 500ms});
  draft.gate.dial_within = 5s;
  draft.network.most_delay = one_of<Duration>(dice, {100us, 2ms, 10ms});
  if (!dice.one_in(4)) draft.troubles = 1 + static_cast<int>(dice.below(8));
  draft.deadly = dice.one_in(2);
  draft.mild = dice.one_in(3);
  // Long beside the time in which both ends notice, also several times over.
  if (draft.mild) draft.gate.heartbeat = 500ms;
  draft.gate.dead_after = draft.gate.heartbeat * 3;
  draft.outbound = dice.below(draft.starts.size());
  draft.gate.peers_a_beat = one_of<std::size_t>(dice, {1, 2, 32});
  return draft;
}

HistoryEnd play_history(std::uint64_t seed, const World::Trace& trace) {
  const HistoryDraft draft = draft_of(seed);
  World world(seed, item_types(), draft.network, trace);
  Ledger ledger(world, draft.plan);
  PacketChecker::Trace tell;
  if (trace) tell = [&](ProcessId process, std::string_view what) { world.note(process, what); };
  PacketChecker checker(
      draft.plan, item_types(), [&](std::string what) { ledger.fail(std::move(what)); }, tell);
  world.network().watch(checker);
  for (ProcessId id = 0; id < draft.starts.size(); ++id) {
    world.add(draft.plan, node_name(id), setup_of(world, ledger, draft, id));
  }
  for (int i = 0; i < draft.troubles; ++i) {
    const TimePoint when = world.dice().between(0s, world.dice().one_in(2) ? 300ms : kLastTrouble);
    world.at(when, [&world, &draft] { make_trouble(world, draft.deadly, draft.mild); });
  }
  const bool over = world.run(kLimit);
  if (ledger.failures().empty() && !over) ledger.fail("it does not come to an end");
  if (ledger.failures().empty()) {
    check_ends(world, ledger, draft.troubles == 0);
    ledger.check_end();
  }
  return summary_of(world, ledger);
}

}  // namespace troupe::sim

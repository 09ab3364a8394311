#include "tests/sim/training/training_play.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "actors/spawn.h"
#include "config/plan.h"
#include "launch/meeting/node_uplink.h"
#include "launch/run/turn_order.h"
#include "tests/sim/training/speed_teller.h"

namespace troupe::sim {
namespace {

using actors::NodeParts;
using actors::StatePointer;
using runtime::Error;
using runtime::ErrorKind;
using namespace std::chrono_literals;

constexpr TimePoint kLimit = 300s;
constexpr Duration kOrphanAfter = 60s;
constexpr int kLagging = 30;  // times as long under way as other packets are

// One short trouble that nobody is given up for, all of them together included.
void make_short_trouble(World& world) {
  Dice& dice = world.dice();
  const TimePoint now = world.clock().now();
  const ProcessId one = dice.below(world.processes());
  const ProcessId other = (one + 1) % world.processes();
  const Duration while_lasting = dice.between(1ms, 200ms);
  const std::vector<ConnectionId> all = world.network().connections();
  switch (dice.below(4)) {
    case 0:
      if (!all.empty()) world.network().drop(all[dice.below(all.size())]);
      return;
    case 1:
      world.network().block(one, other, now + while_lasting);
      return;
    case 2:
      world.network().slow(one, other, 20, now + while_lasting);
      return;
    default:
      world.pause(one, now + while_lasting);
      return;
  }
}

// One that may last longer than others have patience.
void make_long_trouble(World& world) {
  Dice& dice = world.dice();
  const TimePoint until = world.clock().now() + dice.between(1ms, 6s);
  const ProcessId one = dice.below(world.processes());
  const ProcessId other = (one + 1 + dice.below(world.processes() - 1)) % world.processes();
  switch (dice.below(3)) {
    case 0:
      return world.network().block(one, other, until);
    case 1:
      world.network().block(one, other, until);
      return world.network().block(other, one, until);
    default:
      return world.pause(one, until);
  }
}

// Who dies before the head has met it is no member yet: whoever starts the processes notices.
void kill_when_all_came(World& world, std::uint32_t members, bool& killed, ProcessId victim) {
  for (ProcessId id = 1; id <= members; ++id) {
    const std::string state = world.peer_state(0, id);
    if (state.empty() || state == "awaited") {
      world.at(world.clock().now() + 10ms, [&world, members, &killed, victim] {
        kill_when_all_came(world, members, killed, victim);
      });
      return;
    }
  }
  world.kill(victim);
  killed = killed || world.killed(victim);
}

void plan_fate(World& world, Fate fate, std::uint32_t members, bool& killed) {
  Dice& dice = world.dice();
  if (fate == Fate::kNothing || fate == Fate::kLastMemberComputesOtherwise) return;
  if (fate == Fate::kSpeedsChange || fate == Fate::kSlowNewcomers) return;
  const std::size_t troubles = dice.below(5);
  for (std::size_t i = 0; i < troubles; ++i) {
    world.at(dice.between(0s, 400ms), [&world] { make_short_trouble(world); });
  }
  if (fate == Fate::kShortTroubles) return;
  if (fate == Fate::kLongTroubles) {
    for (std::uint64_t more = 1 + dice.below(3); more > 0; --more) {
      world.at(dice.between(0s, 1s), [&world] { make_long_trouble(world); });
    }
    return;
  }
  CHECK(fate == Fate::kHeadKilled);
  world.at(dice.between(100ms, 300ms),
           [&world, members, &killed] { kill_when_all_came(world, members, killed, 0); });
}

// The processes of a run: kills them as told, starts another head, and tells the head who has
// ended, as whoever starts processes does.
class Company final : public NetworkWatcher {
 public:
  Company(TrainingStage& stage, World& world, std::uint32_t members, runtime::Disk& disk,
          const std::vector<Death>& deaths, Fate fate, TrainingEnd& end)
      : stage_(stage),
        world_(world),
        members_(members),
        disk_(disk),
        deaths_(deaths),
        fate_(fate),
        end_(end) {
    for (const Death& death : deaths) {
      may_return_ = may_return_ || death.next_head || death.stands_still;
    }
  }

  void start_head(StatePointer state, TimePoint when) {
    launch::TrainingSetup& setup = stage_.setup(members_);
    const bool returns = !heads_.empty();
    if (returns) state = stage_.newest_state(disk_);
    heads_.push_back(parts_of(stage_, setup, 0, state, disk_));
    NodeParts& parts = heads_.back();
    parts.coordinator.ended = [this] { return gone(); };
    parts.coordinator.membership.term = static_cast<std::uint32_t>(heads_.size());
    parts.coordinator.on_view = [this](const actors::RunOutcome::ViewChange& change) {
      newest_ring_.clear();
      for (const std::string& name : change.members) {
        const auto known = *config::member_process(name);
        newest_ring_[known.member] = known.process;
      }
    };
    std::map<std::string, std::string> called;
    if (returns && !newest_ring_.empty()) {
      parts.coordinator.predecessor = actors::CoordinatorOptions::Predecessor();
      auto& predecessor = *parts.coordinator.predecessor;
      for (ProcessId id = 1; id < world_.processes(); ++id) {
        if (world_.has_node(id) || world_.killed(id)) predecessor.taken.insert(member_at(id));
      }
      for (const auto& [member, process] : processes_) {
        if (process == 1) continue;
        predecessor.processes[member] = process;
        called[config::member_name(member)] = config::member_name(member, process);
      }
      for (const auto& [member, process] : newest_ring_) {
        predecessor.expected.insert(member);
        if (processes_[member] != process) predecessor.renewed.insert(member);
      }
      predecessor.made_all = state->iteration >= setup.iterations ||
                             pipeline::reason_to_stop(setup.options.stop, *state);
      parts.monitor.told_before = true;
    }
    told_ = 0;
    ProcessSetup process;
    process.factory = actors::make_actor_factory(parts);
    process.start = when;
    process.address = "sim://0";
    process.gate.incarnation = world_.dice().next() | 1U;
    // As if members were many: the head hears each of them seldom.
    if (world_.dice().one_in(4)) process.gate.peers_a_beat = 1;
    process.gate.predecessors = incarnations_;
    process.gate.called = std::move(called);
    if (may_return_) process.keeper->given_up = [this](const std::string&) { make_room(); };
    incarnations_.push_back(process.gate.incarnation);
    head_ = world_.add(setup.plan, config::kHeadNode, std::move(process));
    head_ids_.insert(head_);
  }

  // `remote`: without data, which the head has. `number`: of the process among those that are the
  // member one after the other.
  ProcessId start_member(launch::TrainingSetup& setup, std::uint32_t member, TimePoint when,
                         bool remote, std::uint32_t number = 1) {
    rest_.push_back(parts_of(stage_, setup, member, stage_.initial_state(), disk_));
    rest_.back().replica.process = number;
    processes_[member] = number;
    ProcessSetup process;
    if (remote) {
      rest_.back().dataset = nullptr;
      rest_.back().sampler = nullptr;
      rest_.back().replica.loader = config::kHeadLoader;
      process.node.left_out = {config::loader_name(member)};
    }
    process.factory = actors::make_actor_factory(rest_.back());
    if (fate_ == Fate::kSpeedsChange) process.factory = telling_speeds(std::move(process.factory));
    process.start = when;
    // There are two sites, and newcomers learn from members of their own.
    const std::size_t id = world_.processes();
    process.address = fmt::format("tcp://10.{}.{}.{}:1", member % 2, id / 250, id % 250);
    if (may_return_) process.gate.head_returns_within = kOrphanAfter;
    const bool is_newcomer = member >= members_ || number > 1;
    for (const ProcessId newcomer : lagging_) slow(id, newcomer);
    if (is_newcomer && fate_ == Fate::kSlowNewcomers) lag(id);
    return world_.add(setup.plan, config::member_name(member, number), std::move(process));
  }

  // The next guest comes when a member that many processes may be is awaited, and no process was
  // asked to be it.
  void expect_guests(const Guests& guests) {
    guests_ = guests;
    guest_dice_.emplace(guests.seed);
    world_.at(guest_dice_->between(50ms, 200ms), [this] { look_for_place(); });
  }
  // Guests that woke and were not refused although their place was another one's.
  std::vector<std::string> unrefused() {
    std::vector<std::string> names;
    for (const ProcessId id : sleepers_) {
      const auto known = *config::member_process(world_.name(id));
      if (processes_[known.member] == known.process || world_.killed(id)) continue;
      const auto& end = world_.end(id);
      const bool is_refused = end && end->error && end->error->kind == ErrorKind::kLostPeers;
      ++end_.outlived;
      if (!is_refused) names.push_back(world_.name(id));
    }
    return names;
  }
  std::size_t most_of_one_place() const {
    std::uint32_t most = 0;
    for (const auto& [member, process] : processes_) most = std::max(most, process);
    return most;
  }

  void delivered(const Passage& passage) override {
    if (passage.lane == Lane::kMetrics) return;
    ++end_.arrivals;
    for (const Death& death : deaths_) {
      if (death.after != end_.arrivals) continue;
      // Not while it takes the packet in.
      world_.at(world_.clock().now(), [this, death] { kill(death); });
    }
  }

  void connected(runtime::ConnectionId, ProcessId at, ProcessId other) override {
    if (!is_head(at) && !is_head(other)) end_.met.insert(std::minmax(at, other));
  }

  bool is_head(ProcessId id) const { return head_ids_.contains(id); }
  ProcessId head() const { return head_; }
  const std::deque<NodeParts>& heads() const { return heads_; }

 private:
  std::uint32_t member_at(ProcessId id) const {
    const auto known = config::member_process(world_.name(id));
    return known ? known->member : 0;
  }

  // What members send to the newcomer is long under way, and what the head does is not.
  void lag(ProcessId newcomer) {
    lagging_.insert(newcomer);
    for (ProcessId id = 1; id < newcomer; ++id) slow(id, newcomer);
  }
  void slow(ProcessId from, ProcessId newcomer) {
    if (is_head(from)) return;
    world_.network().slow(from, newcomer, kLagging, kLimit);
  }

  void look_for_place() {
    if (end_.guests == guests_.most) return;
    world_.at(world_.clock().now() + guest_dice_->between(10ms, 80ms),
              [this] { look_for_place(); });
    if (!world_.has_node(head_) || world_.end(head_)) return;
    const launch::RunSize& size = stage_.setup(members_).size;
    for (const runtime::PeerStats& peer : world_.node(head_).peer_stats()) {
      const auto place = config::member_process(peer.node);
      const bool is_free = place && place->member >= size.reused_from() &&
                           peer.state == "awaited" && processes_[place->member] < place->process;
      if (is_free) return take_in_guest(*place);
    }
  }

  void take_in_guest(const config::MemberProcess& place) {
    ++end_.guests;
    Dice& dice = *guest_dice_;
    const TimePoint now = world_.clock().now();
    const ProcessId guest =
        start_member(stage_.setup(members_), place.member, now + dice.between(0s, 20ms),
                     dice.below(4) == 0, place.process);
    Death death{0, guest, dice.below(3) != 0};
    const std::uint64_t kind = dice.below(4);
    death.leaves = kind == 0;
    if (kind == 1) death.sleeps = dice.between(1s, 40s);
    world_.at(now + dice.between(1ms, 400ms), [this, death] { kill(death); });
  }

  runtime::ActorFactory telling_speeds(runtime::ActorFactory factory) {
    return [this, factory = std::move(factory)](const runtime::ActorPlan& plan) {
      std::unique_ptr<runtime::Actor> actor = factory(plan);
      if (plan.kind != "replica") return actor;
      const auto replica =
          static_cast<std::uint32_t>(std::stoul(plan.name.substr(std::string("replica.").size())));
      actor = std::make_unique<SpeedTeller>(std::move(actor), replica, world_.dice());
      return actor;
    };
  }

  void kill(const Death& death) {
    const TimePoint now = world_.clock().now();
    const ProcessId victim = death.process == 0 ? head_ : death.process;
    if (death.held > 0s) world_.network().block(death.from, death.to, now + death.held);
    const bool runs = world_.has_node(victim) && !world_.end(victim);
    if (victim == head_ && !runs) return;
    if (death.sleeps) {
      if (runs) sleepers_.push_back(victim);
      return world_.pause(victim, now + *death.sleeps);
    }
    if (death.stands_still) return world_.pause(victim, now + *death.stands_still);
    if (death.leaves) {
      if (runs) world_.node(victim).request_stop();
      return;
    }
    world_.kill(victim);
    end_.killed = end_.killed || world_.killed(victim);
    if (victim != head_) {
      if (death.told) ended_.push_back(victim);
    } else if (death.next_head) {
      ++end_.heads;
      start_head(nullptr, now + *death.next_head);
    }
  }

  // Not while it takes the word in.
  void make_room() {
    world_.at(world_.clock().now(), [this, given_up = head_] {
      if (given_up != head_ || !world_.has_node(head_) || world_.end(head_)) return;
      world_.kill(head_);
      ++end_.heads;
      start_head(nullptr, world_.clock().now() + 20ms);
    });
  }

  // Those that the head has not met it is told of in any case, and a new one of all.
  std::vector<actors::MissingMember> gone() {
    std::vector<ProcessId> ended(ended_.begin() + static_cast<std::ptrdiff_t>(told_), ended_.end());
    told_ = ended_.size();
    for (ProcessId id = 1; id < world_.processes(); ++id) {
      if (is_head(id)) continue;
      const std::string state = world_.peer_state(head_, id);
      if (world_.killed(id) && (state.empty() || state == "awaited")) ended.push_back(id);
    }
    std::vector<actors::MissingMember> missing;
    for (const ProcessId id : ended) {
      missing.push_back({world_.name(id), {ErrorKind::kLostPeers, "was killed"}});
    }
    return missing;
  }

  TrainingStage& stage_;
  World& world_;
  const std::uint32_t members_;
  runtime::Disk& disk_;
  const std::vector<Death>& deaths_;
  const Fate fate_;
  TrainingEnd& end_;
  bool may_return_ = false;
  std::deque<NodeParts> heads_, rest_;
  std::set<ProcessId> head_ids_;
  ProcessId head_ = 0;
  std::vector<std::uint64_t> incarnations_;
  std::map<std::uint32_t, std::uint32_t> newest_ring_;  // the process of each member
  std::map<std::uint32_t, std::uint32_t> processes_;    // the newest of each member
  Guests guests_;
  std::optional<Dice> guest_dice_;
  std::vector<ProcessId> sleepers_;
  std::set<ProcessId> lagging_;
  std::vector<ProcessId> ended_;
  std::size_t told_ = 0;
};

void note_errors(const World& world, const Company& company, TrainingEnd& end) {
  for (ProcessId id = 0; id < world.processes(); ++id) {
    if (!world.end(id) || !world.end(id)->error) continue;
    const Error& error = *world.end(id)->error;
    if (id == company.head()) end.head_error = error;
    if (!company.is_head(id) && !end.member_error) end.member_error = error;
    const bool accuses = error.kind == ErrorKind::kDiverged ||
                         error.message.find("does not do what") != std::string::npos;
    if (accuses && !end.accusation) end.accusation = error;
  }
}

}  // namespace

TrainingEnd play_training(TrainingStage& stage, std::uint64_t seed, std::uint32_t members,
                          const StatePointer& state, runtime::Disk& disk, Fate fate,
                          const std::vector<Death>& deaths, const std::vector<TimePoint>& joins,
                          const std::set<std::uint32_t>& remote, const World::Trace& trace,
                          const Guests& guests) {
  const launch::TrainingSetup& shared = stage.setup(members);
  const runtime::WireTypes types = launch::wire_types(*shared.gan, shared.options);
  const auto nodes = static_cast<std::uint32_t>(1 + members + joins.size());
  World world(seed, types, {}, trace);
  TrainingEnd end;
  Company company(stage, world, members, disk, deaths, fate, end);
  company.start_head(state, world.dice().between(0s, 50ms));
  for (std::uint32_t node = 1; node < nodes; ++node) {
    const bool broken = fate == Fate::kLastMemberComputesOtherwise && node == members;
    launch::TrainingSetup& setup = broken ? stage.broken_setup(members) : stage.setup(members);
    const TimePoint start =
        node <= members ? world.dice().between(0s, 50ms) : joins[node - members - 1];
    company.start_member(setup, node - 1, start, remote.contains(node - 1));
  }
  world.network().watch(company);
  plan_fate(world, fate, members, end.killed);
  if (guests.most > 0) company.expect_guests(guests);
  end.over = world.run(kLimit);
  note_errors(world, company, end);
  end.unrefused = company.unrefused();
  end.most_of_one_place = company.most_of_one_place();
  const actors::RunOutcome& outcome = *company.heads().back().outcome;
  end.state = outcome.state;
  end.saved = outcome.saved;
  for (const NodeParts& head : company.heads()) {
    end.changes += head.outcome->changes.size();
    for (const auto& change : head.outcome->changes) {
      end.joined += change.joined.size();
      end.shared_anew += change.shared_anew.empty() ? 0 : 1;
    }
  }
  end.simulated = world.clock().now();
  return end;
}

std::string fault_of(TrainingStage& stage, const TrainingEnd& end, bool members_count) {
  if (!end.over) return "it is not over";
  if (end.head_error) return "head: " + end.head_error->message;
  if (end.accusation) return "accusation: " + end.accusation->message;
  if (!end.unrefused.empty()) return end.unrefused.front() + " woke and was not refused";
  if (members_count && end.member_error) return "member: " + end.member_error->message;
  if (stage.order_of_turns() && end.state) {
    const auto checked = launch::check_turn_order(stage.order_of_turns(), *end.state);
    if (!checked.ok()) return "turns: " + checked.error().message;
  }
  const std::string hash = hash_of(end.state), expected = stage.undisturbed().text();
  return hash == expected ? "" : "state " + hash + " and not " + expected;
}

}  // namespace troupe::sim

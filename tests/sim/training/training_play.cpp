#include "tests/sim/training/training_play.h"

#include <fmt/format.h>

#include <utility>

#include "actors/spawn.h"
#include "config/cluster_plan.h"
#include "config/topology_file.h"
#include "launch/node_uplink.h"
#include "pipeline/checkpoint.h"
#include "pipeline/checkpoint_folder.h"

namespace troupe::sim {
namespace {

using actors::NodeParts;
using actors::StatePointer;
using runtime::Buffer;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using namespace std::chrono_literals;

constexpr const char* kCheckpoints = "run/checkpoints";
constexpr TimePoint kLimit = 300s;

constexpr const char* kTopology =
    "model: {zoo: toy}\n"
    "data: {train: toy.h5}\n"
    "train: {micro_batch: 2, micro_batches: 4, epochs: 5}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 8}}\n";

runtime::Log silent() { return runtime::Log::silent(); }

std::size_t slots_of(const launch::TrainingSetup& setup) { return setup.options.schedule.size(); }

NodeParts parts_of(TrainingStage& stage, launch::TrainingSetup& setup, std::uint32_t members,
                   std::uint32_t member, const StatePointer& state, runtime::Disk& disk) {
  NodeParts parts = launch::computing_parts(setup, stage.topology(), disk, members, member);
  parts.coordinator = launch::coordinator_options(setup, stage.topology(), members, state);
  parts.coordinator.validate = false;
  // Also a broken member knows what is to be compared.
  parts.loader.checks.seed = stage.topology().train.options.seed;
  parts.replica.checks.seed = stage.topology().train.options.seed;
  const std::uint64_t step = state->step(slots_of(setup));
  parts.checkpointer.folder = kCheckpoints;
  parts.checkpointer.model = "toy";
  if (step > 0) parts.checkpointer.written_step = step;
  parts.monitor.metrics_path = "/dev/null";
  parts.monitor.losses = stage.topology().model.gan.losses;
  parts.monitor.schedule = setup.options.schedule;
  parts.monitor.first_step = step;
  return parts;
}

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

// All members but one, at times of their own.
void kill_most(World& world, std::uint32_t members, bool& killed) {
  Dice& dice = world.dice();
  const ProcessId spared = 1 + dice.below(members);
  for (ProcessId victim = 1; victim <= members; ++victim) {
    if (victim == spared) continue;
    world.at(dice.between(100ms, 300ms), [&world, members, &killed, victim] {
      kill_when_all_came(world, members, killed, victim);
    });
  }
}

void plan_fate(World& world, Fate fate, std::uint32_t members, bool& killed) {
  Dice& dice = world.dice();
  if (fate == Fate::kNothing || fate == Fate::kLastMemberComputesOtherwise) return;
  const std::size_t troubles = dice.below(5);
  for (std::size_t i = 0; i < troubles; ++i) {
    world.at(dice.between(0s, 400ms), [&world] { make_short_trouble(world); });
  }
  if (fate == Fate::kShortTroubles) return;
  if (fate == Fate::kAllButOneKilled) return kill_most(world, members, killed);
  const ProcessId victim = fate == Fate::kHeadKilled ? 0 : 1 + dice.below(members);
  world.at(dice.between(100ms, 300ms), [&world, members, &killed, victim] {
    kill_when_all_came(world, members, killed, victim);
  });
}

class Reaper final : public NetworkWatcher {
 public:
  Reaper(World& world, const std::vector<Death>& deaths, TrainingEnd& end)
      : world_(world), deaths_(deaths), end_(end) {}

  // What whoever starts the processes tells the head, which has not met some of them.
  std::vector<actors::MissingMember> gone() {
    std::vector<ProcessId> ended = std::exchange(told_, {});
    for (ProcessId id = 1; id < world_.processes(); ++id) {
      const std::string state = world_.peer_state(0, id);
      if (world_.killed(id) && (state.empty() || state == "awaited")) ended.push_back(id);
    }
    std::vector<actors::MissingMember> missing;
    for (const ProcessId id : ended) {
      missing.push_back({world_.name(id), {ErrorKind::kLostPeers, "was killed"}});
    }
    return missing;
  }

  void delivered(const Passage& passage) override {
    if (passage.lane == Lane::kMetrics) return;
    ++end_.arrivals;
    for (const Death& death : deaths_) {
      if (death.after != end_.arrivals) continue;
      // Not while it takes the packet in.
      world_.at(world_.clock().now(), [this, death] {
        const TimePoint until = world_.clock().now() + death.held;
        if (death.held > 0s) world_.network().block(death.from, death.to, until);
        world_.kill(death.process);
        end_.killed = end_.killed || world_.killed(death.process);
        if (death.told) told_.push_back(death.process);
      });
    }
  }

 private:
  World& world_;
  const std::vector<Death>& deaths_;
  TrainingEnd& end_;
  std::vector<ProcessId> told_;
};

StatePointer train_in_process(TrainingStage& stage, runtime::Disk& disk) {
  NodeParts parts = parts_of(stage, stage.setup(0), 0, 0, stage.initial_state(), disk);
  runtime::ManualClock clock;
  runtime::StepScheduler scheduler(1, clock);
  runtime::Log log = silent();
  runtime::Node node(stage.setup(0).plan, actors::make_actor_factory(parts), {}, clock, log,
                     scheduler);
  const runtime::NodeEnd end = node.run();
  CHECK(!end.error, end.error ? end.error->message : "");
  return parts.outcome->state;
}

}  // namespace

void SimDisk::tear(const std::string& path, std::size_t bytes) {
  const Result<Buffer> file = files_.read(path);
  CHECK(file.ok(), "there is a file to tear");
  (void)files_.replace(path, file->bytes().first(std::min(bytes, file->size())));
}

Result<void> SimDisk::replace(const std::string& path, std::span<const std::byte> bytes) {
  if (files_left_ && (*files_left_)-- <= 0) {
    return Error{ErrorKind::kData, fmt::format("cannot write {}: no space left on device", path)};
  }
  return files_.replace(path, bytes);
}

Result<Buffer> SimDisk::read(const std::string& path) { return files_.read(path); }
Result<void> SimDisk::remove(const std::string& path) { return files_.remove(path); }
Result<std::vector<std::string>> SimDisk::list(const std::string& folder) {
  return files_.list(folder);
}
Result<void> SimDisk::make_folder(const std::string& folder) { return files_.make_folder(folder); }

TrainingStage::TrainingStage() {
  actors::write_toy_data(folder_ / "toy.h5");
  auto loaded = config::parse_topology(kTopology, "toy.yaml", folder_.path());
  CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().message);
  topology_ = std::move(loaded->topology);
}

launch::TrainingSetup& TrainingStage::setup(std::uint32_t members) {
  const auto found = setups_.find(members);
  if (found != setups_.end()) return found->second;
  return setups_.emplace(members, make_setup(members)).first->second;
}

launch::TrainingSetup& TrainingStage::broken_setup(std::uint32_t members) {
  const auto found = broken_setups_.find(members);
  if (found != broken_setups_.end()) return found->second;
  launch::TrainingSetup broken = make_setup(members);
  ++broken.options.seed;
  return broken_setups_.emplace(members, std::move(broken)).first->second;
}

launch::TrainingSetup TrainingStage::make_setup(std::uint32_t members) {
  runtime::Log log = silent();
  auto made = launch::set_up_training(topology_, launch::size_of_run(topology_, members),
                                      folder_ / "data", false, log);
  CHECK(made.ok(), made.ok() ? "" : made.error().message);
  return std::move(made).value();
}

StatePointer TrainingStage::initial_state() {
  const launch::TrainingSetup& setup = this->setup(0);
  return std::make_shared<const pipeline::TrainingState>(pipeline::initial_state(
      *setup.gan, setup.options, setup.backend->numerics_class(), setup.data.train.fingerprint()));
}

runtime::Hash128 TrainingStage::undisturbed() {
  if (!undisturbed_) {
    SimDisk disk;
    undisturbed_ = pipeline::hash_of_state(*train_in_process(*this, disk));
  }
  return *undisturbed_;
}

StatePointer TrainingStage::newest_state(runtime::Disk& disk) {
  const launch::TrainingSetup& setup = this->setup(0);
  const auto names = disk.list(kCheckpoints);
  for (const std::string& name : pipeline::checkpoints_newest_first(*names)) {
    const std::string path = std::string(kCheckpoints) + "/" + name;
    auto read = pipeline::decode_checkpoint(*disk.read(path), path, *setup.gan, setup.options);
    if (read.ok()) {
      return std::make_shared<const pipeline::TrainingState>(std::move(read->state));
    }
  }
  return initial_state();
}

TrainingEnd play_training(TrainingStage& stage, std::uint64_t seed, std::uint32_t members,
                          const StatePointer& state, runtime::Disk& disk, Fate fate,
                          const std::vector<Death>& deaths, const std::vector<TimePoint>& joins,
                          const World::Trace& trace) {
  const launch::TrainingSetup& shared = stage.setup(members);
  const runtime::WireTypes types = launch::wire_types(*shared.gan, shared.options);
  const runtime::Plan& plan = shared.plan;
  std::vector<NodeParts> parts;
  const auto nodes = static_cast<std::uint32_t>(1 + members + joins.size());
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const bool broken = fate == Fate::kLastMemberComputesOtherwise && node == members;
    launch::TrainingSetup& setup = broken ? stage.broken_setup(members) : stage.setup(members);
    parts.push_back(parts_of(stage, setup, members, node == 0 ? 0 : node - 1, state, disk));
  }
  World world(seed, types, {}, trace);
  TrainingEnd end;
  Reaper reaper(world, deaths, end);
  parts[0].coordinator.ended = [&reaper] { return reaper.gone(); };
  for (std::uint32_t node = 0; node < nodes; ++node) {
    ProcessSetup setup;
    setup.factory = actors::make_actor_factory(parts[node]);
    setup.start = node <= members ? world.dice().between(0s, 50ms) : joins[node - members - 1];
    world.add(plan, node == 0 ? config::kHeadNode : config::member_name(node - 1),
              std::move(setup));
  }
  world.network().watch(reaper);
  plan_fate(world, fate, members, end.killed);
  end.over = world.run(kLimit);
  if (world.end(0)) end.head_error = world.end(0)->error;
  for (ProcessId id = 1; id < world.processes() && !end.member_error; ++id) {
    if (world.end(id)) end.member_error = world.end(id)->error;
  }
  end.state = parts[0].outcome->state;
  end.saved = parts[0].outcome->saved;
  end.changes = parts[0].outcome->changes.size();
  for (const auto& change : parts[0].outcome->changes) end.joined += change.joined.size();
  end.simulated = world.clock().now();
  return end;
}

}  // namespace troupe::sim

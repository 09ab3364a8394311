// The parts that all runs have in common.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "config/topology_file.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "tests/sim/training/training_play.h"

namespace troupe::sim {
namespace {

using actors::NodeParts;
using actors::StatePointer;
using runtime::Buffer;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr const char* kCheckpoints = "run/checkpoints";

runtime::Log silent() { return runtime::Log::silent(); }

// The iterations in which the order of turns is set. In the others it is that of offers. Members of
// a site wait for each other, so the order of their offers depends on simulated time.
std::uint64_t iterations_in_order(const launch::TrainingSetup& setup) {
  return setup.options.parts() > 1 ? setup.iterations + 1 : setup.iterations / 2;
}

// The order that a run comes to: where it is set, one that is drawn for each iteration behind the
// first step's turn; and behind that the order of the workers' numbers, as all of them are thought
// to be ready at once where nothing takes time to compute. It ends with the iteration behind the
// last one, whose first step nobody makes.
launch::TurnOrder expected_order(const launch::TrainingSetup& setup) {
  Dice dice(7);
  auto order = std::make_shared<std::vector<std::uint32_t>>();
  const std::uint32_t workers = setup.options.strategy.workers,
                      of_turn = setup.options.strategy.at_a_time();
  for (std::uint64_t iteration = 0; iteration <= setup.iterations; ++iteration) {
    std::vector<std::uint32_t> left(workers);
    std::iota(left.begin(), left.end(), 0);
    while (!left.empty()) {
      const bool is_drawn = !order->empty() && iteration < iterations_in_order(setup);
      std::vector<std::uint32_t> turn;
      while (turn.size() < of_turn && !left.empty()) {
        const std::size_t at = is_drawn ? dice.below(left.size()) : 0;
        turn.push_back(left[at]);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
      }
      std::ranges::sort(turn);
      order->insert(order->end(), turn.begin(), turn.end());
    }
  }
  return order;
}

launch::TurnOrder set_part_of(const std::vector<std::uint32_t>& order,
                              const launch::TrainingSetup& setup) {
  const auto size = iterations_in_order(setup) * setup.options.strategy.workers;
  return std::make_shared<const std::vector<std::uint32_t>>(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(size));
}

std::size_t slots_of(const launch::TrainingSetup& setup) { return setup.options.schedule.size(); }

StatePointer train_in_process(TrainingStage& stage, runtime::Disk& disk) {
  NodeParts parts = parts_of(stage, stage.setup(0), 0, stage.initial_state(), disk);
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

NodeParts parts_of(TrainingStage& stage, launch::TrainingSetup& setup, std::uint32_t member,
                   const StatePointer& state, runtime::Disk& disk) {
  NodeParts parts = launch::computing_parts(setup, disk, member);
  parts.coordinator = launch::coordinator_options(setup, state);
  parts.coordinator.validate = false;
  std::vector<std::uint32_t>& ring = parts.coordinator.membership.ring;
  if (stage.ring_order() == RingOrder::kDescending) {
    std::reverse(ring.begin(), ring.end());
    parts.coordinator.membership.costs.least = 2;
  }
  // Also a broken member knows what is to be compared.
  parts.loader.checks.seed = stage.topology().train.options.seed;
  parts.replica.checks.seed = stage.topology().train.options.seed;
  const std::uint64_t step = state->step(slots_of(setup));
  parts.checkpointer.folder = kCheckpoints;
  parts.checkpointer.model = "toy";
  if (step > 0) parts.checkpointer.written_step = step;
  parts.monitor.sinks.metrics_path = "/dev/null";
  parts.monitor.losses = stage.topology().model.gan.losses;
  parts.monitor.schedule = setup.options.schedule;
  parts.monitor.first_step = step;
  return parts;
}

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
Result<void> SimDisk::link(const std::string& path, const std::string& target) {
  return files_.link(path, target);
}

TrainingStage::TrainingStage(const std::string& sections, RingOrder ring_order,
                             const std::vector<std::string>& settings)
    : ring_order_(ring_order) {
  actors::write_toy_data(folder_ / "toy.h5");
  auto loaded = config::parse_topology("model: {zoo: toy}\ndata: {train: toy.h5}\n" + sections,
                                       "toy.yaml", folder_.path(), settings);
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
  auto made = launch::set_up_training({topology_, {}}, launch::size_of_run(topology_, members),
                                      folder_ / "data", false, log);
  CHECK(made.ok(), made.ok() ? "" : made.error().message);
  if (made->options.has_turns()) {
    order_of_turns_ = expected_order(*made);
    made->turns.order = set_part_of(*order_of_turns_, *made);
  }
  return std::move(made).value();
}

StatePointer TrainingStage::initial_state() {
  const launch::TrainingSetup& setup = this->setup(0);
  return std::make_shared<const pipeline::TrainingState>(pipeline::initial_state(
      *setup.gan, setup.options, setup.backend->numerics_class(), setup.identity.fingerprint));
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

TrainingStage& stage() {
  static TrainingStage the_stage;
  return the_stage;
}

std::string hash_of(const actors::StatePointer& state) {
  return state ? pipeline::hash_of_state(*state).text() : "no state";
}

}  // namespace troupe::sim

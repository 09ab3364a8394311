#include "tests/actors/whole_run.h"

#include <utility>

#include "actors/spawn.h"
#include "config/topology_file.h"
#include "launch/run/training_setup.h"
#include "runtime/step_scheduler.h"
#include "tests/actors/theatre.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::actors {
namespace {

constexpr const char* kTopology =
    "model: {zoo: toy}\ndata: {train: toy.h5, test_one_in: 4}\n"
    "train: {micro_batch: 2, micro_batches: 3, iterations: 8, epochs: 100}\n"
    "actors: {replica: {count: 2}}\n";

}  // namespace

WholeRun run_whole(std::uint64_t seed, const Wrapper& wrapper) {
  const TemporaryFolder folder;
  write_toy_data(folder / "toy.h5");
  const auto loaded = config::parse_topology(kTopology, "toy.yaml", folder.path());
  CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().message);
  const config::Topology& topology = loaded->topology;
  runtime::Log log = runtime::Log::silent();
  auto made = launch::set_up_training({topology, {}}, launch::size_of_run(topology, 0),
                                      folder / "data", true, log);
  CHECK(made.ok(), made.ok() ? "" : made.error().message);
  launch::TrainingSetup& setup = *made;
  MemoryDisk disk;
  NodeParts parts = launch::computing_parts(setup, disk, 0);
  const auto state = std::make_shared<const pipeline::TrainingState>(pipeline::initial_state(
      *setup.gan, setup.options, setup.backend->numerics_class(), setup.identity.fingerprint));
  parts.coordinator = launch::coordinator_options(setup, state);
  parts.checkpointer.folder = "run";
  parts.monitor.sinks.metrics_path = folder / "metrics.jsonl";
  parts.monitor.losses = topology.model.gan.losses;
  parts.monitor.schedule = setup.options.schedule;
  parts.monitor.progress.iterations = setup.iterations;

  const auto make = make_actor_factory(parts);
  const auto factory = [&](const runtime::ActorPlan& plan) {
    return wrapper(plan.kind, make(plan));
  };
  runtime::ManualClock clock;
  runtime::StepScheduler scheduler(seed, clock);
  runtime::Node node(setup.plan, factory, runtime::NodeOptions{}, clock, log, scheduler);
  const runtime::NodeEnd end = node.run();
  CHECK(!end.error, end.error ? end.error->message : "");
  CHECK(parts.outcome->saved && parts.outcome->validation, "a run that does not end as it should");
  return {pipeline::hash_of_state(*parts.outcome->state), parts.outcome->validation->json,
          node.link_stats()};
}

}  // namespace troupe::actors

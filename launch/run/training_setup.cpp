#include "launch/run/training_setup.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "config/member_ring.h"
#include "config/plan.h"
#include "config/topology_identity.h"
#include "config/workers.h"
#include "launch/machine/this_host.h"
#include "launch/machine/usable_machine.h"
#include "launch/run/networks.h"
#include "launch/run/trained.h"
#include "launch/run/validator_bins.h"
#include "pipeline/data/read_ahead.h"
#include "pipeline/steps/sum_layout.h"
#include "runtime/base/thread_team.h"
#include "runtime/node/patience.h"

namespace troupe::launch {

using runtime::Result;

config::NetworkSizes sizes_of(const config::Topology& topology, const model::Gan& gan) {
  config::NetworkSizes sizes;
  // Images and conditions of the events, and their ids.
  const std::int64_t numbers =
      gan.image_shape().elements() + 3 + static_cast<std::int64_t>(gan.columns());
  const std::int64_t event_bytes = numbers * 4 + 8;
  const auto options = config::options_between_members(topology);
  sizes.batch_bytes = std::int64_t{options.events_of_part()} * event_bytes;
  for (const model::SlotKind slot : options.schedule) {
    sizes.contribution_elements =
        std::max(sizes.contribution_elements, gan.contributions(slot).size);
  }
  // The arrays, and room for the rest of a state: names, scales and counters.
  sizes.state_bytes = state_bytes(topology, gan) + (std::int64_t{1} << 20);
  return sizes;
}

pipeline::RingCosts ring_costs(const config::Topology& topology, const model::Gan& gan,
                               std::uint32_t members) {
  pipeline::RingCosts costs = config::ring_costs(topology.cluster, members);
  const std::int64_t elements = sizes_of(topology, gan).contribution_elements;
  costs.step_bytes = static_cast<double>(elements) * sizeof(std::int64_t);
  costs.bucket_bytes = static_cast<double>(topology.reducer.segment_bytes);
  return costs;
}

std::string ring_text(const TrainingSetup& setup) {
  const std::uint32_t members = setup.size.members;
  return config::ring_text(setup.topology.cluster, members,
                           ring_costs(setup.topology, *setup.gan, members));
}

std::int64_t state_bytes(const config::Topology& topology, const model::Gan& gan) {
  const auto size = [](const model::Program& program, const model::OptimiserOptions& optimiser) {
    const model::ParameterLayout& layout = program.parameters();
    return layout.size() + layout.weights_size * model::optimiser_arrays(optimiser);
  };
  const auto& options = topology.train.options;
  const auto& strategy = options.strategy;
  const bool has_outer = strategy.has_outer();
  const std::int64_t weights =
      gan.generator().parameters().weights_size + gan.discriminator().parameters().weights_size;
  const std::int64_t result = gan.generator().parameters().weights_size > 0
                                  ? gan.generator().parameters().size()
                                  : gan.discriminator().parameters().size();
  const std::int64_t networks = size(gan.generator(), options.generator_optimiser) +
                                size(gan.discriminator(), options.discriminator_optimiser);
  // Each worker that takes turns has networks of its own, and with gem its momenta.
  const std::int64_t of_worker =
      networks + (strategy.kind == pipeline::StrategyKind::kGem ? 2 * weights : 0);
  const std::int64_t moving =
      gan.generator().parameters().moving_size + gan.discriminator().parameters().moving_size;
  const bool shares = gan.contributions(model::SlotKind::kStatistics).size > 0;
  return static_cast<std::int64_t>(sizeof(float)) *
         ((options.mean ? result : 0) + (shares ? model::kSharedArrays * moving : 0) + networks +
          (has_outer ? weights : 0) + (strategy.takes_turns() ? strategy.workers * of_worker : 0));
}

RunSize size_of_run(const config::Topology& topology, std::uint32_t members) {
  if (members == 0) return {};
  // Where slots are scarce, those for replacements go before those for joiners.
  const std::uint32_t restart =
      std::min(topology.cluster.failure.restart, config::kMostMembers - members);
  std::uint32_t joiners = topology.cluster.joiners;
  for (const config::PoolSection& pool : topology.cluster.pools) {
    joiners += std::min(pool.most * pool.workers, config::kMostMembers);
  }
  joiners = std::min(joiners, config::kMostMembers - members - restart);
  return {members, members + restart + joiners, restart};
}

// The plan has a node for every slot, so that one that joins later changes no bound.
Result<runtime::Plan> plan_of_run(const config::LoadedTopology& asked, const model::Gan& gan,
                                  const RunSize& size) {
  RETURN_IF_ERROR(config::check_workers(asked.topology, size.members, asked.origins));
  const config::Topology topology = config::scaled(asked.topology, size.members);
  return config::make_plan(topology, sizes_of(topology, gan), size.slots, asked.origins);
}

namespace {

// All but the data, and what follows from it.
Result<TrainingSetup> set_up_networks(const config::LoadedTopology& asked, const RunSize& size) {
  config::Topology topology = config::scaled(asked.topology, size.members);
  pipeline::TrainingOptions options = config::options_between_members(topology);
  ASSIGN_OR_RETURN(Networks networks, compile_networks(topology, size.members));
  ASSIGN_OR_RETURN(runtime::Plan plan, plan_of_run(asked, *networks.gan, size));
  TrainingSetup setup{std::move(topology),
                      config::print_topology(asked),
                      config::topology_hash(asked.topology),
                      size,
                      std::move(networks.backend),
                      std::move(networks.gan),
                      std::move(plan)};
  setup.options = std::move(options);
  setup.replica_weights = config::replica_weights(setup.topology, size.members);
  // One that joins later counts as one that no share was given for.
  setup.replica_weights.resize(
      std::max<std::size_t>(setup.replica_weights.size(),
                            std::size_t{size.slots} * setup.topology.replica.count),
      1);
  return setup;
}

void take_identity(const DataIdentity& identity, TrainingSetup& setup) {
  const config::TrainSection& train = setup.topology.train;
  setup.identity = identity;
  setup.options.iterations_per_epoch = identity.iterations_per_epoch;
  if (identity.last_micro_batches > 0) {
    setup.options.short_iteration = {identity.iterations_per_epoch, identity.last_micro_batches};
  }
  setup.iterations = train.epochs * identity.iterations_per_epoch;
  if (train.iterations) setup.iterations = std::min(setup.iterations, *train.iterations);
}

}  // namespace

Result<TrainingSetup> set_up_training(const config::LoadedTopology& asked, const RunSize& size,
                                      const std::string& data_folder, bool with_test_data,
                                      runtime::Log& log) {
  ASSIGN_OR_RETURN(TrainingSetup setup, set_up_networks(asked, size));
  const auto& path = setup.topology.validator.judge;
  if (with_test_data && path && setup.topology.validator.validates()) {
    auto judge = open_judge(*path, setup.topology);
    if (!judge.ok()) {
      return runtime::Error{
          judge.error().kind,
          config::problem_of(asked.origins, "actors.validator.judge", judge.error().message)
              .text()};
    }
    setup.judge = std::move(judge).value();
    log.info(fmt::format("judge: {}, which knows {} classes by {} features", *path,
                         setup.judge->classes(), setup.judge->features()));
  }
  runtime::ThreadTeam team(usable_processors());
  ASSIGN_OR_RETURN(setup.data,
                   open_training_data(setup.topology, data_folder, with_test_data, team, log));
  RETURN_IF_ERROR(warn_of_misfits(setup.topology, asked.origins, setup.data->test, log));
  take_identity(setup.data->identity(), setup);
  return setup;
}

Result<TrainingSetup> set_up_training(const config::LoadedTopology& asked, const RunSize& size,
                                      const DataIdentity& of_head) {
  ASSIGN_OR_RETURN(TrainingSetup setup, set_up_networks(asked, size));
  take_identity(of_head, setup);
  return setup;
}

namespace {

actors::SiteOptions sites_of(const pipeline::TrainingOptions& options, std::uint32_t replicas) {
  const pipeline::WorkerOptions& worker = *options.worker;
  actors::SiteOptions sites;
  sites.sites = {options.micro_batches, worker.parts, replicas, options.short_iteration_in_parts()};
  sites.turns = static_cast<std::uint32_t>(options.schedule.size());
  sites.steps = options.strategy.steps * worker.schedule.size();
  sites.slots = worker.schedule.size();
  sites.micro_batches = worker.micro_batches;
  sites.events = std::uint64_t{worker.micro_batches} * worker.micro_batch;
  return sites;
}

}  // namespace

actors::NodeParts computing_parts(TrainingSetup& setup, runtime::Disk& disk, std::uint32_t member) {
  const config::Topology& topology = setup.topology;
  const pipeline::TrainingOptions& options = setup.options;
  const std::uint32_t members = setup.size.members;
  actors::NodeParts parts{setup.context(), disk};
  if (setup.data) {
    parts.dataset = &setup.data->train;
    parts.sampler = &setup.data->sampler;
    if (setup.data->test) parts.test_dataset = &*setup.data->test;
    parts.judge = setup.judge.get();
  }
  pipeline::SpotChecks checks;
  // A turn is computed before it is known which step it is.
  // Nor is a worker computed twice by those that have parts of it.
  const bool has_checks = !options.has_turns() && !options.strategy.has_sites();
  checks.every = has_checks ? topology.cluster.failure.check_every : 0;
  checks.seed = options.seed;
  checks.slots = static_cast<std::uint32_t>(options.schedule.size());
  checks.replicas_per_member = topology.replica.count;
  checks.short_iteration = options.short_iteration_in_parts();
  parts.loader = {setup.iterations, checks};
  if (topology.data.dataset.threads == 0) parts.loader.most_threads = usable_processors();
  if (topology.loader.credits == 0) {
    parts.loader.most_ahead = pipeline::ReadAhead::most(sizes_of(topology, *setup.gan).batch_bytes);
  }
  // A member without data is fed by the head's loader, whose name the only loader of a run in one
  // process has, too.
  const bool own_data = members > 0 && setup.data;
  parts.replica.loader = own_data ? config::loader_name(member) : config::kHeadLoader;
  parts.replica.checks = checks;
  parts.replica.order = setup.turns.order;
  parts.replica.section = topology.replica;
  // A device computes a whole group by itself.
  if (topology.replica.device != config::kProcessor) parts.replica.section.threads = 1;
  parts.replica.reducer = topology.reducer;
  parts.replica.checkpointer = topology.checkpointer;
  parts.replica.validator = topology.validator;
  parts.reducer.first_replica = member * topology.replica.count;
  parts.reducer.replicas = topology.replica.count;
  parts.reducer.member = member;
  parts.reducer.learns_first = members > 0 && member >= members;
  parts.reducer.micro_batches = options.micro_batches;
  parts.reducer.events = std::uint64_t{options.micro_batches} * options.micro_batch;
  if (options.has_turns()) parts.reducer.at_a_time = options.strategy.at_a_time();
  parts.reducer.short_iteration = options.short_iteration;
  if (options.parts() > 1) parts.reducer.sites = sites_of(options, topology.replica.count);
  parts.reducer.lossy = options.lossy;
  parts.reducer.slot_floats.clear();
  parts.reducer.replay_bytes = topology.cluster.replay_bytes;
  for (const model::SlotKind slot : options.schedule) {
    const auto layout =
        pipeline::sum_layout(setup.gan->contributions(slot), options.gradient_sums());
    parts.reducer.slot_floats.push_back(static_cast<std::size_t>(layout.floats()));
  }
  parts.member.reducer = config::reducer_name(member, members);
  return parts;
}

actors::CoordinatorOptions coordinator_options(const TrainingSetup& setup,
                                               actors::StatePointer state) {
  const config::ClusterSection& cluster = setup.topology.cluster;
  const std::size_t slots = setup.options.schedule.size();
  actors::CoordinatorOptions options;
  options.first_step = state->step(slots);
  options.iterations = setup.iterations;
  options.state = std::move(state);
  const std::vector<std::string> addresses = interface_addresses();
  if (!addresses.empty()) options.own_host = addresses.front();
  options.validate = setup.data && setup.data->test;
  options.stop = setup.options.stop;
  options.parting_grace = cluster.failure.dead_after;
  options.accused_grace = runtime::Patience(options.parting_grace).most();
  options.membership.replicas_per_member = setup.topology.replica.count;
  options.membership.weights = setup.replica_weights;
  options.membership.micro_batches = setup.options.all_parts();
  options.membership.parts = setup.options.parts();
  options.membership.steps_per_iteration = static_cast<std::uint32_t>(slots);
  options.membership.end_step = setup.iterations * slots;
  // Lossy sums depend on who computes what.
  options.shares_anew = cluster.rebalance && cluster.shares.empty() && !setup.options.lossy;
  // A run in one process has neither a ring nor slots for others.
  if (setup.size.members == 0) return options;
  options.membership.min_members = cluster.failure.min_members;
  options.membership.ring = config::member_ring(cluster, setup.size.members);
  options.membership.costs = ring_costs(setup.topology, *setup.gan, setup.size.members);
  options.reused_from = setup.size.reused_from();
  options.member_slots.clear();
  for (std::uint32_t member = 0; member < setup.size.slots; ++member) {
    options.member_slots.push_back(
        {config::member_name(member), config::reducer_name(member, setup.size.members)});
  }
  return options;
}

namespace {

// Bytes that members sum in each step of a schedule.
std::vector<double> step_bytes(const pipeline::TrainingOptions& options, const model::Gan& gan) {
  std::vector<double> all;
  const auto lossy = options.lossy;
  for (const model::SlotKind slot : options.schedule) {
    const auto layout = pipeline::sum_layout(gan.contributions(slot), options.gradient_sums());
    const auto floats = static_cast<std::size_t>(layout.floats());
    const auto integers = static_cast<std::size_t>(layout.elements - layout.front.size);
    const auto rounded = static_cast<std::size_t>(layout.rounded());
    const std::size_t bytes = sizeof(std::int64_t) * integers + sizeof(std::int16_t) * rounded +
                              (lossy ? pipeline::encoded_bytes(*lossy, floats) : 0);
    all.push_back(static_cast<double>(bytes));
  }
  return all;
}

}  // namespace

pipeline::IterationWork iteration_work(const TrainingSetup& setup) {
  pipeline::IterationWork work;
  work.micro_batches = setup.options.all_parts();
  work.step_bytes = step_bytes(setup.options, *setup.gan);
  work.bucket_bytes = static_cast<double>(setup.topology.reducer.segment_bytes);
  work.workers_per_member = setup.topology.replica.count;
  work.by_speed = setup.topology.cluster.rebalance && setup.topology.cluster.shares.empty();
  if (setup.options.parts() == 1) return work;
  work.parts = setup.options.parts();
  work.site_iterations = setup.options.strategy.steps;
  work.site_step_bytes = step_bytes(pipeline::options_of_worker(setup.options), *setup.gan);
  return work;
}

std::vector<runtime::Term> terms_of(const TrainingSetup& setup) {
  using runtime::ErrorKind;
  return {{"topology", setup.topology_hash.text(), ErrorKind::kTopology},
          {"plan", runtime::hash_of(runtime::print(setup.plan)).text(), ErrorKind::kTopology},
          {"numerics class", setup.backend->numerics_class(), ErrorKind::kUsage},
          {"data fingerprint", setup.identity.fingerprint.text(), ErrorKind::kData}};
}

}  // namespace troupe::launch

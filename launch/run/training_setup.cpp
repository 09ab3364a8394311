#include "launch/run/training_setup.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "config/cluster_plan.h"
#include "config/member_ring.h"
#include "config/plan.h"
#include "config/workers.h"
#include "launch/machine/usable_machine.h"
#include "launch/run/backend_choice.h"
#include "pipeline/steps/sum_layout.h"
#include "pipeline/steps/view_fields.h"
#include "runtime/base/thread_team.h"
#include "runtime/node/patience.h"

namespace troupe::launch {
namespace {

using runtime::Result;

static_assert(config::kMostMicroBatches == pipeline::kMostMicroBatches,
              "every iteration that a topology may ask for finds room in a View");

config::TrainingSizes sizes_of(const config::Topology& topology, const model::Gan& gan) {
  config::TrainingSizes sizes;
  sizes.micro_batches = topology.train.options.micro_batches;
  sizes.loader_credits = static_cast<std::uint32_t>(topology.loader.credits);
  sizes.batch_bytes = batch_bytes(gan);
  sizes.contribution_elements = contribution_elements(topology, gan);
  sizes.segment_bytes = topology.reducer.segment_bytes;
  sizes.validator = validates(topology);
  return sizes;
}

config::ClusterPlanOptions cluster_options(const config::Topology& topology, const model::Gan& gan,
                                           std::uint32_t members,
                                           std::vector<std::uint64_t> shares) {
  config::ClusterPlanOptions options{sizes_of(topology, gan), members, topology.replica.count,
                                     std::move(shares), 0};
  // The arrays, and room for the rest of a state: names, scales and counters.
  options.state_bytes = state_bytes(topology, gan) + (std::int64_t{1} << 20);
  return options;
}

std::optional<pipeline::ReductionFormat> format_of(config::Reduction reduction) {
  switch (reduction) {
    case config::Reduction::kExact:
      return std::nullopt;
    case config::Reduction::kFp32:
      return pipeline::ReductionFormat::kFp32;
    case config::Reduction::kBf16:
      return pipeline::ReductionFormat::kBf16;
    case config::Reduction::kInt8:
      return pipeline::ReductionFormat::kInt8;
  }
  CHECK(false, "unknown reduction");
}

}  // namespace

std::int64_t batch_bytes(const model::Gan& gan) {
  const std::int64_t event_bytes = gan.discriminator().input_shape().elements() * 4 + 3 * 4 + 8;
  return gan.batch() * event_bytes;
}

std::int64_t contribution_elements(const config::Topology& topology, const model::Gan& gan) {
  std::int64_t most = 0;
  for (const model::SlotKind slot : topology.train.options.schedule) {
    most = std::max(most, gan.contributions(slot).size);
  }
  return most;
}

std::int64_t state_bytes(const config::Topology& topology, const model::Gan& gan) {
  const auto size = [](const model::Program& program, const model::OptimiserOptions& optimiser) {
    const model::ParameterLayout& layout = program.parameters();
    return layout.size() + layout.weights_size * model::optimiser_arrays(optimiser);
  };
  const auto& options = topology.train.options;
  return static_cast<std::int64_t>(sizeof(float)) *
         (size(gan.generator(), options.generator_optimiser) +
          size(gan.discriminator(), options.discriminator_optimiser));
}

RunSize size_of_run(const config::Topology& topology, std::uint32_t members) {
  if (members == 0) return {};
  const std::uint32_t restart =
      std::min(topology.cluster.failure.restart, config::kMostMembers - members);
  const std::uint32_t joiners =
      std::min(topology.cluster.joiners, config::kMostMembers - members - restart);
  return {members, members + restart + joiners, restart};
}

Result<runtime::Plan> make_plan(const config::Topology& asked, const config::Origins& origins,
                                const model::Gan& gan, const RunSize& size) {
  RETURN_IF_ERROR(config::check_workers(asked, size.members, origins));
  const config::Topology topology = config::scaled(asked, size.members);
  if (size.members == 0) {
    config::LocalPlanOptions options{sizes_of(topology, gan), topology.replica.count};
    return config::make_local_plan(options, topology.links, origins);
  }
  return config::make_cluster_plan(cluster_options(topology, gan, size.places, {}), topology.links,
                                   origins);
}

Result<std::vector<std::uint64_t>> replica_weights(const config::Topology& topology,
                                                   const model::Gan& gan, std::uint32_t members) {
  if (members == 0) return std::vector<std::uint64_t>(topology.replica.count, 1);
  ASSIGN_OR_RETURN(auto shares, config::member_shares(topology, members, {}));
  return config::replica_weights(cluster_options(topology, gan, members, std::move(shares)));
}

namespace {

// All but the data, and what follows from it.
Result<TrainingSetup> set_up_networks(const config::Topology& asked, const RunSize& size,
                                      const config::Origins& origins) {
  const std::uint32_t members = size.members;
  const config::Topology topology = config::scaled(asked, members);
  ASSIGN_OR_RETURN(auto backend, make_backend(topology.model));
  pipeline::TrainingOptions options = topology.train.options;
  options.lossy = format_of(topology.reducer.reduction);
  ASSIGN_OR_RETURN(auto gan,
                   model::Gan::compile(topology.model.gan, *backend, options.micro_batch));
  ASSIGN_OR_RETURN(runtime::Plan plan, make_plan(asked, origins, *gan, size));
  ASSIGN_OR_RETURN(auto weights, replica_weights(topology, *gan, members));
  // Who joins later counts as one that no share was given for.
  weights.resize(std::max<std::size_t>(weights.size(), size.places * topology.replica.count), 1);
  return TrainingSetup{std::move(backend),
                       std::move(gan),
                       std::move(plan),
                       std::move(weights),
                       {},
                       std::nullopt,
                       std::move(options),
                       0,
                       size.places};
}

void take_identity(const config::Topology& topology, const DataIdentity& identity,
                   TrainingSetup& setup) {
  setup.identity = identity;
  setup.options.iterations_per_epoch = identity.iterations_per_epoch;
  setup.iterations = topology.train.epochs * identity.iterations_per_epoch;
  if (topology.train.iterations) {
    setup.iterations = std::min(setup.iterations, *topology.train.iterations);
  }
}

}  // namespace

Result<TrainingSetup> set_up_training(const config::Topology& asked, const RunSize& size,
                                      const std::string& data_folder, bool with_test_data,
                                      runtime::Log& log, const config::Origins& origins) {
  const config::Topology topology = config::scaled(asked, size.members);
  ASSIGN_OR_RETURN(TrainingSetup setup, set_up_networks(asked, size, origins));
  runtime::ThreadTeam team(usable_processors());
  ASSIGN_OR_RETURN(setup.data,
                   open_training_data(topology, data_folder, with_test_data, team, log));
  take_identity(topology, setup.data->identity(), setup);
  return setup;
}

Result<TrainingSetup> set_up_training(const config::Topology& asked, const RunSize& size,
                                      const DataIdentity& of_head) {
  ASSIGN_OR_RETURN(TrainingSetup setup, set_up_networks(asked, size, {}));
  take_identity(asked, of_head, setup);
  return setup;
}

actors::NodeParts computing_parts(TrainingSetup& setup, const config::Topology& topology,
                                  runtime::Disk& disk, std::uint32_t members,
                                  std::uint32_t member) {
  actors::NodeParts parts{setup.context(),
                          disk,
                          setup.data ? &setup.data->train : nullptr,
                          setup.data ? &setup.data->sampler : nullptr,
                          setup.data && setup.data->test ? &*setup.data->test : nullptr,
                          {},
                          {},
                          {},
                          {},
                          {},
                          {},
                          {},
                          {}};
  parts.loader.iterations = setup.iterations;
  parts.loader.checks.every = topology.cluster.failure.check_every;
  parts.loader.checks.seed = setup.options.seed;
  parts.loader.checks.slots = static_cast<std::uint32_t>(setup.options.schedule.size());
  parts.loader.checks.replicas_per_member = topology.replica.count;
  parts.replica.checks = parts.loader.checks;
  if (members > 0) {
    parts.replica.loader = setup.data ? config::loader_name(member) : config::kHeadLoader;
  }
  parts.replica.threads = static_cast<int>(topology.replica.threads);
  parts.replica.segment_bytes = topology.reducer.segment_bytes;
  parts.replica.overlap = topology.replica.overlap;
  parts.replica.checkpoint = topology.checkpointer.every;
  parts.replica.validation = topology.validator.every;
  parts.reducer.member = member;
  parts.member.reducer = fmt::format("reducer.{}", member);
  parts.reducer.first_replica = member * topology.replica.count;
  parts.reducer.replicas = topology.replica.count;
  parts.reducer.micro_batches = setup.options.micro_batches;
  parts.reducer.events = std::uint64_t{setup.options.micro_batches} * setup.options.micro_batch;
  parts.reducer.lossy = setup.options.lossy;
  parts.reducer.replay_bytes = topology.cluster.replay_bytes;
  parts.reducer.slot_floats.clear();
  for (const model::SlotKind slot : setup.options.schedule) {
    const auto layout = pipeline::sum_layout(setup.gan->contributions(slot), setup.options.lossy);
    parts.reducer.slot_floats.push_back(static_cast<std::size_t>(layout.floats));
  }
  return parts;
}

actors::CoordinatorOptions coordinator_options(const TrainingSetup& setup,
                                               const config::Topology& topology,
                                               std::uint32_t members, actors::StatePointer state) {
  actors::CoordinatorOptions options;
  options.first_step = state->step(setup.options.schedule.size());
  options.iterations = setup.iterations;
  options.state = std::move(state);
  options.validate = setup.data && setup.data->test;
  options.parting_grace = topology.cluster.failure.dead_after;
  options.accused_grace = runtime::Patience(options.parting_grace).most();
  options.membership.replicas_per_member = topology.replica.count;
  options.membership.weights = setup.replica_weights;
  options.membership.micro_batches = setup.options.micro_batches;
  options.membership.slots = static_cast<std::uint32_t>(setup.options.schedule.size());
  options.membership.end_step = setup.iterations * setup.options.schedule.size();
  // Lossy sums depend on who computes what.
  options.shares_anew =
      topology.cluster.rebalance && topology.cluster.shares.empty() && !setup.options.lossy;
  if (members == 0) return options;
  options.membership.min_members = topology.cluster.failure.min_members;
  options.membership.ring = config::member_ring(topology.cluster, members);
  options.places.clear();
  for (std::uint32_t member = 0; member < setup.places; ++member) {
    options.places.push_back({config::member_name(member), fmt::format("reducer.{}", member)});
  }
  return options;
}

std::vector<runtime::Term> terms_of(const TrainingSetup& setup,
                                    const runtime::Hash128& topology_hash) {
  using runtime::ErrorKind;
  return {{"topology", topology_hash.text(), ErrorKind::kTopology},
          {"plan", runtime::hash_of(runtime::print(setup.plan)).text(), ErrorKind::kTopology},
          {"numerics class", setup.backend->numerics_class(), ErrorKind::kUsage},
          {"data fingerprint", setup.identity.fingerprint.text(), ErrorKind::kData}};
}

}  // namespace troupe::launch

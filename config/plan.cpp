#include "config/plan.h"

#include <fmt/format.h>

namespace troupe::config {
namespace {

using runtime::Plan;

void add_actors(const LocalPlanOptions& options, Plan& plan) {
  plan.actors.push_back({"coordinator", "coordinator", "", false});
  plan.actors.push_back({"loader", "loader", "coordinator", true});
  for (std::uint32_t i = 0; i < options.replicas; ++i) {
    plan.actors.push_back({fmt::format("replica.{}", i), "replica", "coordinator", true});
  }
  plan.actors.push_back({"reducer", "reducer", "coordinator", false});
  plan.actors.push_back({"checkpointer", "checkpointer", "coordinator", true});
  if (options.validator) plan.actors.push_back({"validator", "validator", "coordinator", true});
  plan.actors.push_back({"monitor", "monitor", "coordinator", true});
}

}  // namespace

runtime::Result<Plan> make_local_plan(const LocalPlanOptions& options,
                                      const std::vector<LinkOverride>& overrides,
                                      const Origins& origins) {
  // The most micro-batches of an iteration that one replica has.
  const std::int64_t share = (options.micro_batches + options.replicas - 1) / options.replicas;
  Plan plan;
  add_actors(options, plan);
  for (std::uint32_t i = 0; i < options.replicas; ++i) {
    add_replica_links(options, i, {}, share, plan);
  }
  add_watching_links(options, kSharedSnapshotBytes, plan);
  RETURN_IF_ERROR(apply_link_overrides(overrides, origins, options, share, plan));
  return plan;
}

}  // namespace troupe::config

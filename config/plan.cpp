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
  Plan plan;
  add_actors(options, plan);
  for (std::uint32_t i = 0; i < options.replicas; ++i) {
    add_replica_links(options, i, {}, plan);
  }
  add_watching_links(options, {0}, kSharedSnapshotBytes, plan);
  std::vector<std::string> telling{"loader", "reducer"};
  for (std::uint32_t i = 0; i < options.replicas; ++i) {
    telling.push_back(fmt::format("replica.{}", i));
  }
  add_sample_links(telling, plan);
  RETURN_IF_ERROR(apply_link_overrides(overrides, origins, plan));
  return plan;
}

}  // namespace troupe::config

#include "config/plan.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "runtime/message.h"

namespace troupe::config {
namespace {

using runtime::Lane;
using runtime::LinkPlan;
using runtime::Plan;

constexpr std::int64_t kMetricsMessages = 1024;

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

void add_replica_links(const LocalPlanOptions& options, std::uint32_t replica, Plan& plan) {
  const std::string name = fmt::format("replica.{}", replica);
  // One more for the end of data.
  const std::int64_t batches = (options.micro_batches + options.replicas - 1) / options.replicas +
                               options.loader_credits + 1;
  plan.links.push_back({"loader", fmt::format("batches.{}", replica), name, "batches", Lane::kData,
                        batches, batches * (options.batch_bytes + runtime::Message::kOverheadBytes),
                        0});
  const std::int64_t bytes =
      options.contribution_elements * static_cast<std::int64_t>(sizeof(std::int64_t));
  // The buckets and the header of a step, twice.
  const std::int64_t messages = 2 * (bytes / std::max<std::int64_t>(options.segment_bytes, 1) + 2);
  const std::int64_t credit =
      2 * bytes + messages * runtime::Message::kOverheadBytes + (std::int64_t{1} << 16);
  plan.links.push_back(
      {name, "contributions", "reducer", "contributions", Lane::kData, messages, credit, 0});
  plan.links.push_back({"reducer", fmt::format("reduced.{}", replica), name, "reduced", Lane::kData,
                        messages, credit, 1});
}

void add_metrics_link(const std::string& from, Plan& plan) {
  LinkPlan link{from,           "metrics",        "monitor", "metrics",
                Lane::kMetrics, kMetricsMessages, 1 << 20,   0};
  plan.links.push_back(link);
}

// The kind of an actor of the plan: its name up to the dot.
std::string_view kind_of(std::string_view actor) { return actor.substr(0, actor.find('.')); }

void apply(const LinkOverride& change, Plan& plan) {
  for (LinkPlan& link : plan.links) {
    if (kind_of(link.from) != change.from || kind_of(link.to) != change.to) continue;
    link.message_credits = change.credits.value_or(link.message_credits);
    link.byte_credits = change.bytes.value_or(link.byte_credits);
    link.tokens = change.tokens.value_or(link.tokens);
  }
}

}  // namespace

Plan make_local_plan(const LocalPlanOptions& options, const std::vector<LinkOverride>& overrides) {
  Plan plan;
  add_actors(options, plan);
  for (std::uint32_t i = 0; i < options.replicas; ++i) add_replica_links(options, i, plan);
  // Snapshots share the replica's memory, so their number is what bounds it.
  plan.links.push_back(
      {"replica.0", "snapshots", "checkpointer", "snapshots", Lane::kData, 2, 1 << 20, 0});
  if (options.validator) {
    plan.links.push_back(
        {"replica.0", "validation", "validator", "snapshots", Lane::kData, 2, 1 << 20, 0});
    add_metrics_link("validator", plan);
  }
  add_metrics_link("replica.0", plan);
  add_metrics_link("checkpointer", plan);
  for (const LinkOverride& change : overrides) apply(change, plan);
  return plan;
}

}  // namespace troupe::config

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

// The most micro-batches of an iteration that one replica has.
std::int64_t share_of(const LocalPlanOptions& options) {
  return (options.micro_batches + options.replicas - 1) / options.replicas;
}

std::int64_t message_bytes(const LocalPlanOptions& options) {
  return options.batch_bytes + runtime::Message::kOverheadBytes;
}

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
  const std::int64_t batches = share_of(options) + options.loader_credits + 1;
  plan.links.push_back({"loader", fmt::format("batches.{}", replica), name, "batches", Lane::kData,
                        batches, batches * message_bytes(options), 0});
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

// Sets what the topology says about links, and collects what is wrong with it.
class Changes {
 public:
  Changes(const LocalPlanOptions& options, const Origins& origins, Plan& plan)
      : options_(options), origins_(origins), plan_(plan) {}

  void apply(std::size_t index, const LinkOverride& change) {
    path_ = fmt::format("links.{}", index);
    bool found = false;
    for (LinkPlan& link : plan_.links) {
      if (kind_of(link.from) != change.from || kind_of(link.to) != change.to) continue;
      found = true;
      check(link, change);
      link.message_credits = change.credits.value_or(link.message_credits);
      link.byte_credits = change.bytes.value_or(link.byte_credits);
      link.tokens = change.tokens.value_or(link.tokens);
    }
    if (!found) {
      complain("", fmt::format("there is no link from {} to {}; there are {}", change.from,
                               change.to, fmt::join(links(), ", ")));
    }
  }
  const Problems& problems() const { return problems_; }

 private:
  // A replica keeps the micro-batches of an iteration, with their credit, until it has made it.
  void check(const LinkPlan& link, const LinkOverride& change) {
    const std::int64_t share = share_of(options_);
    const bool batches = link.to_port == "batches";
    if (batches && change.credits.value_or(share) < share) {
      complain("credits", fmt::format("a replica keeps the {} micro-batches of an iteration until "
                                      "it is made; {} credits are too few, give {} or more",
                                      share, *change.credits, share));
    }
    // One message passes alone, however large it is.
    const std::int64_t bytes = share == 1 ? 1 : share * message_bytes(options_);
    if (batches && change.bytes.value_or(bytes) < bytes) {
      complain("bytes",
               fmt::format("a replica keeps the {} micro-batches of an iteration, {} bytes "
                           "each, until it is made; give {} or more",
                           share, message_bytes(options_), bytes));
    }
    if (link.to_port == "reduced" && change.tokens == 0) {
      complain("tokens", fmt::format("{} and {} wait for each other from the start without a token "
                                     "of this link; give 1 or more",
                                     change.from, change.to));
    }
  }

  void complain(std::string_view field, const std::string& message) {
    const std::string path = field.empty() ? path_ : fmt::format("{}.{}", path_, field);
    const auto origin = origins_.find(path);
    problems_.add(origin == origins_.end() ? Place{} : origin->second,
                  fmt::format("{}: {}", path, message));
  }

  std::vector<std::string> links() const {
    std::vector<std::string> names;
    for (const LinkPlan& link : plan_.links) {
      std::string name = fmt::format("{} -> {}", kind_of(link.from), kind_of(link.to));
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
  }

  const LocalPlanOptions& options_;
  const Origins& origins_;
  Plan& plan_;
  std::string path_;
  Problems problems_;
};

}  // namespace

runtime::Result<Plan> make_local_plan(const LocalPlanOptions& options,
                                      const std::vector<LinkOverride>& overrides,
                                      const Origins& origins) {
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
  Changes changes(options, origins, plan);
  for (std::size_t i = 0; i < overrides.size(); ++i) changes.apply(i, overrides[i]);
  if (!changes.problems().empty()) return changes.problems().error();
  return plan;
}

}  // namespace troupe::config

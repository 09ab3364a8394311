#include "actors/spawn.h"

#include <charconv>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::actors {
namespace {

using runtime::Actor;
using runtime::ActorPlan;

std::uint32_t replica_number(const std::string& name) {
  const std::string_view digits = std::string_view(name).substr(name.find('.') + 1);
  std::uint32_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  CHECK(parsed.ec == std::errc{}, "a replica is called replica.N, not " + name);
  return number;
}

// All replicas of a node have the same options but for the number, which stands in the name.
std::unique_ptr<Actor> make_replica(const NodeParts& parts, const ActorPlan& plan) {
  ReplicaOptions options = parts.replica;
  options.replica = replica_number(plan.name);
  return std::make_unique<Replica>(options, parts.training);
}

// The Validator's place in the plan has what judges the states of the task.
std::unique_ptr<Actor> make_judge(const NodeParts& parts) {
  CHECK(parts.test_dataset != nullptr);
  if (parts.training.gan.description().task == model::Task::kSupervised) {
    return std::make_unique<Evaluator>(parts.validator, parts.training, *parts.test_dataset);
  }
  if (parts.judge != nullptr) {
    return std::make_unique<ImageValidator>(parts.validator, parts.training, *parts.test_dataset,
                                            *parts.judge);
  }
  return std::make_unique<Validator>(parts.validator, parts.training, *parts.test_dataset);
}

}  // namespace

runtime::ActorFactory make_actor_factory(const NodeParts& parts) {
  return [&parts](const ActorPlan& plan) -> std::unique_ptr<Actor> {
    const pipeline::TrainingOptions& training = parts.training.options;
    if (plan.kind == "coordinator") {
      return std::make_unique<Coordinator>(parts.coordinator, parts.outcome);
    }
    if (plan.kind == "member") return std::make_unique<Member>(parts.member);
    if (plan.kind == "loader") {
      CHECK(parts.dataset != nullptr && parts.sampler != nullptr);
      return std::make_unique<Loader>(parts.loader, *parts.dataset, *parts.sampler);
    }
    if (plan.kind == "replica") return make_replica(parts, plan);
    if (plan.kind == "reducer") return std::make_unique<Reducer>(parts.reducer);
    if (plan.kind == "checkpointer") {
      return std::make_unique<Checkpointer>(parts.checkpointer, parts.disk, parts.training.gan,
                                            training);
    }
    if (plan.kind == "validator") {
      return make_judge(parts);
    }
    if (plan.kind == "provisioner") {
      return std::make_unique<Provisioner>(parts.provisioner, parts.outcome);
    }
    if (plan.kind == "monitor") return std::make_unique<Monitor>(parts.monitor, parts.disk);
    CHECK(false, "no actor of kind " + plan.kind);
  };
}

}  // namespace troupe::actors

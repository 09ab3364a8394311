#pragma once

// The one place that knows every kind of actor: from a plan entry to the actor.

#include <memory>

#include "actors/checkpointer.h"
#include "actors/coordinator.h"
#include "actors/evaluator.h"
#include "actors/image_validator.h"
#include "actors/loader.h"
#include "actors/member.h"
#include "actors/monitor.h"
#include "actors/provisioner.h"
#include "actors/reducer.h"
#include "actors/replica.h"
#include "actors/validator.h"
#include "runtime/node/node.h"

namespace troupe::actors {

// Everything the actors of one node are made from. Outlives the node.
struct NodeParts {
  TrainingContext training;
  runtime::Disk& disk;
  // Null: no loader among them.
  pipeline::Dataset* dataset = nullptr;
  pipeline::Sampler* sampler = nullptr;
  pipeline::Dataset* test_dataset = nullptr;  // null: no validator in the plan
  pipeline::ImageJudge* judge = nullptr;      // null: images are judged as showers

  CoordinatorOptions coordinator = {};
  LoaderOptions loader = {};
  MemberOptions member = {};
  ReplicaOptions replica = {};  // `replica` is set for each one
  ReducerOptions reducer = {};
  CheckpointerOptions checkpointer = {};
  ValidatorOptions validator = {};
  MonitorOptions monitor = {};
  ProvisionerOptions provisioner = {};
  std::shared_ptr<RunOutcome> outcome = std::make_shared<RunOutcome>();
};

// Kinds: coordinator, member, loader, replica (named replica.N), reducer, checkpointer, validator,
// monitor, provisioner. An unknown kind is a broken invariant.
runtime::ActorFactory make_actor_factory(const NodeParts& parts);

}  // namespace troupe::actors

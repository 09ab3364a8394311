#pragma once

// Writes snapshots as checkpoint files beside training and keeps the newest and the best of them. A
// state whose validation is the best so far is written even where no checkpoint was due, or where
// its file was removed meanwhile.
//
// Ports: in "snapshots", control; out "metrics". The Checkpointer has a thread of its own because
// disks block. When a checkpoint cannot be written the log says so and the older ones stay; when it
// is that of the run's last state, the run ends with that error. The last state overtakes snapshots
// that wait, which are then left out.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/sample_teller.h"
#include "config/topology.h"
#include "model/gan.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "pipeline/steps/training_state.h"
#include "runtime/actor.h"
#include "runtime/base/disk.h"

namespace troupe::actors {

struct CheckpointerOptions {
  std::string folder;  // exists
  // Newest files kept; the best one comes on top.
  std::uint32_t keep = config::CheckpointerSection{}.keep;
  std::string topology;  // effective topology, stored in every file
  runtime::Hash128 topology_hash;
  std::string model;   // its name, stored in every file
  std::string origin;  // likewise: Checkpoint::origin
  // In a run that goes on: the step that it goes on from, whose file is in the folder, and the best
  // file.
  std::optional<std::uint64_t> written_step;
  std::optional<pipeline::BestCheckpoint> best;
};

class Checkpointer final : public runtime::Actor {
  using Context = runtime::Context;
  using Message = runtime::Message;

 public:
  // Disk, gan and training outlive the actor.
  Checkpointer(CheckpointerOptions options, runtime::Disk& disk, const model::Gan& gan,
               const pipeline::TrainingOptions& training);

  void start(Context& context) override;

 private:
  void receive_snapshot(Context& context, const Snapshot& snapshot);
  void receive_validated(Context& context, const ValidatedState& validated);
  void receive_last_state(Context& context, const LastState& last);
  void receive_finish(Context& context, const FinishMetrics& finish, Message& message);
  void log_failure(Context& context, const runtime::Result<void>& kept);
  bool is_new(const StatePointer& state) const;
  bool is_in_folder(const std::vector<std::string>& names, const StatePointer& state) const;
  runtime::Result<void> keep_newest(Context& context, const StatePointer& state);
  // The state, or the one that is saved if that is newer.
  runtime::Result<StatePointer> keep_last(Context& context, const StatePointer& state);
  runtime::Result<void> keep_best(Context& context, const ValidatedState& validated);
  runtime::Result<void> write(Context& context, const StatePointer& state);
  void remove_old(Context& context);
  // Makes the folder's link of that name point to the checkpoint of the step. A link that cannot be
  // made is removed, because it would point to an older one; the log says so once.
  void link(Context& context, const char* name, std::uint64_t step);

  CheckpointerOptions options_;
  runtime::Disk& disk_;
  const model::Gan& gan_;
  const pipeline::TrainingOptions& training_;
  runtime::PortId metrics_;
  SampleTeller samples_;
  bool told_of_links_ = false;                 // the log says that the file system has no links
  std::optional<std::uint64_t> written_step_;  // the newest
  std::optional<pipeline::BestCheckpoint> best_;
};

}  // namespace troupe::actors

#pragma once

// Writes snapshots as checkpoint files beside training and keeps the newest and the best of them.
// The best state is written when its validation says so, also where no checkpoint was due or the
// file had to make room meanwhile.
//
// Ports: in "snapshots", control; out "metrics". Has a thread of its own: disks block. A checkpoint
// that cannot be written is an error in the log and the older ones stand; of the run's last state
// it is the run's error. The last state overtakes snapshots that wait: those are then left out.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/sample_teller.h"
#include "model/gan.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "pipeline/steps/training_state.h"
#include "runtime/actor.h"
#include "runtime/base/disk.h"

namespace troupe::actors {

struct CheckpointerOptions {
  std::string folder;      // exists
  std::uint32_t keep = 3;  // newest files kept; the best one comes on top
  std::string topology;    // effective topology, stored in every file
  runtime::Hash128 topology_hash;
  std::string model;  // its name, stored in every file
  // Of a run that goes on: the step it goes on from, whose file is in the folder, and the best
  // file.
  std::optional<std::uint64_t> written_step;
  std::optional<pipeline::BestCheckpoint> best;
};

class Checkpointer final : public runtime::Actor {
 public:
  // Disk, gan and training outlive the actor.
  Checkpointer(CheckpointerOptions options, runtime::Disk& disk, const model::Gan& gan,
               const pipeline::TrainingOptions& training);

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;

 private:
  bool is_new(const StatePointer& state) const;
  bool is_in_folder(const std::vector<std::string>& names, const StatePointer& state) const;
  runtime::Result<void> keep_newest(runtime::Context& context, const StatePointer& state);
  runtime::Result<void> keep_best(runtime::Context& context, const ValidatedState& validated);
  runtime::Result<void> write(runtime::Context& context, const StatePointer& state);
  void remove_old(runtime::Context& context);
  // Makes the folder's link of that name lead to the checkpoint of the step. A link that cannot be
  // made is removed, because it would lead to an older one; the log says so once.
  void link(runtime::Context& context, const char* name, std::uint64_t step);
  void finish_metrics(runtime::Context& context, runtime::Message end);

  CheckpointerOptions options_;
  runtime::Disk& disk_;
  const model::Gan& gan_;
  const pipeline::TrainingOptions& training_;
  runtime::PortId metrics_;
  SampleTeller samples_;
  bool told_of_links_ = false;                 // that the file system has none
  std::optional<std::uint64_t> written_step_;  // the newest
  std::optional<pipeline::BestCheckpoint> best_;
};

}  // namespace troupe::actors

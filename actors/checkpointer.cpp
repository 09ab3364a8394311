#include "actors/checkpointer.h"

#include <utility>

#include <fmt/format.h>

#include "pipeline/checkpoint.h"

namespace troupe::actors {

using runtime::Context;
using runtime::Message;
using runtime::Result;

Checkpointer::Checkpointer(CheckpointerOptions options, runtime::Disk& disk, const model::Gan& gan,
                           const pipeline::TrainingOptions& training)
    : options_(std::move(options)), disk_(disk), gan_(gan), training_(training) {}

void Checkpointer::start(Context& context) { metrics_ = context.out("metrics"); }

void Checkpointer::receive(Context& context, Message message) {
  if (const auto* snapshot = message.as<Snapshot>()) {
    if (const auto written = write(context, snapshot->state); !written.ok()) {
      context.log().error(written.error().message + "; older checkpoints stay as they are");
    }
  } else if (const auto* last = message.as<LastState>()) {
    const auto written = write(context, last->state);
    LastStateDone done;
    if (!written.ok()) done.error = written.error();
    context.send_control("coordinator", Message::of(std::move(done)));
  } else if (const auto* best = message.as<BestStep>()) {
    best_ = pipeline::checkpoint_name(best->step);
  } else if (message.as<FinishMetrics>() != nullptr) {
    finish_metrics(context, std::move(message));
  }
}

// Sent as control it would overtake the metrics that wait at the monitor; only where those are so
// many that some are dropped anyway may it.
void Checkpointer::finish_metrics(Context& context, Message end) {
  if (metrics_.valid() && context.can_send(metrics_, end.bytes())) {
    context.send(metrics_, std::move(end));
  } else {
    context.send_control("monitor", std::move(end));
  }
}

Result<void> Checkpointer::write(Context& context, const StatePointer& state) {
  const std::uint64_t step = state->step(training_.schedule.size());
  // The last state overtakes the snapshots that wait.
  if (written_step_ && *written_step_ >= step) return {};
  pipeline::Checkpoint checkpoint;
  checkpoint.state = *state;
  checkpoint.topology = options_.topology;
  checkpoint.topology_hash = options_.topology_hash;
  checkpoint.model = options_.model;
  checkpoint.state_hash = pipeline::hash_of_state(*state);
  ASSIGN_OR_RETURN(const runtime::Buffer file,
                   pipeline::encode_checkpoint(checkpoint, gan_, training_));
  const std::string name = pipeline::checkpoint_name(step);
  RETURN_IF_ERROR(disk_.replace(options_.folder + "/" + name, file.bytes()));
  written_step_ = step;
  if (metrics_.valid()) {
    context.send(metrics_, Message::of(EventMetrics{
                               "checkpoint", step,
                               fmt::format(R"({{"file":"{}","bytes":{},"state_hash":"{}"}})", name,
                                           file.size(), checkpoint.state_hash.text())}));
  }
  remove_old(context);
  return {};
}

// A file that cannot be removed costs space, not the run.
void Checkpointer::remove_old(Context& context) {
  const auto names = disk_.list(options_.folder);
  if (!names.ok()) {
    context.log().warning(names.error().message);
    return;
  }
  for (const std::string& name : pipeline::to_remove(*names, options_.keep, best_)) {
    if (const auto removed = disk_.remove(options_.folder + "/" + name); !removed.ok()) {
      context.log().warning(removed.error().message);
    }
  }
}

}  // namespace troupe::actors

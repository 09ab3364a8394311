#include "actors/checkpointer.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "pipeline/checkpoint/checkpoint.h"

namespace troupe::actors {

using runtime::Context;
using runtime::Message;
using runtime::Result;

Checkpointer::Checkpointer(CheckpointerOptions options, runtime::Disk& disk, const model::Gan& gan,
                           const pipeline::TrainingOptions& training)
    : options_(std::move(options)), disk_(disk), gan_(gan), training_(training) {
  written_step_ = options_.written_step;
  best_ = options_.best;
}

void Checkpointer::start(Context& context) {
  on<Snapshot>(&Checkpointer::receive_snapshot);
  on<ValidatedState>(&Checkpointer::receive_validated);
  on<LastState>(&Checkpointer::receive_last_state);
  on<FinishMetrics>(&Checkpointer::receive_finish);
  metrics_ = context.out("metrics");
  samples_.start(context, "metrics");
}

void Checkpointer::receive_snapshot(Context& context, const Snapshot& snapshot) {
  log_failure(context, keep_newest(context, snapshot.state));
}

void Checkpointer::receive_validated(Context& context, const ValidatedState& validated) {
  log_failure(context, keep_best(context, validated));
}

void Checkpointer::receive_last_state(Context& context, const LastState& last) {
  LastStateDone done;
  if (auto saved = keep_last(context, last.state); saved.ok()) {
    done.state = std::move(saved).value();
  } else {
    done.error = saved.error();
  }
  context.send_control("coordinator", Message::of(std::move(done)));
}

// The end goes to the Monitor behind the metrics that wait there. As a control message it would
// overtake them, so it is sent as one only where so many wait that some are dropped anyway.
void Checkpointer::receive_finish(Context& context, const FinishMetrics&, Message& message) {
  if (metrics_.valid() && context.can_send(metrics_, message.bytes())) {
    context.send(metrics_, std::move(message));
  } else {
    context.send_control("monitor", std::move(message));
  }
}

void Checkpointer::log_failure(Context& context, const Result<void>& kept) {
  if (kept.ok()) return;
  context.log().error(kept.error().message + "; older checkpoints stay as they are");
}

bool Checkpointer::is_new(const StatePointer& state) const {
  return !written_step_ || *written_step_ < state->step(training_.schedule.size());
}

// The file is whole before a link or a metric names it. A best state may be older than the newest
// file, and then leaves the link to the newest where it is.
Result<void> Checkpointer::write(Context& context, const StatePointer& state) {
  const runtime::TimePoint start = context.now();
  const std::uint64_t step = state->step(training_.schedule.size());
  pipeline::Checkpoint checkpoint;
  checkpoint.state = *state;
  checkpoint.topology = options_.topology;
  checkpoint.topology_hash = options_.topology_hash;
  checkpoint.model = options_.model;
  checkpoint.origin = options_.origin;
  checkpoint.state_hash = pipeline::hash_of_state(*state);
  ASSIGN_OR_RETURN(const runtime::Buffer file,
                   pipeline::encode_checkpoint(checkpoint, gan_, training_));
  const std::string name = pipeline::checkpoint_name(step);
  RETURN_IF_ERROR(disk_.replace(options_.folder + "/" + name, file.bytes()));
  if (is_new(state)) {
    written_step_ = step;
    link(context, pipeline::kLatestLink, step);
  }
  if (metrics_.valid()) {
    telemetry::CheckpointFacts facts{name, file.size(), checkpoint.state_hash.text()};
    context.send(metrics_, Message::of(EventMetrics{{0.0, step, std::move(facts)}}));
    samples_.add(context, "write_seconds",
                 std::chrono::duration<double>(context.now() - start).count());
    samples_.add(context, "write_bytes", static_cast<double>(file.size()));
    samples_.tell_all(context);
  }
  return {};
}

bool Checkpointer::is_in_folder(const std::vector<std::string>& names,
                                const StatePointer& state) const {
  const std::string name = pipeline::checkpoint_name(state->step(training_.schedule.size()));
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A state that is not new is written again where somebody has removed its file, the newest.
Result<void> Checkpointer::keep_newest(Context& context, const StatePointer& state) {
  if (!is_new(state)) {
    ASSIGN_OR_RETURN(const auto names, disk_.list(options_.folder));
    const bool is_newest = written_step_ == state->step(training_.schedule.size());
    if (!is_newest || is_in_folder(names, state)) return {};
  }
  RETURN_IF_ERROR(write(context, state));
  remove_old(context);
  return {};
}

// A leader that leaves may have sent the state behind a step that the others still have to make.
// They would make the same bits of it, so when the run ends before that, this state is its last. It
// is read from its file, because keeping it in memory would cost every run a state.
Result<StatePointer> Checkpointer::keep_last(Context& context, const StatePointer& state) {
  if (is_new(state) || written_step_ == state->step(training_.schedule.size())) {
    RETURN_IF_ERROR(keep_newest(context, state));
    return state;
  }
  const std::string path = options_.folder + "/" + pipeline::checkpoint_name(*written_step_);
  ASSIGN_OR_RETURN(const runtime::Buffer file, disk_.read(path));
  ASSIGN_OR_RETURN(pipeline::Checkpoint newest,
                   pipeline::decode_checkpoint(file, path, gan_, training_));
  return std::make_shared<const pipeline::TrainingState>(std::move(newest.state));
}

// The file is written first, then best.json names it, and only then the best file of before goes.
Result<void> Checkpointer::keep_best(Context& context, const ValidatedState& validated) {
  if (!std::isfinite(validated.distance)) return {};
  // Distances of different figures do not compare.
  const bool comparable = best_ && best_->figure == validated.figure;
  if (comparable && validated.distance >= best_->distance) return {};
  const std::uint64_t step = validated.state->step(training_.schedule.size());
  ASSIGN_OR_RETURN(const auto names, disk_.list(options_.folder));
  if (is_new(validated.state) || !is_in_folder(names, validated.state)) {
    RETURN_IF_ERROR(write(context, validated.state));
  }
  const pipeline::BestCheckpoint best{step, validated.figure, validated.distance};
  const std::string text = pipeline::best_json(best);
  RETURN_IF_ERROR(disk_.replace(options_.folder + "/" + pipeline::BestCheckpoint::kFile,
                                std::as_bytes(std::span{text})));
  best_ = best;
  link(context, pipeline::kBestLink, step);
  remove_old(context);
  return {};
}

void Checkpointer::link(Context& context, const char* name, std::uint64_t step) {
  const std::string path = options_.folder + "/" + name;
  const auto linked = disk_.link(path, pipeline::checkpoint_name(step));
  if (linked.ok()) return;
  (void)disk_.remove(path);  // it would point to an older checkpoint
  if (std::exchange(told_of_links_, true)) return;
  context.log().warning(linked.error().message + "; the names of checkpoints and best.json tell");
}

// A file that cannot be removed costs disk space and does not end the run.
void Checkpointer::remove_old(Context& context) {
  const auto names = disk_.list(options_.folder);
  if (!names.ok()) {
    context.log().warning(names.error().message);
    return;
  }
  const auto best = best_ ? std::optional(best_->step) : std::nullopt;
  for (const std::string& name :
       pipeline::to_remove(*names, options_.keep, written_step_.value(), best)) {
    if (const auto removed = disk_.remove(options_.folder + "/" + name); !removed.ok()) {
      context.log().warning(removed.error().message);
    }
  }
}

}  // namespace troupe::actors

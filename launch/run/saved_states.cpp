#include "launch/run/saved_states.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "launch/folder/metrics_file.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/leaving/warm_start.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Result<void> check_identity(const pipeline::Checkpoint& checkpoint, const std::string& path,
                            const TrainingSetup& setup) {
  const auto refuse = [&](const char* what, const std::string& stored, const std::string& now) {
    return Error{ErrorKind::kData, fmt::format("{} was written with another {}: {} there, {} now; "
                                               "resume with the one it was written with",
                                               path, what, stored, now)};
  };
  if (checkpoint.topology_hash != setup.topology_hash) {
    return refuse("model, data, schedule, seed or batch (topology hash)",
                  checkpoint.topology_hash.text(), setup.topology_hash.text());
  }
  const std::string numerics_class = setup.backend->numerics_class();
  if (checkpoint.state.numerics_class != numerics_class) {
    return refuse("numerics class", checkpoint.state.numerics_class, numerics_class);
  }
  if (checkpoint.state.data_fingerprint != setup.identity.fingerprint) {
    return refuse("dataset (fingerprint)", checkpoint.state.data_fingerprint.text(),
                  setup.identity.fingerprint.text());
  }
  return {};
}

// Kept for whoever wants to look into it, or has a newer troupe that can.
void set_aside(const std::string& path, runtime::Disk& disk, runtime::Log& log) {
  const std::string aside = path + ".unreadable";
  const auto file = disk.read(path);
  auto done = file.ok() ? disk.replace(aside, file->bytes()) : Result<void>(file.error());
  if (done.ok()) done = disk.remove(path);
  if (done.ok()) {
    log.info(fmt::format("{} is now {}", path, aside));
  } else {
    log.warning(fmt::format("{} stays where it is: {}", path, done.error().message));
  }
}

Result<pipeline::TrainingState> initial_state(TrainingSetup& setup, runtime::Disk& disk,
                                              runtime::Log& log) {
  auto state = pipeline::initial_state(*setup.gan, setup.options, setup.backend->numerics_class(),
                                       setup.identity.fingerprint);
  if (const auto& from = setup.topology.train.from) {
    auto origin = pipeline::take_weights(*from, setup.gan->description(), disk, state);
    if (!origin.ok()) {
      return Error{origin.error().kind, "train.from: " + origin.error().message};
    }
    setup.origin = std::move(*origin);
    log.info("training begins with " + setup.origin);
  }
  return state;
}

MetricsFile metrics_of(const RunFolder& folder, runtime::Disk& disk) {
  return {folder.file(MetricsFile::kName), disk};
}

Result<pipeline::TrainingState> begin_again(TrainingSetup& setup, const RunFolder& folder,
                                            runtime::Disk& disk, runtime::Log& log) {
  ASSIGN_OR_RETURN(const std::string told, metrics_of(folder, disk).told_checkpoint());
  if (!told.empty()) {
    return Error{ErrorKind::kData,
                 fmt::format("{} holds no checkpoint, but metrics.jsonl tells of one: {}; put the "
                             "checkpoints back, or start anew with another --out",
                             folder.checkpoints(), told)};
  }
  log.info(fmt::format("{} holds no checkpoint yet: resuming from the initial state",
                       folder.checkpoints()));
  return initial_state(setup, disk, log);
}

// Walks from the newest checkpoint to older ones. Those that cannot be read are set aside only when
// an older one is good: else they are all that there is to mend.
Result<pipeline::TrainingState> read_newest_state(TrainingSetup& setup, const RunFolder& folder,
                                                  runtime::Disk& disk, runtime::Log& log) {
  ASSIGN_OR_RETURN(const auto files, disk.list(folder.checkpoints()));
  const auto names = pipeline::checkpoints_newest_first(files);
  if (names.empty()) return begin_again(setup, folder, disk, log);
  std::string reasons;
  std::vector<std::string> unreadable;
  for (const std::string& name : names) {
    const std::string path = folder.checkpoints() + "/" + name;
    auto file = disk.read(path);
    auto checkpoint = file.ok()
                          ? pipeline::decode_checkpoint(*file, path, *setup.gan, setup.options)
                          : Result<pipeline::Checkpoint>(file.error());
    if (!checkpoint.ok()) {
      log.warning(checkpoint.error().message + "; trying the next older checkpoint");
      reasons += "\n  " + checkpoint.error().message;
      unreadable.push_back(path);
      continue;
    }
    RETURN_IF_ERROR(check_identity(*checkpoint, path, setup));
    for (const std::string& newer : unreadable) set_aside(newer, disk, log);
    log.info(fmt::format("resuming from {} (epoch {}, iteration {}, slot {})", path,
                         checkpoint->state.epoch, checkpoint->state.iteration,
                         checkpoint->state.slot));
    setup.origin = std::move(checkpoint->origin);
    return std::move(checkpoint->state);
  }
  return Error{ErrorKind::kData, fmt::format("{} holds no checkpoint to resume from:{}",
                                             folder.checkpoints(), reasons)};
}

// The best checkpoint up to `step`, as the run left it; none when there was no validation by then
// or the file is gone.
std::optional<pipeline::BestCheckpoint> read_best(const RunFolder& folder, runtime::Disk& disk,
                                                  std::uint64_t step, runtime::Log& log) {
  const auto names = disk.list(folder.checkpoints());
  const auto has = [&](const std::string& name) {
    return names.ok() && std::find(names->begin(), names->end(), name) != names->end();
  };
  if (!has(pipeline::BestCheckpoint::kFile)) return {};
  const std::string path = folder.checkpoints() + "/" + pipeline::BestCheckpoint::kFile;
  const auto file = disk.read(path);
  const auto best =
      file.ok() ? pipeline::parse_best({reinterpret_cast<const char*>(file->data()), file->size()})
                : std::nullopt;
  if (best && best->step <= step && has(pipeline::checkpoint_name(best->step))) return best;
  log.warning(path + " names no checkpoint to go on from; the next validation is the best so far");
  return {};
}

// Writes a checkpoint of the state into the folder of a run.
Result<void> write_state(const TrainingSetup& setup, const pipeline::TrainingState& state,
                         const RunFolder& folder, runtime::Disk& disk) {
  pipeline::Checkpoint checkpoint;
  checkpoint.state = state;
  checkpoint.topology = setup.topology_text;
  checkpoint.topology_hash = setup.topology_hash;
  checkpoint.model = setup.topology.model_name();
  checkpoint.origin = setup.origin;
  ASSIGN_OR_RETURN(const runtime::Buffer file,
                   pipeline::encode_checkpoint(checkpoint, *setup.gan, setup.options));
  const std::string name = pipeline::checkpoint_name(state.step(setup.options.schedule.size()));
  return disk.replace(folder.checkpoints() + "/" + name, file.bytes());
}

// Makes a run's folder with a checkpoint of the state and the topology, from which `troupe run
// --resume` goes on. The topology comes last: with it the folder is a run's. An empty one does not
// stay.
Result<void> write_orphan(const TrainingSetup& setup, const pipeline::TrainingState& state,
                          const std::string& folder, runtime::Disk& disk) {
  ASSIGN_OR_RETURN(const RunFolder run, RunFolder::create(folder, disk));
  auto written = write_state(setup, state, run, disk);
  if (written.ok()) written = run.write_topology(setup.topology_text, disk);
  if (!written.ok()) run.discard();
  return written;
}

}  // namespace

Result<StartingPoint> first_point(TrainingSetup& setup, runtime::Disk& disk, runtime::Log& log) {
  ASSIGN_OR_RETURN(auto state, initial_state(setup, disk, log));
  StartingPoint point;
  point.state = std::make_shared<const pipeline::TrainingState>(std::move(state));
  return point;
}

Result<StartingPoint> newest_point(TrainingSetup& setup, const RunFolder& folder, bool returns,
                                   runtime::Disk& disk, runtime::Log& log) {
  ASSIGN_OR_RETURN(auto state, read_newest_state(setup, folder, disk, log));
  const std::uint64_t step = state.step(setup.options.schedule.size());
  StartingPoint point;
  if (returns) {
    ASSIGN_OR_RETURN(point.told_step, metrics_of(folder, disk).mend());
  } else {
    ASSIGN_OR_RETURN(const MetricsFile::Cut cut, metrics_of(folder, disk).cut(step));
    if (!cut.problem.empty()) log.warning(cut.problem);
    if (cut.validated) point.validated_step = step;
  }
  if (step > 0) point.saved_step = step;
  point.best = read_best(folder, disk, step, log);
  point.state = std::make_shared<const pipeline::TrainingState>(std::move(state));
  return point;
}

// A checkpoint does not name its workers: with weak scaling its micro-batches are theirs, `each` of
// every worker. A number that is no multiple comes from another topology, which check_identity()
// refuses. Files that cannot be read are passed over, as read_newest_state() does.
Result<void> check_weak_scaling(const RunFolder& folder, runtime::Disk& disk,
                                const config::LoadedTopology& asked, std::uint32_t members) {
  const config::TrainSection& train = asked.topology.train;
  if (train.scaling != config::Scaling::kWeak) return {};
  const std::uint32_t each = train.options.micro_batches;
  const std::uint32_t now = std::max(members, 1U);
  ASSIGN_OR_RETURN(const auto files, disk.list(folder.checkpoints()));
  for (const std::string& name : pipeline::checkpoints_newest_first(files)) {
    const std::string path = folder.checkpoints() + "/" + name;
    const auto file = disk.read(path);
    if (!file.ok()) continue;
    const auto found = pipeline::inspect_checkpoint(*file, path);
    if (!found.ok()) continue;
    const std::uint32_t before = found->state.micro_batches / each;
    if (found->state.micro_batches % each != 0 || before == now) return {};
    const std::string what = fmt::format(
        "weak was begun with {} worker{} and cannot go on with {}; resume with "
        "--workers {}",
        before, before == 1 ? "" : "s", now, before);
    return Error{ErrorKind::kTopology,
                 config::problem_of(asked.origins, "train.scaling", what).text()};
  }
  return {};
}

Result<void> keep_last_state(const TrainingSetup& setup, const pipeline::TrainingState& state,
                             const RunFolder& folder, RunDisk& disk) {
  RETURN_IF_ERROR(disk.hold(true));
  const std::size_t slots = setup.options.schedule.size();
  const std::string file =
      fmt::format("{}/{}", folder.checkpoints(), pipeline::checkpoint_name(state.step(slots)));
  std::error_code unknown;
  // A file of which the disk cannot tell counts as there.
  if (std::filesystem::exists(file, unknown) || unknown) return {};
  return write_state(setup, state, folder, disk);
}

std::string save_elsewhere(const TrainingSetup& setup, const actors::StatePointer& state,
                           const RunFolder& folder, bool hangs, runtime::Disk& disk,
                           runtime::Log& log) {
  const std::string newest =
      fmt::format("--resume {} goes on from the newest checkpoint", folder.path());
  if (state == nullptr) {
    log.warning("what was trained after the newest checkpoint was not saved; " + newest);
    return folder.path();
  }
  const std::string what =
      fmt::format("the state after {} steps", state->step(setup.options.schedule.size()));
  const std::string name = new_run_folder(setup.topology.name + "-saved");
  // The folder of temporary files is everybody's.
  const std::string last_resort =
      fmt::format("{}/troupe-{}-{}", std::filesystem::temp_directory_path().string(), ::getuid(),
                  std::filesystem::path(name).filename().string());
  std::vector<std::string> places{name, last_resort};
  if (hangs) places.clear();
  std::string why = "the disk does not answer";
  for (const std::string& place : places) {
    const auto written = write_orphan(setup, *state, place, disk);
    if (written.ok()) {
      log.warning(fmt::format("{} is saved in {}: go on with --resume {}", what, place, place));
      return place;
    }
    why = written.error().message;
  }
  log.warning(fmt::format("{} was not saved ({}); {}", what, why, newest));
  return folder.path();
}

std::string save_orphan(const std::string& node, const TrainingSetup& setup,
                        const pipeline::TrainingState& state, runtime::Disk& disk) {
  const std::string folder = new_run_folder(node);
  const std::string what =
      fmt::format("its state after {} steps", state.step(setup.options.schedule.size()));
  const auto written = write_orphan(setup, state, folder, disk);
  if (!written.ok()) return fmt::format("{} was not saved: {}", what, written.error().message);
  return fmt::format(
      "{} is saved, and one member's is enough to go on with: troupe run --resume {}", what,
      folder);
}

}  // namespace troupe::launch

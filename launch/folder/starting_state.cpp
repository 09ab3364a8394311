#include "launch/folder/starting_state.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pipeline/checkpoint/checkpoint.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Result<void> check_identity(const pipeline::Checkpoint& checkpoint, const std::string& path,
                            const RunIdentity& identity) {
  const auto refuse = [&](const char* what, const std::string& stored, const std::string& now) {
    return Error{ErrorKind::kData, fmt::format("{} was written with another {}: {} there, {} now; "
                                               "resume with the one it was written with",
                                               path, what, stored, now)};
  };
  if (checkpoint.topology_hash != identity.topology_hash) {
    return refuse("model, data, schedule, seed or batch (topology hash)",
                  checkpoint.topology_hash.text(), identity.topology_hash.text());
  }
  if (checkpoint.state.numerics_class != identity.numerics_class) {
    return refuse("numerics class", checkpoint.state.numerics_class, identity.numerics_class);
  }
  if (checkpoint.state.data_fingerprint != identity.data_fingerprint) {
    return refuse("dataset (fingerprint)", checkpoint.state.data_fingerprint.text(),
                  identity.data_fingerprint.text());
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

// The last line of metrics.jsonl that tells of a checkpoint; empty when none was ever written.
Result<std::string> told_checkpoint(const RunFolder& folder, runtime::Disk& disk) {
  ASSIGN_OR_RETURN(const auto names, disk.list(folder.path()));
  if (!std::binary_search(names.begin(), names.end(), "metrics.jsonl")) return std::string();
  ASSIGN_OR_RETURN(const runtime::Buffer file, disk.read(folder.file("metrics.jsonl")));
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t at = text.rfind(R"({"kind":"checkpoint")");
  if (at == std::string_view::npos) return std::string();
  return std::string(text.substr(at, text.find('\n', at) - at));
}

Result<pipeline::TrainingState> begin_again(const RunFolder& folder, runtime::Disk& disk,
                                            const model::Gan& gan,
                                            const pipeline::TrainingOptions& options,
                                            const RunIdentity& identity, runtime::Log& log) {
  ASSIGN_OR_RETURN(const std::string told, told_checkpoint(folder, disk));
  if (!told.empty()) {
    return Error{ErrorKind::kData,
                 fmt::format("{} holds no checkpoint, but metrics.jsonl tells of one: {}; put the "
                             "checkpoints back, or start anew with another --out",
                             folder.checkpoints(), told)};
  }
  log.info(fmt::format("{} holds no checkpoint yet: resuming from the initial state",
                       folder.checkpoints()));
  return pipeline::initial_state(gan, options, identity.numerics_class, identity.data_fingerprint);
}

}  // namespace

Result<pipeline::TrainingState> read_newest_state(const RunFolder& folder, runtime::Disk& disk,
                                                  const model::Gan& gan,
                                                  const pipeline::TrainingOptions& options,
                                                  const RunIdentity& identity, runtime::Log& log) {
  ASSIGN_OR_RETURN(const auto files, disk.list(folder.checkpoints()));
  const auto names = pipeline::checkpoints_newest_first(files);
  if (names.empty()) return begin_again(folder, disk, gan, options, identity, log);
  std::string reasons;
  std::vector<std::string> unreadable;
  for (const std::string& name : names) {
    const std::string path = folder.checkpoints() + "/" + name;
    auto file = disk.read(path);
    auto checkpoint = file.ok() ? pipeline::decode_checkpoint(*file, path, gan, options)
                                : Result<pipeline::Checkpoint>(file.error());
    if (!checkpoint.ok()) {
      log.warning(checkpoint.error().message + "; trying the next older checkpoint");
      reasons += "\n  " + checkpoint.error().message;
      unreadable.push_back(path);
      continue;
    }
    RETURN_IF_ERROR(check_identity(*checkpoint, path, identity));
    for (const std::string& newer : unreadable) set_aside(newer, disk, log);
    log.info(fmt::format("resuming from {} (epoch {}, iteration {}, slot {})", path,
                         checkpoint->state.epoch, checkpoint->state.iteration,
                         checkpoint->state.slot));
    return std::move(checkpoint->state);
  }
  return Error{ErrorKind::kData, fmt::format("{} holds no checkpoint to resume from:{}",
                                             folder.checkpoints(), reasons)};
}

Result<void> check_weak_scaling(const RunFolder& folder, runtime::Disk& disk,
                                const config::Topology& asked, std::uint32_t members,
                                const config::Origins& origins) {
  if (asked.train.scaling != config::Scaling::kWeak) return {};
  const std::uint32_t each = asked.train.options.micro_batches;
  const std::uint32_t now = std::max(members, 1U);
  ASSIGN_OR_RETURN(const auto files, disk.list(folder.checkpoints()));
  for (const std::string& name : pipeline::checkpoints_newest_first(files)) {
    const std::string path = folder.checkpoints() + "/" + name;
    const auto file = disk.read(path);
    if (!file.ok()) continue;
    const auto found = pipeline::inspect_checkpoint(*file, path);
    if (!found.ok()) continue;
    const std::uint32_t before = found->micro_batches / each;
    if (found->micro_batches % each != 0 || before == now) return {};
    const auto place = origins.find("train.scaling");
    const config::Problem problem{
        place == origins.end() ? config::Place{} : place->second,
        fmt::format("train.scaling: weak was begun with {} worker{} and cannot go on with {}; "
                    "resume with --workers {}",
                    before, before == 1 ? "" : "s", now, before)};
    return Error{ErrorKind::kTopology, problem.text()};
  }
  return {};
}

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

}  // namespace troupe::launch

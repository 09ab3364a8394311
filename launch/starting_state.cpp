#include "launch/starting_state.h"

#include <fmt/format.h>

#include "pipeline/checkpoint.h"

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

}  // namespace

Result<pipeline::TrainingState> read_newest_state(const RunFolder& folder, runtime::Disk& disk,
                                                  const model::Gan& gan,
                                                  const pipeline::TrainingOptions& options,
                                                  const RunIdentity& identity, runtime::Log& log) {
  ASSIGN_OR_RETURN(const auto names, disk.list(folder.checkpoints()));
  std::string reasons;
  for (const std::string& name : pipeline::checkpoints_newest_first(names)) {
    const std::string path = folder.checkpoints() + "/" + name;
    auto file = disk.read(path);
    auto checkpoint = file.ok() ? pipeline::decode_checkpoint(*file, path, gan, options)
                                : Result<pipeline::Checkpoint>(file.error());
    if (!checkpoint.ok()) {
      log.warning(checkpoint.error().message + "; trying the next older checkpoint");
      reasons += "\n  " + checkpoint.error().message;
      continue;
    }
    RETURN_IF_ERROR(check_identity(*checkpoint, path, identity));
    log.info(fmt::format("resuming from {} (epoch {}, iteration {}, slot {})", path,
                         checkpoint->state.epoch, checkpoint->state.iteration,
                         checkpoint->state.slot));
    return std::move(checkpoint->state);
  }
  return Error{ErrorKind::kData,
               fmt::format("{} holds no checkpoint to resume from{}", folder.checkpoints(),
                           reasons.empty() ? std::string("; start anew with another --out")
                                           : ":" + reasons)};
}

}  // namespace troupe::launch

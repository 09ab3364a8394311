#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "pipeline/checkpoint.h"
#include "pipeline/checkpoint_seal.h"

namespace troupe::pipeline {
namespace {

using runtime::Result;

// The step in a checkpoint's name; nothing for other names.
std::optional<std::uint64_t> step_of(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return {};
  std::uint64_t step = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  if (checkpoint_name(step) != name) return {};
  return step;
}

bool is_whole(runtime::Disk& disk, const std::string& path) {
  const auto file = disk.read(path);
  return file.ok() && verify_checkpoint_seal(*file, path, kCheckpointVersion).ok();
}

// `error` with the newest whole checkpoint that is older than `path`.
runtime::Error offer_older(runtime::Error error, runtime::Disk& disk, const std::string& path) {
  const std::filesystem::path file(path);
  const auto step = step_of(file.filename().string());
  const auto names = disk.list(file.has_parent_path() ? file.parent_path().string() : ".");
  if (!step || !names.ok()) return error;
  for (const std::string& name : checkpoints_newest_first(*names)) {
    const std::string older = (file.parent_path() / name).string();
    if (*step_of(name) >= *step || !is_whole(disk, older)) continue;
    error.message += "; the next older checkpoint is " + older;
    break;
  }
  return error;
}

}  // namespace

std::string checkpoint_name(std::uint64_t step) { return fmt::format("step-{:012}.h5", step); }

std::vector<std::string> checkpoints_newest_first(const std::vector<std::string>& names) {
  std::vector<std::string> checkpoints;
  for (const std::string& name : names) {
    if (step_of(name)) checkpoints.push_back(name);
  }
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const auto& a, const auto& b) { return *step_of(a) > *step_of(b); });
  return checkpoints;
}

std::vector<std::string> to_remove(const std::vector<std::string>& names, std::uint32_t keep,
                                   const std::optional<std::string>& best) {
  std::vector<std::string> removed = checkpoints_newest_first(names);
  removed.erase(removed.begin(),
                removed.begin() + std::min<std::ptrdiff_t>(keep, std::ssize(removed)));
  if (best) std::erase(removed, *best);
  return removed;
}

Result<void> write_checkpoint(runtime::Disk& disk, const std::string& path,
                              const Checkpoint& checkpoint, const StateLayout& layout,
                              const TrainingOptions& options) {
  ASSIGN_OR_RETURN(const runtime::Buffer file, encode_checkpoint(checkpoint, layout, options));
  return disk.replace(path, file.bytes());
}

Result<Checkpoint> read_checkpoint(runtime::Disk& disk, const std::string& path,
                                   const StateLayout& layout, const TrainingOptions& options) {
  const auto file = disk.read(path);
  if (!file.ok()) return offer_older(file.error(), disk, path);
  const auto version = verify_checkpoint_seal(*file, path, kCheckpointVersion);
  if (!version.ok()) return offer_older(version.error(), disk, path);
  return decode_checkpoint(*file, path, layout, options);
}

}  // namespace troupe::pipeline

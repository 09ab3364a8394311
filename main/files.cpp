#include "main/files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <system_error>

#include <fmt/format.h>

#include "pipeline/checkpoint/checkpoint_folder.h"
#include "runtime/base/utf8.h"

namespace troupe {
namespace {

// The best one's name; empty: none is known, or it is gone.
std::string best_of(const std::string& folder, const std::vector<std::string>& names,
                    runtime::Disk& disk) {
  const auto text = disk.read(folder + "/" + pipeline::BestCheckpoint::kFile);
  if (!text.ok()) return "";
  const auto best =
      pipeline::parse_best({reinterpret_cast<const char*>(text->data()), text->size()});
  const std::string name = best ? pipeline::checkpoint_name(best->step) : "";
  return std::find(names.begin(), names.end(), name) == names.end() ? "" : name;
}

}  // namespace

runtime::Error no_checkpoint_in(const std::string& folder) {
  return {runtime::ErrorKind::kData,
          fmt::format("{} has no checkpoint yet; the topology's actors.checkpointer says when one "
                      "is written",
                      folder)};
}

runtime::Result<std::string> checkpoint_at(const std::string& path, runtime::Disk& disk,
                                           WhichCheckpoint which) {
  const bool latest = which == WhichCheckpoint::kLatest;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    if (!latest || !std::filesystem::exists(path, ignored)) return path;
    return runtime::Error{runtime::ErrorKind::kUsage,
                          path + " is one checkpoint; --latest is for the folder of a run"};
  }
  const bool of_run = std::filesystem::is_directory(path + "/checkpoints", ignored);
  const std::string folder = of_run ? path + "/checkpoints" : path;
  ASSIGN_OR_RETURN(const auto names, disk.list(folder));
  const auto newest = pipeline::checkpoints_newest_first(names);
  if (newest.empty()) return no_checkpoint_in(folder);
  const std::string best = latest ? "" : best_of(folder, names, disk);
  const std::string chosen = folder + "/" + (best.empty() ? newest.front() : best);
  const std::string told = folder + "/" + pipeline::BestCheckpoint::kFile;
  const bool misses = !latest && best.empty() && std::filesystem::exists(told, ignored);
  std::cerr << fmt::format(
      "troupe: taking the {} checkpoint, {}{}\n", best.empty() ? "newest" : "best",
      runtime::printable(chosen),
      misses ? fmt::format(", as {} names none that is there", runtime::printable(told)) : "");
  return chosen;
}

runtime::Result<void> check_output_file(const std::string& path, bool replaced,
                                        const std::vector<std::string>& read) {
  const auto refuse = [&](const std::string& cause) {
    return runtime::Error{runtime::ErrorKind::kData,
                          fmt::format("cannot write {}: {}", path, cause)};
  };
  const std::filesystem::path file(path);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  // The "." behind it makes the system refuse what is no folder.
  if (::access((folder / ".").c_str(), W_OK | X_OK) != 0) {
    return refuse(std::generic_category().message(errno));
  }
  std::error_code ignored;
  if (!file.has_filename() || std::filesystem::is_directory(file, ignored)) {
    return refuse("it is a folder; name a file");
  }
  if (!std::filesystem::exists(file, ignored)) return {};
  // Devices and pipes would be replaced by a file.
  if (!std::filesystem::is_regular_file(file, ignored)) {
    return refuse("it is there and is no file; name another");
  }
  const auto is_read = [&](const std::string& input) {
    return std::filesystem::equivalent(path, input, ignored);
  };
  if (std::ranges::any_of(read, is_read)) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          path + " is read itself and would be lost; name another file"};
  }
  if (replaced) return {};
  return runtime::Error{
      runtime::ErrorKind::kUsage,
      fmt::format("{} is there already; name another file, or replace it with --force", path)};
}

}  // namespace troupe

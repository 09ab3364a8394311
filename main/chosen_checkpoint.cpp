#include "main/chosen_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string_view>

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

runtime::Result<std::string> checkpoint_at(const std::string& path, runtime::Disk& disk) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  const bool of_run = std::filesystem::is_directory(path + "/checkpoints", ignored);
  const std::string folder = of_run ? path + "/checkpoints" : path;
  ASSIGN_OR_RETURN(const auto names, disk.list(folder));
  const auto newest = pipeline::checkpoints_newest_first(names);
  if (newest.empty()) {
    return runtime::Error{runtime::ErrorKind::kData, folder + " has no checkpoint yet"};
  }
  const std::string best = best_of(folder, names, disk);
  const std::string chosen = folder + "/" + (best.empty() ? newest.front() : best);
  std::cerr << fmt::format("troupe: taking the {} checkpoint, {}\n",
                           best.empty() ? "newest" : "best", runtime::printable(chosen));
  return chosen;
}

}  // namespace troupe

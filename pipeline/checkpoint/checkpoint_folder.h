#pragma once

// The files of a run's checkpoints folder: one per kept step, named by the step, best.json, which
// names the best of them, and links to the newest and the best where the file system has links.
// Pure functions; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::pipeline {

// File name of a step's checkpoint: "step-000000000123.h5", so that names sort by step.
std::string checkpoint_name(std::uint64_t step);

// Names of the links.
inline constexpr const char* kLatestLink = "latest";
inline constexpr const char* kBestLink = "best";

// Names in a folder's listing that are checkpoints, newest first. Others, such as the temporary
// file of a write that was cut off, are left out.
std::vector<std::string> checkpoints_newest_first(const std::vector<std::string>& names);

// The names to delete so that, among steps up to `newest`, which was written last, the newest
// `keep` (from 1) and `best` (if any) remain. Names of later steps, which could not be read, and
// names that are no checkpoints are never deleted.
std::vector<std::string> to_remove(const std::vector<std::string>& names, std::uint32_t keep,
                                   std::uint64_t newest, std::optional<std::uint64_t> best);

// The checkpoint whose figure (model/physics/figures.h) was nearest to its ideal so far.
struct BestCheckpoint {
  static constexpr const char* kFile = "best.json";
  std::uint64_t step = 0;
  std::string figure = "merit";  // letters, digits, '_' and '.'
  double distance = 0.0;         // finite
  bool operator==(const BestCheckpoint&) const = default;
};

// {"step":88,"figure":"merit","distance":0.412,"file":"step-000000000088.h5"} and a newline.
std::string best_json(const BestCheckpoint& best);
// Reads what best_json wrote; nothing for any other text.
std::optional<BestCheckpoint> parse_best(std::string_view text);

}  // namespace troupe::pipeline

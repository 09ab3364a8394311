#pragma once

// Files that a verb is asked to read or to write.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe {

// Which checkpoint of a folder is meant.
enum class WhichCheckpoint : std::uint8_t { kBest, kLatest };

// kData.
runtime::Error no_checkpoint_in(const std::string& folder);

// The checkpoint that a person means by a path: the path itself, unless it is the folder of a run
// or of checkpoints; then that of the best checkpoint (of the newest where no best is known), or of
// the newest with kLatest, which is said on standard error. kData: the folder has no checkpoint, or
// cannot be listed. kUsage: kLatest of a path that is no folder.
runtime::Result<std::string> checkpoint_at(const std::string& path, runtime::Disk& disk,
                                           WhichCheckpoint which = WhichCheckpoint::kBest);

// Looks before the work whose result the file will hold: kData when its folder is missing or may
// not be written, or when the name is that of a folder, a device or anything else but a file.
// kUsage when there is a file, and it may not be `replaced`, or is one of those that are `read`.
runtime::Result<void> check_output_file(const std::string& path, bool replaced,
                                        const std::vector<std::string>& read = {});

}  // namespace troupe

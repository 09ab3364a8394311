#pragma once

// The checkpoint a person means by a path.

#include <string>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe {

// The path itself, unless it is the folder of a run or of checkpoints: then that of the best
// checkpoint, or of the newest where no best is known, which is said on standard error. kData: the
// folder has no checkpoint, or cannot be listed.
runtime::Result<std::string> checkpoint_at(const std::string& path, runtime::Disk& disk);

}  // namespace troupe

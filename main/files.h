#pragma once

// Files that a verb is asked to read or to write.

#include <string>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe {

// The checkpoint that a person means by a path: the path itself, unless it is the folder of a run
// or of checkpoints; then that of the best checkpoint, or of the newest where no best is known,
// which is said on standard error. kData: the folder has no checkpoint, or cannot be listed.
runtime::Result<std::string> checkpoint_at(const std::string& path, runtime::Disk& disk);

// Looks before the work whose result the file will hold: kData when its folder is missing or may
// not be written, or when the name is that of a folder, a device or anything else but a file.
// kUsage when there is a file, and it may not be `replaced`.
runtime::Result<void> check_output_file(const std::string& path, bool replaced);

}  // namespace troupe

#pragma once

// Files a verb is asked to write.

#include <string>

#include "runtime/base/error.h"

namespace troupe {

// Looks before the work whose result the file will hold: kData when its folder is missing or may
// not be written, or when the name is that of a folder, a device or anything else but a file.
// kUsage when there is a file, and it may not be `replaced`.
runtime::Result<void> check_output_file(const std::string& path, bool replaced);

}  // namespace troupe

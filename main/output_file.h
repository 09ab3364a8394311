#pragma once

// Files a verb is asked to write.

#include <string>

#include "runtime/base/error.h"

namespace troupe {

// Looks before the work whose result the file will hold: kData when its folder is missing or may
// not be written, or when the name is a folder's.
runtime::Result<void> check_output_file(const std::string& path);

}  // namespace troupe

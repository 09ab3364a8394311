#pragma once

// The file in which a token stands: of a page, or to join a run with.

#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::telemetry {

// The one word in the file, without the white space around it. It has 1 to 256 printing ASCII
// characters, so that an Authorization field can carry it. kUsage: there is no such file or word.
// The message begins with `what`, such as "--token", which named the file.
runtime::Result<std::string> read_token_file(const std::string& path, std::string_view what);

}  // namespace troupe::telemetry

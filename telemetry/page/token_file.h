#pragma once

// The file in which a page's token stands.

#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::telemetry {

// The one word in the file, of 1 to 256 printing ASCII characters, as an Authorization field can
// carry it, without the white space around it. kUsage: there is no such file or word; `what`, such
// as "--token", says in the message who named the file.
runtime::Result<std::string> read_token_file(const std::string& path, std::string_view what);

}  // namespace troupe::telemetry

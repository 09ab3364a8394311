#pragma once

// Addresses such as s3://bucket/file that are given where a file or folder of this machine is
// meant.

#include <string>
#include <string_view>

namespace troupe::runtime {

// Whether the text begins as an address does: a scheme and "://".
bool is_remote(std::string_view path);
// What is said of one.
std::string remote_refused(std::string_view path);

}  // namespace troupe::runtime

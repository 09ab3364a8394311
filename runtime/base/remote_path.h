#pragma once

// Addresses such as s3://bucket/file in places where a file or folder of this machine is meant.

#include <string>
#include <string_view>

namespace troupe::runtime {

// True if the text begins as an address does: a scheme and "://".
bool is_remote(std::string_view path);
// The path in "file:///PATH", which is no remote one; "" for anything else.
std::string_view path_of_file(std::string_view address);
// The error text for an address of either kind.
std::string remote_refused(std::string_view path);

}  // namespace troupe::runtime

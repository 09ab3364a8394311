#pragma once

#include <string>

namespace troupe::runtime {

// The name of this machine; "" if it has none. Any thread.
std::string host_name();

}  // namespace troupe::runtime

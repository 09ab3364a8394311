#pragma once

// Whether a name or number of a host is this machine.

#include <string>

namespace troupe::launch {

// True for what leads to an address of one of this machine's interfaces, loopback among them, and
// for the name it calls itself, whether or not that resolves. Asks the system's resolver, which may
// take seconds.
bool is_this_host(const std::string& host);

}  // namespace troupe::launch

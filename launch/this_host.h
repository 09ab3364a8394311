#pragma once

// This machine as others see it: which names and numbers are its own.

#include <string>
#include <vector>

namespace troupe::launch {

// True for what leads to an address of one of this machine's interfaces, loopback among them, and
// for the name it calls itself, whether or not that resolves. Asks the system's resolver, which may
// take seconds.
bool is_this_host(const std::string& host);

// Addresses at which other machines may reach this one, as numbers (IPv6 without brackets), IPv4
// first: those of interfaces that are up, without loopback and without those that are valid on one
// cable only.
std::vector<std::string> interface_addresses();

}  // namespace troupe::launch

#pragma once

// This machine as others see it: which names and numbers are its own, and how busy it is.

#include <istream>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {

// Where a host without a port leads. Asks the system's resolver. Errors: as of runtime::resolve.
runtime::Result<runtime::ResolvedAddress> resolve_host(const std::string& host);

// True for a name or number that leads to an address of one of this machine's interfaces, loopback
// among them, and for the machine's own name, whether or not that resolves. Asks the system's
// resolver, which may take seconds.
bool is_this_host(const std::string& host);

// Addresses at which other machines may reach this one, as numbers (IPv6 without brackets), IPv4
// first: those of interfaces that are up, without loopback and without those that are valid on one
// cable only.
std::vector<std::string> interface_addresses();

// The address of this machine from which it reaches that one, both as numbers (IPv6 with or without
// brackets, without in the answer). Nothing is sent. Errors (kLostPeers): there is no way.
runtime::Result<std::string> address_towards(const std::string& number);

// Equal for two processes that run under the same kernel in the same network namespace; see
// runtime::Introduction. "" where the system does not tell.
std::string machine_identity();

// Threads that run or want to, per processor; 0 where the system does not tell. Counts those of all
// users, as a processor is shared with them.
double host_load();
// Those threads, by the text of /proc/loadavg; 0: the text is another.
double runnable_threads(std::istream& load_averages);

}  // namespace troupe::launch

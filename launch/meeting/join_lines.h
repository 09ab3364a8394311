#pragma once

// What people type on other hosts so that these join a run.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "config/topology.h"

namespace troupe::launch {

// Where processes of other hosts dial a head that was told to listen at `listen` and does at
// `bound` (Wire::address), the best guess first; never empty. Whoever listens on every address of
// the machine is dialed by the name that cluster.hosts has for it, else at each address of its
// interfaces, `interfaces`. Asks the system's resolver.
std::vector<std::string> addresses_to_dial(const std::string& listen, const std::string& bound,
                                           const std::vector<config::HostSection>& hosts,
                                           const std::vector<std::string>& interfaces);

// A line for each of `members`, without those of `here`, with the host it is meant for and the
// command that starts it there; below them one for each further address, and one on data. Ends
// without a line break; "" when nobody is awaited from elsewhere. `public_key`: of the head, "" for
// one without keys.
std::string join_lines(const config::ClusterSection& cluster, std::uint32_t members,
                       const std::set<std::string>& here, const std::vector<std::string>& addresses,
                       const std::string& public_key);

// For a run that awaits nobody, and takes in others while it goes on: the command that joins it,
// and below it the further addresses. `this_machine`: from elsewhere they are not reached. Ends
// without a line break.
std::string newcomer_lines(const std::vector<std::string>& addresses, const std::string& public_key,
                           bool this_machine);

}  // namespace troupe::launch

#pragma once

// The commands that people type on other hosts so that these join a run.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "config/topology.h"
#include "runtime/base/log.h"
#include "runtime/transport/wire.h"

namespace troupe::launch {

// Where processes of other hosts dial a head that was told to listen at `listen` and does at
// `bound` (Wire::address), the best guess first; never empty. A head that listens on every address
// of the machine is dialed by the name that cluster.hosts has for it, else at each address of its
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

// Says in the log which members other hosts are to start, with the line to type there; or, of a run
// with keys that awaits nobody, the line with which others join. The head listens at `listen`, and
// `wire` is its own. May ask the system's resolver.
void tell_members(const config::ClusterSection& cluster, std::uint32_t members,
                  const std::vector<std::string>& members_here, const std::string& listen,
                  const runtime::Wire& wire, const runtime::Log& log);

}  // namespace troupe::launch

#pragma once

// Where the members of a run are carried out, and where those of other hosts meet it: settled
// before anything is started.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/topology_file.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// Addresses as ZmqWireOptions::listen takes them.
struct MeetingPlace {
  std::string listen;  // where the head waits
  std::string dial;    // where members of its own host find it
  // Where these listen for members of other hosts; "": nowhere in particular.
  std::string neighbours{};
};

struct Placement {
  // The run's members; 0: everything is in one process.
  std::uint32_t members = 0;
  // Those of this machine, by number.
  std::vector<std::uint32_t> here;
  // None when all are here, who meet in the file system then: cluster.listen is any port of the
  // loopback, or one of which `unheeded` tells.
  std::optional<MeetingPlace> network;
  // Why there is none although it is needed: the name of cluster.listen leads nowhere on this
  // machine, which need not be the one that is to run it. kTopology, at its place in the file.
  std::optional<runtime::Error> unresolved;
  // Why nobody can join from elsewhere although cluster.listen is meant for it, for people:
  // --workers tries on this machine what is made for others. At its place in the file.
  std::optional<std::string> unheeded{};

  // The processes of this machine that compute, as check_memory() takes them.
  std::vector<std::uint32_t> computing_here() const {
    return members == 0 ? std::vector<std::uint32_t>{0} : here;
  }
};

// `workers` is --workers: with it, all members are here. Asks the system's resolver, which may take
// seconds. kTopology, at its place in the file: members are to run on other hosts, and these cannot
// reach cluster.listen.
runtime::Result<Placement> place_run(const config::LoadedTopology& loaded,
                                     std::optional<std::uint32_t> workers);

}  // namespace troupe::launch

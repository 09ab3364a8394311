#pragma once

// `troupe run` over several processes, as seen from the process people started: it starts the head
// and the members of this host, and ends when they have ended.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/place.h"
#include "config/topology.h"
#include "launch/group_rules.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

struct SuperviseRequest {
  std::string program;                  // this binary
  std::vector<std::string> head_words;  // verb and arguments that make it the head
  std::string nodes_path;               // nodes.json of the run
  std::uint32_t members = 1;            // of the run
  // None: all members run here.
  std::optional<config::ClusterSection> cluster;
  config::Place listen_place;  // where cluster.listen stands
  std::optional<std::string> key_folder;
};

// Members of hosts that are this machine, by number: the first host has member 0 and so on.
std::vector<std::uint32_t> members_here(const config::ClusterSection& cluster);

// Gives the head `--head-at ADDRESS` and `--member-here NAME` for each besides its words, each
// member a `join` of its own; their standard error is passed on line by line behind their names.
// Must be called before other threads are started. kTopology: a cluster.listen that other hosts
// cannot reach.
runtime::Result<GroupEnd> supervise(const SuperviseRequest& request, runtime::Log& log);

}  // namespace troupe::launch

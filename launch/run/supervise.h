#pragma once

// The process of `troupe run` that people started, of a run over several processes: it starts the
// head and the members of this host, and ends when they have ended.

#include <string>
#include <vector>

#include "config/topology_file.h"
#include "launch/meeting/placement.h"
#include "launch/processes/group_rules.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

struct SuperviseRequest {
  config::LoadedTopology loaded;  // every head reads it, effective, from its standard input
  Placement placement;            // with one member at least
  std::string run_folder;
  std::vector<std::string> head_words;  // verb and arguments that make this program the head
  // And those that make it take the place of one that was lost.
  std::vector<std::string> next_head_words;
  std::vector<std::string> member_words{};  // further ones of each member
  bool trace = false;                       // each member leaves one in the run's folder
};

// Gives the head `--head-at ADDRESS` and `--member-here NAME` for each besides its words, each
// member a `join` of its own; their standard error is passed on line by line behind their names.
// Must be called before other threads are started. kInternal: a process cannot be started. kUsage:
// the keys cannot be read, or there is no folder for the sockets of a run on this host alone.
runtime::Result<GroupEnd> supervise(const SuperviseRequest& request, runtime::Log& log);

}  // namespace troupe::launch

#pragma once

// Whether a run can begin: what `troupe run` refuses before it makes anything, and what `troupe
// check` says of a topology.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/topology_file.h"
#include "launch/meeting/placement.h"
#include "launch/run/memory_bounds.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

struct Judgement {
  Placement placement;
  RunBounds bounds;
  std::string device;               // device_text() of what would compute here
  std::optional<std::string> idle;  // members that would only wait: a warning
  // Why this machine cannot carry the run out as it is now, though another one, or this one later,
  // may: too little memory, an address that is not its own or is in use. A run ends with the first.
  std::vector<runtime::Error> here;
  // About things that a run goes on without, as it would say so; complete after judge_by_opening().
  std::vector<std::string> warnings;
};

// By the topology, its keys and this machine, before any data or address is opened; quick but for
// the system's resolver. `workers` is --workers. An Error holds everything that any machine would
// refuse, each in lines of its own with its place; its kind is that of the first. `placement`: of a
// run that is placed already.
runtime::Result<Judgement> judge_run(const config::LoadedTopology& loaded,
                                     std::optional<std::uint32_t> workers,
                                     std::optional<Placement> placement = {});

// Opens the places where members meet and where the run is watched and, `with_data`, the data, by
// the functions with which a run opens them. Nothing stays behind. Adds to the judgement. Says in
// the log what it finds in the data, and how far it is. Errors (kData): the data.
runtime::Result<void> judge_by_opening(const config::LoadedTopology& loaded, bool with_data,
                                       runtime::Log& log, Judgement& judgement);

}  // namespace troupe::launch

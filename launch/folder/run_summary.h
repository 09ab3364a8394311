#pragma once

// summary.json, which a run leaves for machines.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "actors/coordinator.h"
#include "launch/folder/membership_file.h"
#include "runtime/base/error.h"
#include "runtime/node/peer.h"

namespace troupe::launch {

// One JSON object: state_hash, iterations, epochs, steps, events_per_second, peak_memory_bytes (of
// the process), ledger {events, sum}, bytes_on_wire, failures_survived (members that were lost or
// left while the others went on, and heads), views (those after the first, as telemetry::ViewFacts
// has them), bill (as telemetry::BillFacts; null without pools), nodes_left (names of those of
// pools that are still there; null without pools), stopped, error (or null), exit_code, validation
// (or null). Anything that is not known, as of a run whose state nobody had at the end, is null.
// `history`: of the heads before this one. `peers`: the nodes this one talked to. `exit_code`: what
// the process ends with.
std::string summary_json(const actors::RunOutcome& outcome, const HeadHistory& history,
                         std::size_t slots, const std::vector<runtime::PeerStats>& peers,
                         const std::optional<std::vector<std::string>>& nodes_left,
                         const std::optional<runtime::Error>& error, int exit_code);

// The same members of a run that did not come so far: all but error and exit_code is null.
std::string summary_of_failure(const std::string& error, int exit_code);

}  // namespace troupe::launch

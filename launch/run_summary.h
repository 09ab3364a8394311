#pragma once

// What a run leaves for machines: summary.json and nodes.json.

#include <cstddef>
#include <optional>
#include <string>

#include "actors/coordinator.h"
#include "launch/run_folder.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// One JSON object: state_hash, iterations, epochs, steps, events_per_second, peak_memory_bytes (of
// the process), ledger {events, sum}, bytes_on_wire, failures_survived, stopped, error (or null),
// validation (or null).
std::string summary_json(const actors::RunOutcome& outcome, std::size_t slots,
                         const std::optional<runtime::Error>& error);

// nodes.json: this process as the only node, in the given state ("running", "ended").
runtime::Result<void> write_nodes(const RunFolder& folder, runtime::Disk& disk,
                                  const std::string& state);

}  // namespace troupe::launch

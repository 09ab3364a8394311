#pragma once

// What every actor did lately, for whoever asks why a run failed or what it did meanwhile: a file
// per process, RUN/trace/local.json, or head.json and member.N.json, in the Trace Event format that
// Perfetto (ui.perfetto.dev) and chrome://tracing open. See telemetry/trace/trace_json.h for what
// is in it.

#include <string>
#include <vector>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/base/trace.h"

namespace troupe::launch {

// The trace of one node, on its own clock. Makes the file's folder too; the node is called as the
// file is, without ".json". Errors: kData, when it cannot be written.
runtime::Result<void> write_trace(const std::string& path, runtime::Disk& disk,
                                  const std::vector<runtime::ActorTrace>& traces);

}  // namespace troupe::launch

#pragma once

// What every actor did lately, for whoever asks why a run failed or what it did meanwhile: a file
// per process, RUN/trace/local.json, or head.json and member.N.json, in the Trace Event format that
// Perfetto (ui.perfetto.dev) and chrome://tracing open.

#include <string>
#include <vector>

#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "runtime/node.h"

namespace troupe::launch {

// One JSON object: a row per actor, a span per handler with its name ("batch", "timer") and, as
// "argument", the bytes of the message it took; an actor may add spans of its own, with arguments
// of its choice. Spans that overlap others without lying inside them stand on further rows of their
// actor, "NAME (2)". Times are microseconds on the node's clock.
std::string trace_json(const std::vector<runtime::ActorTrace>& traces);

// Makes the file's folder too. Errors: kData, when it cannot be written.
runtime::Result<void> write_trace(const std::string& path, runtime::Disk& disk,
                                  const std::vector<runtime::ActorTrace>& traces);

}  // namespace troupe::launch

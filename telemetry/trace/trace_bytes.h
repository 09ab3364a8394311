#pragma once

// Packs what the actors of a node did lately into some ten bytes per record, so that it goes over a
// link in one message. The head of a run makes one trace of those of all nodes.

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/trace.h"

namespace troupe::telemetry {

// Pure functions; any thread. Names keep their first 64 bytes.
std::vector<std::byte> pack_actors(std::vector<runtime::ActorTrace> actors);

// The bytes may be any. kData: they are no such trace to their end, or would take more memory than
// twelve times their number and 4 KiB, which no trace of actors that ran does. Every record's name
// is within names.
runtime::Result<std::vector<runtime::ActorTrace>> unpack_actors(std::span<const std::byte> bytes);

}  // namespace troupe::telemetry

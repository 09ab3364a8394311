#pragma once

// What the actors of a node did lately, in as few bytes as go over a link in one message: some ten
// per record. The head of a run makes one trace of those of all nodes.

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/trace.h"

namespace troupe::telemetry {

// Pure functions; any thread. Names keep their first 64 bytes.
std::vector<std::byte> pack_actors(const std::vector<runtime::ActorTrace>& actors);

// Of bytes that anyone may have sent: what is no such trace, to its end, is an error (kData), and
// so is what would take more memory than twelve times its bytes and 4 KiB, which no trace of actors
// that ran does. Every name is within names.
runtime::Result<std::vector<runtime::ActorTrace>> unpack_actors(std::span<const std::byte> bytes);

}  // namespace troupe::telemetry

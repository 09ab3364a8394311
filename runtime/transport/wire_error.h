#pragma once

// An Error in a packet's header: one list of its kind and its message.

#include "runtime/base/error.h"
#include "runtime/transport/wire_format.h"

namespace troupe::runtime {

// A message longer than anything people would read is cut to 16 KiB.
void write_error(WireWriter& out, const Error& error);
// Fails the reader at a kind that is none, and at a longer message.
Error read_error(WireReader& in);

}  // namespace troupe::runtime

#pragma once

// How many bytes of a sum a member on this machine gets through per second: each is received, added
// and sent on, which is work of its processor however fast the line is.

#include "runtime/base/error.h"

namespace troupe::launch {

// Sends payloads to itself over tcp for half a second, and adds them up as they come. Takes memory
// of 8 MiB. Errors: those of ZmqWire::open(), and kLostPeers where nothing comes within 5 s.
runtime::Result<double> measure_ring_pace();

}  // namespace troupe::launch

#pragma once

// What no all-reduce of a host can be faster than, or hardly.

#include "bench/allreduce_case.h"

namespace troupe::bench {

// One thread copies the buffer.
AllreduceRun run_memcpy(const AllreduceLoad& load);

// ZeroMQ's sockets over tcp, used directly, without adding anything: 2 (N - 1) / N of the bytes,
// which is what crosses an edge of a ring, in messages of 1 MiB or less. From one process to one
// other; and from every process to its neighbour, at the same time, as in a ring.
AllreduceRun run_zmq_pair(const AllreduceLoad& load);
AllreduceRun run_zmq_ring(const AllreduceLoad& load);

}  // namespace troupe::bench

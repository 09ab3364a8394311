#pragma once

// A producer and a consumer that is 100 times slower, in two processes joined over tcp.

#include <cstdint>
#include <string>

#include "runtime/base/error.h"

namespace troupe::bench {

struct SlowConsumerRun {
  std::int64_t messages = 0;
  double seconds = 0;
  // Most resident memory of each process after its first second, and by how much that is more than
  // what it had then.
  double producer_mb = 0, producer_growth_mb = 0;
  double consumer_mb = 0, consumer_growth_mb = 0;
};

// The consumer takes 10 ms for each message of 64 KiB. Errors: a message was lost, came twice, out
// of order or with other content, or a process failed. Call it while this process has one thread.
runtime::Result<SlowConsumerRun> run_slow_consumer(double seconds);

}  // namespace troupe::bench

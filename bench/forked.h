#pragma once

// Several processes that do one thing together, for benches of what lies between processes.

#include <functional>

#include "bench/allreduce_case.h"

namespace troupe::bench {

// Forks `processes` children, each of which does `work` with its rank and exits. The run of the
// slowest, or the first complaint; a child that ends otherwise, or takes over two minutes, is one.
// To be called while this process has one thread.
AllreduceRun run_forked(int processes, const std::function<AllreduceRun(int rank)>& work);

}  // namespace troupe::bench

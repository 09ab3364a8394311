#pragma once

// The process management interface by which MPICH's mpiexec speaks with the processes that it has
// started (PMI version 1: lines of KEY=VALUE over a descriptor).

#include <string>

#include "runtime/base/error.h"

namespace troupe::launch {

// A name that all processes of one mpiexec have in common, and no other has. Errors (kUsage): the
// other end does not speak so, or not within ten seconds.
runtime::Result<std::string> name_of_pmi_job(int descriptor);

}  // namespace troupe::launch

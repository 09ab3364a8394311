#pragma once

// Images taken apart into phases and joined again, in runs of cells that are neighbours in both.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

std::unique_ptr<Kernel> make_kernel(const SplitPhases& split);
std::unique_ptr<Kernel> make_kernel(const JoinPhases& join);

}  // namespace troupe::model::cpu

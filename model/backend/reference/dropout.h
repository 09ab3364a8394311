#pragma once

// Dropout whose mask is a function of the position in the run (runtime/base/random.h): drawn again
// in the backward pass instead of stored. A kept element is multiplied by 1 / (1 - rate).

#include "model/backend/kernel_call.h"
#include "model/operation.h"

namespace troupe::model::reference {

template <class T>
void run(const DropoutForward& dropout, const KernelCall& call);
template <class T>
void run(const DropoutBackward& dropout, const KernelCall& call);

// Elements first, first + 1, ... of a dropout over `elements`; first is a multiple of 4. `position`
// is that of the layer's own stream. from may be to.
template <class T>
void drop(const T* from, T* to, std::int64_t first, std::int64_t elements, double rate,
          const runtime::RandomPosition& position);

}  // namespace troupe::model::reference

#pragma once

// Adds gradients that meet where one layer's output is read by several.

#include "model/backend/kernel_call.h"
#include "model/operation.h"

namespace troupe::model::reference {

template <class T>
void run(const Accumulate& accumulate, const KernelCall& call);

}  // namespace troupe::model::reference

#pragma once

// x^p through runtime/base/math.h in double. Elements that are 0, most of a calorimeter image, cost
// a comparison; NaN stays NaN.

#include "model/backend/kernel_call.h"
#include "model/operation.h"

namespace troupe::model::reference {

template <class T>
void run(const PowerForward& power, const KernelCall& call);
template <class T>
void run(const PowerBackward& power, const KernelCall& call);

}  // namespace troupe::model::reference

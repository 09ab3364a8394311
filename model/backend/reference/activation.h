#pragma once

// Elementwise activations. NaN stays NaN in every one of them, so that divergence is seen. sigmoid
// and tanh go through runtime/base/math.h in double.

#include "model/backend/kernel_call.h"
#include "model/operation.h"

namespace troupe::model::reference {

template <class T>
void run(const ActivationForward& activation, const KernelCall& call);
template <class T>
void run(const ActivationBackward& activation, const KernelCall& call);

// y = activation(x); y may be x.
template <class T>
void activate(const Activation& activation, const T* x, T* y, std::int64_t elements);

}  // namespace troupe::model::reference

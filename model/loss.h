#pragma once

// The loss terms' arithmetic on one micro-batch: values in double whatever the data type.

#include <cstdint>
#include <span>

#include "model/gan.h"

namespace troupe::model {

// Mean over `outputs` of the loss against `targets` (same size), unweighted. When `gradient` is not
// null it receives weight x d(mean)/d(output) per element. See LossKind for the formulae; where the
// clip of the binary cross-entropy acts, and at t = p of the absolute errors, the gradient is 0.
template <class T>
double evaluate_loss(LossKind kind, double weight, std::span<const T> outputs,
                     std::span<const double> targets, T* gradient);

}  // namespace troupe::model

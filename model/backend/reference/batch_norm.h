#pragma once

// Batch normalisation over the rows of a (rows, channels) array. Sums over rows run in ascending
// order in double: first the mean, then the squares of the deviations from it.
// y = (x - mean) scale + beta with scale = inverse_deviation x gamma, in T.
// dx = scale (dy - dbeta / n - xhat dgamma / n), xhat = (x - mean) inverse_deviation.

#include <cstddef>

#include "model/backend/kernel_call.h"
#include "model/operation.h"

namespace troupe::model::reference {

template <class T>
void run(const BatchNormTraining& norm, const KernelCall& call);
template <class T>
void run(const BatchNormInference& norm, const KernelCall& call);
template <class T>
void run(const BatchNormBackward& norm, const KernelCall& call);

// Two sums per channel.
template <class T>
std::size_t scratch_bytes(const BatchNormTraining& norm);
template <class T>
std::size_t scratch_bytes(const BatchNormBackward& norm);

}  // namespace troupe::model::reference

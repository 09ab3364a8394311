#pragma once

// Matrix products of dense layers. Each element is accumulated in T: forward over the inputs in
// ascending order with the bias added last, dx over the units, dkernel and dbias over the batch.

#include "model/backend/kernel_call.h"
#include "model/operation.h"

namespace troupe::model::reference {

template <class T>
void run(const DenseForward& dense, const KernelCall& call);
template <class T>
void run(const DenseBackwardInput& dense, const KernelCall& call);
template <class T>
void run(const DenseBackwardParameters& dense, const KernelCall& call);

}  // namespace troupe::model::reference

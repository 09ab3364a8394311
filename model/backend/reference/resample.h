#pragma once

// Operations that move cells: zero padding, nearest-neighbour upsampling, average pooling. A window
// is summed in T over x, y, z, each ascending.

#include "model/backend/kernel_call.h"
#include "model/operation.h"

namespace troupe::model::reference {

template <class T>
void run(const PadForward& pad, const KernelCall& call);
template <class T>
void run(const PadBackward& pad, const KernelCall& call);
template <class T>
void run(const UpsampleForward& upsample, const KernelCall& call);
template <class T>
void run(const UpsampleBackward& upsample, const KernelCall& call);
template <class T>
void run(const AveragePoolForward& pool, const KernelCall& call);
template <class T>
void run(const AveragePoolBackward& pool, const KernelCall& call);

}  // namespace troupe::model::reference

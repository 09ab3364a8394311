#pragma once

// Kernels of plain loops, for the reference backend and for the operations that another backend on
// the host leaves to it.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::reference {

// Never null: every operation is supported. T is float or double.
template <class T>
std::unique_ptr<Kernel> make_kernel(const Operation& operation);

}  // namespace troupe::model::reference

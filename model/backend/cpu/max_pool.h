#pragma once

// Largest cells of windows, several channels at once through Highway (plane_vectors.h), with the
// reference's rules for equal cells and NaN.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

std::unique_ptr<Kernel> make_kernel(const MaxPoolForward& pool);
std::unique_ptr<Kernel> make_kernel(const MaxPoolBackward& pool);

}  // namespace troupe::model::cpu

#pragma once

// Attention, several queries at once through Highway (plane_vectors.h); the same values as the
// reference's bit by bit: each sum in double, in its order, and no step fused.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

std::unique_ptr<Kernel> make_kernel(const AttentionForward& attention);
std::unique_ptr<Kernel> make_kernel(const AttentionBackward& attention);

}  // namespace troupe::model::cpu

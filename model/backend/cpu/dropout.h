#pragma once

// Dropout with the numbers drawn one block of four per lane, through Highway (plane_vectors.h); the
// same mask and values as the reference bit by bit.

#include <cstdint>
#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

std::unique_ptr<Kernel> make_kernel(const DropoutForward& dropout);
std::unique_ptr<Kernel> make_kernel(const DropoutBackward& dropout);

// uniform(word) >= rate exactly when word >= the threshold, for 0 <= rate < 1: with uniform(w) =
// (w + 0.5) / 2^32 that is ceil(2^32 rate - 0.5), from 0 to 2^32.
std::uint64_t dropout_threshold(double rate);

}  // namespace troupe::model::cpu

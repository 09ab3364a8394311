#pragma once

// Powers, and activations with exponentials, several elements at once through Highway
// (plane_vectors.h), and the others as the reference has them; the same values as the reference's
// bit by bit.

#include <cstdint>
#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

std::unique_ptr<Kernel> make_kernel(const ActivationForward& activation);
std::unique_ptr<Kernel> make_kernel(const ActivationBackward& activation);
std::unique_ptr<Kernel> make_kernel(const PowerForward& power);
std::unique_ptr<Kernel> make_kernel(const PowerBackward& power);
std::unique_ptr<Kernel> make_kernel(const SoftmaxForward& softmax);

// Replaces each number by its exponential, as runtime/base/math.h has it. Needs hosts on which
// plane_vectors_supported().
void exponentials(double* values, std::int64_t count);

}  // namespace troupe::model::cpu

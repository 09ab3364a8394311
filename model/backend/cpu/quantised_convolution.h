#pragma once

// Convolutions in int8 (int8.h), over planes as upsampled_convolution.h has them; an image that is
// not upsampled counts as upsampled once.

#include <memory>
#include <vector>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// Whether there is an int8 kernel for it: several channels to several, and so few products in a sum
// that int32 holds it. Hosts as those of plane_vectors_supported().
bool can_be_quantised(const ConvolutionForward& convolution);

// `ranges`: of each channel of the input relative to the others, above 0.
std::unique_ptr<Kernel> make_quantised_kernel(const ConvolutionForward& convolution,
                                              std::vector<float> ranges);

}  // namespace troupe::model::cpu

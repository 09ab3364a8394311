#pragma once

// Convolutions in groups, with any stride and dilation, several channels at once through Highway
// (grouped_vectors.h); the same values as the reference's bit by bit, as long as weights are
// finite: a cell outside the image is a zero here, and nothing there.
//
// Groups have few channels. The image is therefore spread: for each channel of a filter's result,
// the channel of its own group that it sees. Lanes run over these whatever the groups are, and a
// stride or a dilation is another distance between cells.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

std::unique_ptr<Kernel> make_kernel(const GroupedConvolutionForward& convolution);
std::unique_ptr<Kernel> make_kernel(const GroupedConvolutionBackwardInput& convolution);
std::unique_ptr<Kernel> make_kernel(const GroupedConvolutionBackwardParameters& convolution);

}  // namespace troupe::model::cpu

#pragma once

// Our own convolutions (rows.h), for the shapes calorimeter networks are made of: up to eight
// output channels, where channel-blocked libraries waste half or more of each vector. Images stay
// in ndhwc; nothing is unfolded. Rows are padded in z by a copy when the geometry asks for it, x
// and y by leaving taps out.
//
// Order of accumulation of one element, in float with fused multiply-adds: y and dx as the
// reference (kx, ky, kz, channel), split over eight lanes when there is one output channel; dkernel
// over z of a row, then over rows.

#include <memory>

#include "model/backend/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// Whether the direct code takes a convolution with this geometry, and is the fastest we know: the
// table of choices, measured by bench/bench_kernels.cpp.
bool prefers_direct(const ConvolutionForward& convolution);
bool prefers_direct(const ConvolutionBackwardInput& convolution);
bool prefers_direct(const ConvolutionBackwardParameters& convolution);

// Only for geometries with up to eight output channels (input channels for the backward pass to the
// input), on hosts where rows_supported().
std::unique_ptr<Kernel> make_direct_kernel(const ConvolutionForward& convolution);
std::unique_ptr<Kernel> make_direct_kernel(const ConvolutionBackwardInput& convolution);
std::unique_ptr<Kernel> make_direct_kernel(const ConvolutionBackwardParameters& convolution);

}  // namespace troupe::model::cpu

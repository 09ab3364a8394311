#pragma once

// Our own convolutions (rows.h), for the shapes calorimeter networks are made of: up to eight
// output channels, where channel-blocked libraries waste half or more of each vector. Images stay
// in ndhwc; nothing is unfolded. Rows are padded in z by a copy when the geometry asks for it, x
// and y by leaving taps out.
//
// Order of accumulation of one element, in float with fused multiply-adds: y and dx as the
// reference (kx, ky, kz, channel), split over eight lanes when there is one output channel; dkernel
// over y and z of up to four rows, then over these in ascending order.

#include <memory>

#include "model/backend/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// The choice by shape, as bench/bench_kernels.cpp measured it (ratio to oneDNN in ndhwc, one thread
// of a Zen 4 core): up to 8 output channels 1.2 to 3 times as fast in all directions, one output
// channel of the wide first layer's backward pass 9 times; 16 channels and more are the library's.
// False on hosts where rows_supported() is.
bool prefers_direct(const ConvolutionForward& convolution);
bool prefers_direct(const ConvolutionBackwardInput& convolution);
bool prefers_direct(const ConvolutionBackwardParameters& convolution);

// For geometries with up to eight output channels (input channels for the backward pass to the
// input) and no padding in z wider than the kernel, on hosts where rows_supported().
std::unique_ptr<Kernel> make_direct_kernel(const ConvolutionForward& convolution);
std::unique_ptr<Kernel> make_direct_kernel(const ConvolutionBackwardInput& convolution);
std::unique_ptr<Kernel> make_direct_kernel(const ConvolutionBackwardParameters& convolution);

}  // namespace troupe::model::cpu

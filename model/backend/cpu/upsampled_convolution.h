#pragma once

// Convolution of an upsampled image, without the upsampled image. With a factor of u the first tap
// of an output lies at one of u places within a cell of the coarse image: its phase. For the
// outputs of one phase several taps meet the same cell, and the kernel collapses to the sums of
// these taps, one for each of the few cells it reaches: along an axis with k taps floor((phase + k
// - 1) / u) + 1. So the convolution is u^3 small ones of the coarse image, whose outputs
// interleave:
//   y[u c + phase + before] = sum over cells j of x[c + j] collapsed[phase][j].
// gan3d_51's first convolution has 40 times fewer products that way. Nothing is approximated; sums
// have another order. Each is computed over planes, as plane_convolution.h does without tiles. The
// collapse is linear in the kernel, so its gradient is the transposed map of the collapsed
// gradients.
//
// Order of accumulation, in float with fused multiply-adds: outputs over (jx, jy, jz, channel); dx
// over (phase along x, jx, phase along y and z, jy, jz, channel); collapsed gradients over lanes of
// positions of all x planes of a phase, samples one after the other. Kernels are collapsed, and
// gradients expanded, in double. With bf16 as plane_convolution.h says.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

bool upsamples(const ConvolutionGeometry& geometry);

// For every geometry, on hosts where plane_vectors_supported().
std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionForward& convolution,
                                              Precision precision);
std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionBackwardInput& convolution,
                                              Precision precision);
std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionBackwardParameters& convolution,
                                              Precision precision);

}  // namespace troupe::model::cpu

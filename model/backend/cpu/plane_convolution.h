#pragma once

// Our own convolutions. An image is rearranged, one x plane at a time, into planes in which
// channels are apart and rows of z follow each other, so that lanes run over space whatever the
// number of channels: a tap of the kernel is then the same plane read from another place, and a
// convolution
//   sums[output][q] = sum over taps, channels of plane[channel][q + place of the tap] weight,
// whose sums stay in registers over all taps (plane_vectors.h). Small images have fewer positions
// than vectors have lanes: several samples then stand side by side in a plane (side_by_side()), and
// sums of the kernel's derivatives have lanes over outputs (channel_dots.h). No sum has another
// order for that.
//
// With 3 to 7 taps along z, or a multiple of these, if that is less work, planes hold tiles of 9 -
// taps outputs evaluated at eight points (winograd.h) instead of cells: up to 2.7 times fewer
// products. Positions q are then tiles, and there are eight planes for each channel. The taps are
// divided into the parts that make the fewest products.
//
// Order of accumulation, in float with fused multiply-adds: outputs over (kx, ky, kz without tiles,
// part of the taps, channel), a single output over channels for each (kx, ky, kz) and then over
// these; taps outside the image in x left out, in y and z multiplied by zero; those that phases
// lack left out (phase_channels.h); then the bias; then the activation. Derivatives of the kernel:
// over lanes of positions for every eight x planes (the last group of a sample may have fewer), one
// group after the other.
//
// With bf16 (bfloat16.h) both factors of a product are rounded: images and kernels, derivatives and
// kernels, or images and derivatives. Tiles are rounded at their points; results are then off by
// 1.0 to 1.5 hundredths, and by a quarter of one without tiles. An empty cell in a tile with other
// cells has their error, while in float it is zero. Sums over channels take channels in pairs, and
// sums over positions take positions in pairs. A sum over one channel has no pairs and stays float.
// Everything before and after the products is float as always.

#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// The choice by shape between these kernels and oneDNN's, as bench/bench_kernels.cpp measured it
// (docs/performance.md). Ours are chosen with tiles of one part that fill the lanes, for images of
// one channel and for derivatives of fewer than eight; the library's for the rest, which is wide or
// small.
bool prefers_planes(const ConvolutionForward& convolution);
bool prefers_planes(const ConvolutionBackwardInput& convolution);
bool prefers_planes(const ConvolutionBackwardParameters& convolution);

// For every geometry, on hosts where plane_vectors_supported().
std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionForward& convolution,
                                          Precision precision);
std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionBackwardInput& convolution,
                                          Precision precision);
std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionBackwardParameters& convolution,
                                          Precision precision);

}  // namespace troupe::model::cpu

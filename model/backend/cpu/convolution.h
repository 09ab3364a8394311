#pragma once

// The choice between our own convolutions (plane_convolution.h, upsampled_convolution.h), oneDNN's
// and the reference's loops.

#include <concepts>
#include <memory>

#include <dnnl.hpp>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// An operation of these three.
template <class Op>
concept AnyConvolution = requires(const Op& operation) {
  { operation.geometry } -> std::convertible_to<ConvolutionGeometry>;
};

// Ours where it is faster, the library's for the rest, and the reference's for geometries that the
// library refuses. Never null. May throw dnnl::error for reasons other than sizes.
template <AnyConvolution Convolution>
std::unique_ptr<Kernel> make_kernel(const Convolution& convolution, const dnnl::engine& engine);

// Ours, whatever the shape, on hosts where plane_vectors_supported(): the same bits on all of them.
template <AnyConvolution Convolution>
std::unique_ptr<Kernel> make_portable_kernel(const Convolution& convolution, Precision precision);

// oneDNN's, whatever the shape; throws dnnl::error when the library has none.
std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionForward& convolution,
                                           const dnnl::engine& engine);
std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionBackwardInput& convolution,
                                           const dnnl::engine& engine);
std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionBackwardParameters& convolution,
                                           const dnnl::engine& engine);

}  // namespace troupe::model::cpu

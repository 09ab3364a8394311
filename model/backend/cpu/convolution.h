#pragma once

// Convolutions: our own code where it is faster (plane_convolution.h, upsampled_convolution.h),
// oneDNN for the rest, the reference's loops for geometries that the library refuses; or our own
// code for all of them. With oneDNN images are in ndhwc: x, y and their derivatives stay in place,
// the small kernels are copied into the layout the chosen primitive likes.

#include <memory>

#include <dnnl.hpp>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// Never null. May throw dnnl::error for reasons other than sizes.
std::unique_ptr<Kernel> make_kernel(const ConvolutionForward& convolution,
                                    const dnnl::engine& engine);
std::unique_ptr<Kernel> make_kernel(const ConvolutionBackwardInput& convolution,
                                    const dnnl::engine& engine);
std::unique_ptr<Kernel> make_kernel(const ConvolutionBackwardParameters& convolution,
                                    const dnnl::engine& engine);

// Ours, whatever the shape, on hosts where plane_vectors_supported(): the same bits on all of them.
std::unique_ptr<Kernel> make_portable_kernel(const ConvolutionForward& convolution,
                                             Precision precision);
std::unique_ptr<Kernel> make_portable_kernel(const ConvolutionBackwardInput& convolution,
                                             Precision precision);
std::unique_ptr<Kernel> make_portable_kernel(const ConvolutionBackwardParameters& convolution,
                                             Precision precision);

// oneDNN's, whatever the shape; throws dnnl::error when the library has none.
std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionForward& convolution,
                                           const dnnl::engine& engine);
std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionBackwardInput& convolution,
                                           const dnnl::engine& engine);
std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionBackwardParameters& convolution,
                                           const dnnl::engine& engine);

}  // namespace troupe::model::cpu

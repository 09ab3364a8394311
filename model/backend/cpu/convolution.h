#pragma once

// Convolutions: our own direct code for the shapes it is made for (direct_convolution.h), oneDNN
// for wide layers, the reference's loops for geometries the library refuses. With oneDNN images are
// in ndhwc: x, y and their derivatives stay in place, the small kernels are copied into the layout
// the chosen primitive likes.

#include <memory>

#include <dnnl.hpp>

#include "model/backend/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// Never null. May throw dnnl::error for reasons other than sizes.
std::unique_ptr<Kernel> make_kernel(const ConvolutionForward& convolution,
                                    const dnnl::engine& engine);
std::unique_ptr<Kernel> make_kernel(const ConvolutionBackwardInput& convolution,
                                    const dnnl::engine& engine);
std::unique_ptr<Kernel> make_kernel(const ConvolutionBackwardParameters& convolution,
                                    const dnnl::engine& engine);

// oneDNN's, whatever the shape; throws dnnl::error when the library has none.
std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionForward& convolution,
                                           const dnnl::engine& engine);
std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionBackwardInput& convolution,
                                           const dnnl::engine& engine);
std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionBackwardParameters& convolution,
                                           const dnnl::engine& engine);

}  // namespace troupe::model::cpu

#pragma once

// How a convolution with stride or dilation, not both, is computed by kernels that know neither: as
// one over phases (Phases in operation.h). With stride s, the phases of the image and of the kernel
// are channels, and cell m of the output sums phase cells m, m + 1, ... With dilation d, the phases
// of the image are images of their own, and so are those of the output. Nothing is approximated:
// zeros take the place of taps that a kernel does not have.

#include <optional>

#include "model/graph.h"
#include "model/operation.h"

namespace troupe::model {

// A plain convolution has no phases: its geometry is that of the image.
struct ConvolutionPlan {
  ConvolutionGeometry geometry;     // that kernels compute
  std::optional<Phases> of_image;   // split before, joined behind its derivative
  std::optional<Phases> of_kernel;  // likewise
  std::optional<Phases> of_output;  // joined behind, split before its derivative
};

// With the padding and upsampling that the computation has absorbed.
ConvolutionPlan plan_convolution(const Computation& computation, std::int64_t batch);
GroupedGeometry grouped_geometry(const Computation& computation, std::int64_t batch);
// Those of the convolution from a transposed one's output to its input, without bias.
ConvolutionPlan plan_transposed(const Computation& computation, std::int64_t batch);
GroupedGeometry grouped_transposed(const Computation& computation, std::int64_t batch);

// Elements of the image that such phases are of, and of the phases.
std::int64_t image_elements(const Phases& phases);
std::int64_t phase_elements(const Phases& phases);

}  // namespace troupe::model

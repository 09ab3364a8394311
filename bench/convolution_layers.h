#pragma once

// The convolutions of gan3d_12, gan3d_25 and gan3d_51: D those of the discriminator, G of the
// generator.

#include <cstdint>
#include <vector>

#include "model/operation.h"

namespace troupe::bench {

inline constexpr double kSlope = 0.3;

struct Layer {
  const char* name;
  model::Extent in, kernel, before, after;
  std::int64_t in_channels, out_channels;
  model::ActivationKind activation;
  model::Extent upsample{1, 1, 1};
};

// For all three, one after the other.
const std::vector<Layer>& convolution_layers();

std::int64_t cells(const model::Extent& extent);

// Images are cut to few cells per axis in the small run; what is chosen depends on channels alone.
model::ConvolutionGeometry geometry_of(const Layer& layer, std::int64_t batch, bool small);

// The convolution of the upsampled image.
model::ConvolutionGeometry of_fine_image(model::ConvolutionGeometry geometry);

}  // namespace troupe::bench

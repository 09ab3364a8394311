#include "bench/convolution_layers.h"

#include <algorithm>

namespace troupe::bench {

using namespace troupe::model;

const std::vector<Layer>& convolution_layers() {
  constexpr ActivationKind kLeaky = ActivationKind::kLeakyRelu;
  constexpr ActivationKind kRelu = ActivationKind::kRelu;
  static const std::vector<Layer> kLayers = {
      {"12 D1", {12, 12, 12}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 1, 8, kLeaky},
      {"12 D2", {12, 12, 12}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 8, 8, kLeaky},
      {"12 D3", {6, 6, 6}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 8, 16, kLeaky},
      {"12 D4", {6, 6, 6}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 16, 8, kLeaky},
      {"12 G1", {12, 12, 12}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 4, 8, kLeaky},
      {"12 G2", {12, 12, 12}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 8, 6, kLeaky},
      {"12 G3", {12, 12, 12}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 6, 1, kRelu},
      {"25 D1", {25, 25, 25}, {5, 5, 5}, {2, 2, 2}, {2, 2, 2}, 1, 32, kLeaky},
      {"25 D2", {25, 25, 25}, {5, 5, 5}, {2, 2, 2}, {2, 2, 2}, 32, 8, kLeaky},
      {"25 D3", {25, 25, 25}, {5, 5, 5}, {2, 2, 2}, {2, 2, 2}, 8, 8, kLeaky},
      {"25 D4", {25, 25, 25}, {5, 5, 5}, {1, 1, 1}, {1, 1, 1}, 8, 8, kLeaky},
      {"25 G1", {7, 7, 8}, {6, 6, 8}, {2, 2, 3}, {3, 3, 4}, 8, 64, kLeaky},
      {"25 G2", {7, 7, 8}, {6, 5, 8}, {2, 2, 0}, {2, 2, 0}, 64, 6, kLeaky, {2, 2, 2}},
      {"25 G3", {13, 14, 9}, {3, 3, 8}, {1, 0, 3}, {1, 0, 3}, 6, 6, kLeaky, {2, 2, 3}},
      {"25 G4", {26, 26, 26}, {2, 2, 2}, {0, 0, 0}, {0, 0, 0}, 6, 1, kRelu},
      {"51 D1", {51, 51, 25}, {5, 6, 6}, {2, 2, 2}, {2, 3, 3}, 1, 16, kLeaky},
      {"51 D2", {51, 51, 25}, {5, 6, 6}, {0, 0, 1}, {0, 0, 1}, 16, 8, kLeaky},
      {"51 D3", {47, 46, 22}, {5, 6, 6}, {0, 0, 1}, {0, 0, 1}, 8, 8, kLeaky},
      {"51 D4", {43, 41, 19}, {5, 6, 6}, {0, 0, 0}, {0, 0, 0}, 8, 8, kLeaky},
      {"51 G1", {9, 9, 8}, {6, 6, 8}, {0, 0, 0}, {0, 0, 0}, 8, 8, kRelu, {6, 6, 6}},
      {"51 G2", {49, 49, 41}, {4, 4, 6}, {2, 2, 1}, {2, 2, 1}, 8, 6, kRelu},
      {"51 G3", {50, 50, 38}, {4, 4, 6}, {2, 2, 1}, {2, 2, 1}, 6, 6, kRelu},
      {"51 G4", {51, 51, 35}, {4, 4, 6}, {2, 2, 1}, {2, 2, 1}, 6, 6, kRelu},
      {"51 G5", {52, 52, 32}, {3, 3, 5}, {1, 1, 0}, {1, 1, 0}, 6, 6, kRelu},
      {"51 G6", {52, 52, 28}, {3, 3, 3}, {1, 1, 0}, {1, 1, 0}, 6, 6, kRelu},
      {"51 G7", {52, 52, 26}, {2, 2, 2}, {0, 0, 0}, {0, 0, 0}, 6, 1, kRelu},
  };
  return kLayers;
}

std::int64_t cells(const Extent& e) { return e[0] * e[1] * e[2]; }

ConvolutionGeometry geometry_of(const Layer& layer, std::int64_t batch, bool small) {
  ConvolutionGeometry g{.batch = batch,
                        .in = layer.in,
                        .out = {},
                        .kernel = layer.kernel,
                        .pad_before = layer.before,
                        .pad_after = layer.after,
                        .in_channels = layer.in_channels,
                        .out_channels = layer.out_channels,
                        .bias = true};
  g.upsample = layer.upsample;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t few = (11 + g.upsample[axis] - 1) / g.upsample[axis];
    if (small) g.in[axis] = std::min(g.in[axis], few);
    g.out[axis] =
        g.in[axis] * g.upsample[axis] + g.pad_before[axis] + g.pad_after[axis] - g.kernel[axis] + 1;
  }
  return g;
}

ConvolutionGeometry of_fine_image(ConvolutionGeometry g) {
  for (std::size_t axis = 0; axis < 3; ++axis) g.in[axis] *= g.upsample[axis];
  g.upsample = {1, 1, 1};
  return g;
}

}  // namespace troupe::bench

#pragma once

// The rules behind infer_shapes for one layer: its permitted options, and the output shape for an
// input shape. Pure. Messages do not name the layer; the caller does.

#include <string>
#include <vector>

#include "model/network.h"

namespace troupe::model {

// Guards against numbers that overflow or cannot be meant: elements of one layer's output for one
// sample, and weights of one tensor (what a random position can count).
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
inline constexpr std::int64_t kMostWeights = (std::int64_t{1} << 32) - 1;

// The faults of a shape as such: extents, channels, number of axes. Empty: none.
std::string shape_problem(const Shape& shape);

// The faults of a layer's own numbers, whatever it reads; for instance "rate is 1.2, it must be in
// [0, 1)".
std::vector<std::string> option_problems(const LayerKind& kind);

struct LayerOutput {
  Shape shape;  // meaningful when problems is empty
  std::vector<std::string>
      problems;  // for instance "kernel 8 along z does not fit into 5 cells; ..."
};

// For a layer without option problems. `source` names what it reads in messages: "layer conv1".
LayerOutput layer_output(const LayerKind& kind, const Shape& input, const std::string& source);

// Zero cells before and after one axis of a convolution by itself.
struct AxisPadding {
  std::int64_t before = 0, after = 0;
};
AxisPadding convolution_padding(const Convolution& convolution, int axis);

}  // namespace troupe::model

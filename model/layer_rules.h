#pragma once

// The rules behind infer_shapes for one layer: its permitted options, and the output shape for an
// input shape. Pure. Messages do not name the layer; the caller does.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/network.h"

namespace troupe::model {

// Guards against numbers that overflow or cannot be meant: elements of one layer's output for one
// sample, and weights of one tensor (what a random position can count).
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
inline constexpr std::int64_t kMostWeights = (std::int64_t{1} << 32) - 1;

inline constexpr char kAxisNames[] = "xyz";

// The faults of a shape as such: extents, channels, number of axes. Empty: none.
std::string shape_problem(const Shape& shape);

// The faults of a layer's own numbers, whatever it reads; for instance "rate is 1.2, it must be in
// [0, 1)".
std::vector<std::string> option_problems(const LayerKind& kind);

struct LayerOutput {
  Shape shape;  // meaningful when problems is empty
  std::vector<std::string>
      problems;  // for instance "kernel 8 along z does not fit into 5 cells of 5x5x5x2; ..."
};

// The output of a layer that another one reads, by its name in messages: "layer conv1".
struct LayerSource {
  Shape shape;
  std::string name;
};
// "25x25x25 cells" of an image; "no cells" of features.
std::string cells_text(const Shape& image);

// "ONE 4x4x6 cells, but OTHER 4x4x4 cells: 6 and 4 along z": by what two shapes that must be equal
// differ. `one` and `other` end in a verb: "the generator makes". Cells and channels are told alone
// where nothing else differs.
std::string told_apart(std::string_view one, const Shape& of_one, std::string_view other,
                       const Shape& of_other);

// For a layer without option problems; `others` are those of other_inputs().
LayerOutput layer_output(const LayerKind& kind, const LayerSource& input,
                         std::span<const LayerSource> others);

// True if the product of the positive factors is at most `most`; computed without overflow.
bool product_within(std::initializer_list<std::int64_t> factors, std::int64_t most);

// The cells of one axis that a kernel spans.
std::int64_t window_cells(std::int64_t kernel, std::int64_t dilation);

// Cells from one window of a pool to the next.
template <class Pool>
Extent stride_of(const Pool& pool) {
  return pool.stride.value_or(pool.size);
}

// Whether no phases of image or kernel make it a plain convolution, as stride or dilation alone do:
// it is computed cell by cell then (GroupedGeometry in operation.h).
bool is_cell_by_cell(const Convolution& convolution);
bool is_cell_by_cell(const TransposedConvolution& convolution);

// One axis of a convolution by itself: zero cells before and after the image, and cells of the
// output.
struct AxisWindows {
  std::int64_t before = 0, after = 0, output = 0;
};
AxisWindows convolution_windows(const Convolution& convolution, int axis, std::int64_t cells);
// Those of a pool pad with nothing.
AxisWindows pool_windows(const AveragePool& pool, int axis, std::int64_t cells);
AxisWindows pool_windows(const MaxPool& pool, int axis, std::int64_t cells);
// The zero cells are those of the convolution from the output to the input, or `pads`.
AxisWindows transposed_windows(const TransposedConvolution& convolution, int axis,
                               std::int64_t cells);

}  // namespace troupe::model

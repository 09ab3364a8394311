#include <algorithm>
#include <optional>

#include "model/backend/reference/kernels.h"

namespace troupe::model::reference {
namespace {

// The numbers of a convolution in groups, in the terms of its loops.
struct Grouped {
  explicit Grouped(const GroupedGeometry& geometry) : g(geometry) {}

  std::int64_t group_in() const { return g.in_channels / g.groups; }
  std::int64_t group_out() const { return g.out_channels / g.groups; }
  // The first channel that a filter sees.
  std::int64_t first_seen(std::int64_t filter) const { return filter / group_out() * group_in(); }
  std::int64_t taps() const { return g.kernel[0] * g.kernel[1] * g.kernel[2]; }
  std::int64_t tap_size() const { return group_in() * g.out_channels; }
  Extent tap_at(std::int64_t tap) const {
    return {tap / (g.kernel[1] * g.kernel[2]), tap / g.kernel[2] % g.kernel[1], tap % g.kernel[2]};
  }
  // The cell of the input that a tap of the window of an output cell touches.
  std::optional<std::int64_t> input_cell(const Extent& out, const Extent& tap) const {
    std::int64_t cell = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t i =
          out[axis] * g.stride[axis] + tap[axis] * g.dilation[axis] - g.pad_before[axis];
      if (i < 0 || i >= g.in[axis]) return {};
      cell = cell * g.in[axis] + i;
    }
    return cell;
  }
  // The cell of the output whose window touches the input cell with this tap.
  std::optional<std::int64_t> output_cell(const Extent& in, const Extent& tap) const {
    std::int64_t cell = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t i = in[axis] + g.pad_before[axis] - tap[axis] * g.dilation[axis];
      const std::int64_t o = i / g.stride[axis];
      if (i < 0 || i % g.stride[axis] != 0 || o >= g.out[axis]) return {};
      cell = cell * g.out[axis] + o;
    }
    return cell;
  }

  const GroupedGeometry& g;
};

Extent cell_at(std::int64_t cell, const Extent& extent) {
  return {cell / (extent[1] * extent[2]), cell / extent[2] % extent[1], cell % extent[2]};
}

}  // namespace

template <class T>
void run(const GroupedConvolutionForward& convolution, const KernelCall& call) {
  const GroupedGeometry& g = convolution.geometry;
  const Grouped grouped(g);
  const auto* x = call.operand<const T>(0);
  const auto* kernel = call.operand<const T>(1);
  const auto* bias = call.operand<const T>(2);
  auto* y = call.operand<T>(3);
  for (std::int64_t n = 0; n < g.batch; ++n) {
    const T* image = x + n * cells(g.in) * g.in_channels;
    for (std::int64_t cell = 0; cell < cells(g.out); ++cell, y += g.out_channels) {
      std::fill_n(y, g.out_channels, T{0});
      for (std::int64_t tap = 0; tap < grouped.taps(); ++tap) {
        const auto in = grouped.input_cell(cell_at(cell, g.out), grouped.tap_at(tap));
        if (!in) continue;
        for (std::int64_t ci = 0; ci < grouped.group_in(); ++ci) {
          const T* weights = kernel + tap * grouped.tap_size() + ci * g.out_channels;
          for (std::int64_t co = 0; co < g.out_channels; ++co) {
            y[co] += image[*in * g.in_channels + grouped.first_seen(co) + ci] * weights[co];
          }
        }
      }
      for (std::int64_t co = 0; g.bias && co < g.out_channels; ++co) y[co] += bias[co];
    }
  }
}

template <class T>
void run(const GroupedConvolutionBackwardInput& convolution, const KernelCall& call) {
  const GroupedGeometry& g = convolution.geometry;
  const Grouped grouped(g);
  const auto* dy = call.operand<const T>(0);
  const auto* kernel = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  for (std::int64_t n = 0; n < g.batch; ++n) {
    const T* derivatives = dy + n * cells(g.out) * g.out_channels;
    for (std::int64_t cell = 0; cell < cells(g.in); ++cell, dx += g.in_channels) {
      std::fill_n(dx, g.in_channels, T{0});
      for (std::int64_t tap = 0; tap < grouped.taps(); ++tap) {
        const auto out = grouped.output_cell(cell_at(cell, g.in), grouped.tap_at(tap));
        if (!out) continue;
        for (std::int64_t co = 0; co < g.out_channels; ++co) {
          const T derivative = derivatives[*out * g.out_channels + co];
          const T* weights = kernel + tap * grouped.tap_size() + co;
          T* seen = dx + grouped.first_seen(co);
          for (std::int64_t ci = 0; ci < grouped.group_in(); ++ci) {
            seen[ci] += derivative * weights[ci * g.out_channels];
          }
        }
      }
    }
  }
}

template <class T>
void run(const GroupedConvolutionBackwardParameters& convolution, const KernelCall& call) {
  const GroupedGeometry& g = convolution.geometry;
  const Grouped grouped(g);
  const auto* x = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  auto* dkernel = call.operand<T>(2);
  auto* sums = reinterpret_cast<double*>(call.scratch);
  // Calls use(sample, cell of the output, its derivatives) for each.
  const auto for_each_output = [&](const auto& use) {
    const T* derivatives = dy;
    for (std::int64_t n = 0; n < g.batch; ++n) {
      for (std::int64_t cell = 0; cell < cells(g.out); ++cell, derivatives += g.out_channels) {
        use(n, cell, derivatives);
      }
    }
  };
  for (std::int64_t tap = 0; tap < grouped.taps(); ++tap) {
    std::fill_n(sums, grouped.tap_size(), 0.0);
    for_each_output([&](std::int64_t n, std::int64_t cell, const T* derivatives) {
      const auto in = grouped.input_cell(cell_at(cell, g.out), grouped.tap_at(tap));
      if (!in) return;
      const T* values = x + (n * cells(g.in) + *in) * g.in_channels;
      for (std::int64_t ci = 0; ci < grouped.group_in(); ++ci) {
        for (std::int64_t co = 0; co < g.out_channels; ++co) {
          sums[ci * g.out_channels + co] +=
              static_cast<double>(values[grouped.first_seen(co) + ci]) *
              static_cast<double>(derivatives[co]);
        }
      }
    });
    for (std::int64_t i = 0; i < grouped.tap_size(); ++i) *dkernel++ = static_cast<T>(sums[i]);
  }
}

TROUPE_INSTANTIATE_RUN(GroupedConvolutionForward);
TROUPE_INSTANTIATE_RUN(GroupedConvolutionBackwardInput);
TROUPE_INSTANTIATE_RUN(GroupedConvolutionBackwardParameters);

}  // namespace troupe::model::reference

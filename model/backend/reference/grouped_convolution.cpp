#include <algorithm>

#include "model/backend/reference/kernels.h"

namespace troupe::model::reference {
namespace {

// The numbers of a convolution in groups, in the terms of its loops.
struct Grouped {
  explicit Grouped(const GroupedGeometry& geometry) : g(geometry) {}

  std::int64_t group_in() const { return g.in_channels / g.groups; }
  std::int64_t group_out() const { return g.out_channels / g.groups; }
  std::int64_t tap_size() const { return group_in() * g.out_channels; }
  // Each channel by itself.
  bool depthwise() const { return group_in() == 1 && group_out() == 1; }

  // The cell of the input that a tap of the window of an output cell touches; -1: none.
  std::int64_t input_cell(std::size_t axis, std::int64_t out, std::int64_t tap) const {
    const std::int64_t in = out * g.stride[axis] + tap * g.dilation[axis] - g.pad_before[axis];
    return in < g.in[axis] ? std::max<std::int64_t>(in, -1) : -1;
  }
  // The cell of the output whose window touches the input cell with this tap; -1: none.
  std::int64_t output_cell(std::size_t axis, std::int64_t in, std::int64_t tap) const {
    const std::int64_t from = in + g.pad_before[axis] - tap * g.dilation[axis];
    const std::int64_t out = from / g.stride[axis];
    return from >= 0 && from % g.stride[axis] == 0 && out < g.out[axis] ? out : -1;
  }

  const GroupedGeometry& g;
};

std::int64_t row_of(const Extent& extent, std::int64_t n, std::int64_t x, std::int64_t y) {
  return ((n * extent[0] + x) * extent[1] + y) * extent[2];
}

// The rows along z of `cells`, each with the rows of the other image that taps let it meet. Calls
// begin(row) with a row's first cell, then use(row, other row, number of the first tap of three
// axes), in the order of taps, then end(row). partner(axis, cell, tap) is the other image's cell.
template <class Partner, class Begin, class Use, class End>
void over_rows(const GroupedGeometry& g, const Extent& cells, const Extent& others,
               const Partner& partner, const Begin& begin, const Use& use, const End& end) {
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t x = 0; x < cells[0]; ++x) {
      for (std::int64_t y = 0; y < cells[1]; ++y) {
        const std::int64_t row = row_of(cells, n, x, y);
        begin(row);
        for (std::int64_t kx = 0; kx < g.kernel[0]; ++kx) {
          for (std::int64_t ky = 0; ky < g.kernel[1]; ++ky) {
            const std::int64_t ox = partner(0, x, kx), oy = partner(1, y, ky);
            if (ox < 0 || oy < 0) continue;
            use(row, row_of(others, n, ox, oy), (kx * g.kernel[1] + ky) * g.kernel[2]);
          }
        }
        end(row);
      }
    }
  }
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
  const std::int64_t group_in = grouped.group_in(), group_out = grouped.group_out();
  const auto add_cell = [&](const T* __restrict seen, const T* __restrict weights,
                            T* __restrict to) {
    if (grouped.depthwise()) {
      for (std::int64_t c = 0; c < g.out_channels; ++c) to[c] += seen[c] * weights[c];
      return;
    }
    for (std::int64_t ci = 0; ci < group_in; ++ci, weights += g.out_channels) {
      for (std::int64_t group = 0; group < g.groups; ++group) {
        const T value = seen[group * group_in + ci];
        const std::int64_t first = group * group_out;
        for (std::int64_t co = first; co < first + group_out; ++co) to[co] += value * weights[co];
      }
    }
  };
  over_rows(
      g, g.out, g.in,
      [&](std::size_t axis, std::int64_t out, std::int64_t tap) {
        return grouped.input_cell(axis, out, tap);
      },
      [&](std::int64_t row) {
        std::fill_n(y + row * g.out_channels, g.out[2] * g.out_channels, T{0});
      },
      [&](std::int64_t row, std::int64_t in_row, std::int64_t first_tap) {
        for (std::int64_t kz = 0; kz < g.kernel[2]; ++kz) {
          for (std::int64_t z = 0; z < g.out[2]; ++z) {
            const std::int64_t in = grouped.input_cell(2, z, kz);
            if (in < 0) continue;
            add_cell(x + (in_row + in) * g.in_channels,
                     kernel + (first_tap + kz) * grouped.tap_size(),
                     y + (row + z) * g.out_channels);
          }
        }
      },
      [&](std::int64_t row) {
        T* to = y + row * g.out_channels;
        for (std::int64_t z = 0; g.bias && z < g.out[2]; ++z, to += g.out_channels) {
          for (std::int64_t co = 0; co < g.out_channels; ++co) to[co] += bias[co];
        }
      });
}

template <class T>
void run(const GroupedConvolutionBackwardInput& convolution, const KernelCall& call) {
  const GroupedGeometry& g = convolution.geometry;
  const Grouped grouped(g);
  const auto* dy = call.operand<const T>(0);
  const auto* kernel = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  const std::int64_t group_in = grouped.group_in(), group_out = grouped.group_out();
  const auto add_cell = [&](const T* __restrict derivatives, const T* __restrict weights,
                            T* __restrict to) {
    if (grouped.depthwise()) {
      for (std::int64_t c = 0; c < g.in_channels; ++c) to[c] += derivatives[c] * weights[c];
      return;
    }
    for (std::int64_t co = 0; co < g.out_channels; ++co) {
      T* seen = to + co / group_out * group_in;
      for (std::int64_t ci = 0; ci < group_in; ++ci) {
        seen[ci] += derivatives[co] * weights[ci * g.out_channels + co];
      }
    }
  };
  over_rows(
      g, g.in, g.out,
      [&](std::size_t axis, std::int64_t in, std::int64_t tap) {
        return grouped.output_cell(axis, in, tap);
      },
      [&](std::int64_t row) {
        std::fill_n(dx + row * g.in_channels, g.in[2] * g.in_channels, T{0});
      },
      [&](std::int64_t row, std::int64_t out_row, std::int64_t first_tap) {
        for (std::int64_t kz = 0; kz < g.kernel[2]; ++kz) {
          for (std::int64_t z = 0; z < g.in[2]; ++z) {
            const std::int64_t out = grouped.output_cell(2, z, kz);
            if (out < 0) continue;
            add_cell(dy + (out_row + out) * g.out_channels,
                     kernel + (first_tap + kz) * grouped.tap_size(),
                     dx + (row + z) * g.in_channels);
          }
        }
      },
      [](std::int64_t) {});
}

template <class T>
void run(const GroupedConvolutionBackwardParameters& convolution, const KernelCall& call) {
  const GroupedGeometry& g = convolution.geometry;
  const Grouped grouped(g);
  const auto* x = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  auto* dkernel = call.operand<T>(2);
  auto* all_sums = reinterpret_cast<double*>(call.scratch);
  const std::int64_t size = grouped.tap_size();
  const std::int64_t group_in = grouped.group_in(), group_out = grouped.group_out();
  const auto add_cell = [&](const T* __restrict values, const T* __restrict derivatives,
                            double* __restrict sums) {
    if (grouped.depthwise()) {
      for (std::int64_t c = 0; c < g.out_channels; ++c) {
        sums[c] += static_cast<double>(values[c]) * static_cast<double>(derivatives[c]);
      }
      return;
    }
    for (std::int64_t ci = 0; ci < group_in; ++ci, sums += g.out_channels) {
      for (std::int64_t group = 0; group < g.groups; ++group) {
        const double value = static_cast<double>(values[group * group_in + ci]);
        const std::int64_t first = group * group_out;
        for (std::int64_t co = first; co < first + group_out; ++co) {
          sums[co] += value * static_cast<double>(derivatives[co]);
        }
      }
    }
  };
  const std::int64_t taps = cells(g.kernel);
  std::fill_n(all_sums, taps * size, 0.0);
  over_rows(
      g, g.out, g.in,
      [&](std::size_t axis, std::int64_t out, std::int64_t tap) {
        return grouped.input_cell(axis, out, tap);
      },
      [](std::int64_t) {},
      [&](std::int64_t row, std::int64_t in_row, std::int64_t first_tap) {
        for (std::int64_t kz = 0; kz < g.kernel[2]; ++kz) {
          for (std::int64_t z = 0; z < g.out[2]; ++z) {
            const std::int64_t in = grouped.input_cell(2, z, kz);
            if (in < 0) continue;
            add_cell(x + (in_row + in) * g.in_channels, dy + (row + z) * g.out_channels,
                     all_sums + (first_tap + kz) * size);
          }
        }
      },
      [](std::int64_t) {});
  for (std::int64_t i = 0; i < taps * size; ++i) dkernel[i] = static_cast<T>(all_sums[i]);
}

TROUPE_INSTANTIATE_RUN(GroupedConvolutionForward);
TROUPE_INSTANTIATE_RUN(GroupedConvolutionBackwardInput);
TROUPE_INSTANTIATE_RUN(GroupedConvolutionBackwardParameters);

}  // namespace troupe::model::reference

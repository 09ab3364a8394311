#include "model/backend/cpu/plane_convolution.h"

#include <algorithm>
#include <vector>

#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/rearrange.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/cpu/winograd.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/convolution.h"

namespace troupe::model::cpu {
namespace {

std::int64_t cells(const Extent& extent) { return extent[0] * extent[1] * extent[2]; }

// An image of spatial rank 2 is the same memory with its axes moved to y and z, where rows are
// long.
ConvolutionGeometry with_long_rows(ConvolutionGeometry g) {
  if (g.in[2] != 1 || g.out[2] != 1 || g.kernel[2] != 1) return g;
  for (Extent* e : {&g.in, &g.out, &g.kernel}) *e = {1, (*e)[0], (*e)[1]};
  for (Extent* e : {&g.pad_before, &g.pad_after}) *e = {0, (*e)[0], (*e)[1]};
  return g;
}

// x planes of the output whose products with an image are summed at once.
constexpr std::int64_t kPlanesAtOnce = 8;

// How rows of z become positions.
struct Tiling {
  std::int64_t points = 1;     // planes for each channel
  std::int64_t outputs = 1;    // cells of the output in one position
  std::int64_t row = 0;        // positions in a row
  std::int64_t taps_in_z = 1;  // taps that are places in a plane; with tiles none are
  std::int64_t positions = 0;  // of an output plane, rounded up
  std::int64_t plane = 0;      // numbers of one channel of an input plane

  bool tiles() const { return points > 1; }
};

Tiling tiling_of(const ConvolutionGeometry& g) {
  const std::int64_t taps = g.kernel[2], cells = g.out[2] + taps - 1;
  Tiling tiling{.row = cells, .taps_in_z = taps};
  if (taps >= kFewestTaps && taps <= kMostTaps) {
    const std::int64_t outputs = tile_outputs(static_cast<int>(taps));
    const std::int64_t tiles = (g.out[2] + outputs - 1) / outputs;
    // Below that the transforms cost what the products save.
    if (5 * tiles * kPoints <= 4 * cells * taps && taps > 2) {
      tiling = {.points = kPoints, .outputs = outputs, .row = tiles, .taps_in_z = 1};
    }
  }
  tiling.positions = whole_lanes(g.out[1] * tiling.row);
  tiling.plane =
      whole_lanes(tiling.positions + (g.kernel[1] - 1) * tiling.row + tiling.taps_in_z - 1);
  return tiling;
}

// The input of one sample as planes, of which the newest `held` are kept.
class InputPlanes {
 public:
  InputPlanes(const ConvolutionGeometry& g, const Tiling& tiling, std::int64_t held,
              ScratchPlan& plan)
      : g_(g), tiling_(tiling), held_(held) {
    place_ = plan.add_floats(held_ * size());
  }

  std::int64_t channel_stride() const { return tiling_.plane; }
  std::int64_t point_stride() const { return g_.in_channels * tiling_.plane; }

  // Makes the planes of `sample` up to the one that output plane `ox` needs last; `made` counts.
  void make(const float* sample, std::int64_t ox, std::int64_t& made, std::byte* scratch) const {
    const std::int64_t needed = std::min(g_.in[0], ox - g_.pad_before[0] + g_.kernel[0]);
    for (; made < needed; ++made) {
      float* planes = at(made, scratch);
      rearrange({.rows = g_.in[1],
                 .row_cells = g_.in[2],
                 .channels = g_.in_channels,
                 .row_stride = g_.in[2] * g_.in_channels,
                 .cell_stride = g_.in_channels,
                 .first_row = g_.pad_before[1],
                 .plane_rows = g_.out[1] + g_.kernel[1] - 1,
                 .before = g_.pad_before[2],
                 .numbers = tiling_.points,
                 .step = tiling_.outputs,
                 .row = tiling_.row,
                 .plane = tiling_.plane},
                sample + made * g_.in[1] * g_.in[2] * g_.in_channels, planes);
      if (tiling_.tiles()) transform_inputs(planes, point_stride(), point_stride());
    }
  }

  float* at(std::int64_t ix, std::byte* scratch) const {
    return scratch_at<float>(scratch, place_) + ix % held_ * size();
  }

 private:
  std::int64_t size() const { return tiling_.points * point_stride(); }

  const ConvolutionGeometry& g_;
  const Tiling& tiling_;
  std::int64_t held_;
  std::size_t place_ = 0;
};

// The taps along x that lie inside the image for one output plane.
struct Range {
  std::int64_t begin, end;
};
Range taps_inside(const ConvolutionGeometry& g, std::int64_t ox) {
  const std::int64_t shift = ox - g.pad_before[0];
  const std::int64_t begin = std::max<std::int64_t>(0, -shift);
  return {begin, std::max(begin, std::min(g.kernel[0], g.in[0] - shift))};
}

// Where the operands of a convolution stand: y = activation(conv(x, kernel) + bias).
struct Places {
  std::size_t x, kernel, bias, y;
};

// Forward; backward to the input with the mirrored geometry and `mirror` set.
class ImageKernel final : public Kernel {
 public:
  ImageKernel(const ConvolutionGeometry& geometry, const Activation& activation, bool mirror,
              const Places& places)
      : g_(with_long_rows(geometry)),
        activation_(activation),
        mirror_(mirror),
        places_(places),
        tiling_(tiling_of(g_)),
        input_(g_, tiling_, g_.kernel[0], plan_) {
    const std::int64_t weights = cells(g_.kernel) * g_.in_channels * g_.out_channels;
    if (mirror_) mirrored_ = plan_.add_floats(weights);
    if (tiling_.tiles()) {
      weights_ = plan_.add_floats(weights / g_.kernel[2] * kPoints);
    }
    sums_ = plan_.add_floats(tiling_.points * g_.out_channels * tiling_.positions + kTransposed);
    taps_ = plan_.add_bytes(static_cast<std::size_t>(taps()) * sizeof(const float*));
  }
  ImageKernel(const ImageKernel&) = delete;
  ImageKernel& operator=(const ImageKernel&) = delete;

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const float* weights = weights_of(call.operand<const float>(places_.kernel), scratch);
    const float* bias = g_.bias ? call.operand<const float>(places_.bias) : nullptr;
    const auto* x = call.operand<const float>(places_.x);
    auto* y = call.operand<float>(places_.y);
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      const float* sample = x + n * cells(g_.in) * g_.in_channels;
      std::int64_t made = 0;
      for (std::int64_t ox = 0; ox < g_.out[0]; ++ox) {
        input_.make(sample, ox, made, scratch);
        multiply(ox, weights, scratch);
        finish(bias, y, scratch);
        y += g_.out[1] * g_.out[2] * g_.out_channels;
      }
    }
  }

 private:
  std::int64_t taps() const { return g_.kernel[0] * g_.kernel[1] * tiling_.taps_in_z; }
  // Weights of one point.
  std::int64_t weights_size() const { return taps() * g_.in_channels * g_.out_channels; }

  // [point][tap][channel][output].
  const float* weights_of(const float* kernel, std::byte* scratch) const {
    if (mirror_) {
      auto* mirrored = scratch_at<float>(scratch, mirrored_);
      reference::mirror_kernel(reference::mirrored(g_), kernel, mirrored);
      kernel = mirrored;
    }
    if (!tiling_.tiles()) return kernel;
    const auto transform = tap_transform(static_cast<int>(g_.kernel[2]));
    const std::int64_t block = g_.in_channels * g_.out_channels;
    auto* weights = scratch_at<float>(scratch, weights_);
    for (std::int64_t column = 0; column < taps(); ++column) {
      for (std::int64_t i = 0; i < block; ++i) {
        for (std::int64_t point = 0; point < kPoints; ++point) {
          double weight = 0.0;
          for (std::int64_t tap = 0; tap < g_.kernel[2]; ++tap) {
            weight += transform[static_cast<std::size_t>(tap)][static_cast<std::size_t>(point)] *
                      static_cast<double>(kernel[(column * g_.kernel[2] + tap) * block + i]);
          }
          weights[point * weights_size() + column * block + i] = static_cast<float>(weight);
        }
      }
    }
    return weights;
  }

  void multiply(std::int64_t ox, const float* weights, std::byte* scratch) const {
    auto* taps = scratch_at<const float*>(scratch, taps_);
    auto* sums = scratch_at<float>(scratch, sums_);
    const Range inside = taps_inside(g_, ox);
    const std::int64_t column = weights_size() / g_.kernel[0];
    for (std::int64_t point = 0; point < tiling_.points; ++point) {
      std::size_t count = 0;
      for (std::int64_t kx = inside.begin; kx < inside.end; ++kx) {
        const float* plane =
            input_.at(ox + kx - g_.pad_before[0], scratch) + point * input_.point_stride();
        for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
          for (std::int64_t kz = 0; kz < tiling_.taps_in_z; ++kz) {
            taps[count++] = plane + ky * tiling_.row + kz;
          }
        }
      }
      multiply_planes({.taps = {taps, count},
                       .channels = g_.in_channels,
                       .channel_stride = input_.channel_stride(),
                       .weights = weights + point * weights_size() + inside.begin * column,
                       .outputs = g_.out_channels,
                       .weights_stride = g_.out_channels,
                       .positions = tiling_.positions,
                       .sums = sums + point * g_.out_channels * tiling_.positions,
                       .sums_stride = tiling_.positions});
    }
  }

  // One x plane of the output from its sums.
  void finish(const float* bias, float* y, std::byte* scratch) const {
    auto* sums = scratch_at<float>(scratch, sums_);
    const std::int64_t stride = g_.out_channels * tiling_.positions;
    if (tiling_.tiles()) {
      restore_outputs(sums, stride, stride, static_cast<int>(tiling_.outputs));
    }
    for (std::int64_t j = 0; j < tiling_.outputs; ++j) {
      for (std::int64_t o = 0; o < g_.out_channels; ++o) {
        finish_plane(sums + j * stride + o * tiling_.positions, tiling_.positions,
                     bias ? bias[o] : 0.0f, activation_);
      }
    }
    for (std::int64_t oy = 0; oy < g_.out[1]; ++oy) {
      for (std::int64_t j = 0; j < std::min(tiling_.outputs, g_.out[2]); ++j) {
        planes_to_cells({.count = (g_.out[2] - 1 - j) / tiling_.outputs + 1,
                         .channels = g_.out_channels,
                         .cell_stride = tiling_.outputs * g_.out_channels,
                         .plane_stride = tiling_.positions},
                        sums + j * stride + oy * tiling_.row,
                        y + (oy * g_.out[2] + j) * g_.out_channels);
      }
    }
  }

  const ConvolutionGeometry g_;
  const Activation activation_;
  const bool mirror_;
  const Places places_;
  const Tiling tiling_;
  ScratchPlan plan_;
  const InputPlanes input_;
  std::size_t mirrored_ = 0, weights_ = 0, sums_ = 0, taps_ = 0;
};

class ParameterKernel final : public Kernel {
 public:
  explicit ParameterKernel(const ConvolutionGeometry& geometry)
      : g_(with_long_rows(geometry)),
        tiling_(tiling_of(g_)),
        input_(g_, tiling_, kPlanesAtOnce + g_.kernel[0] - 1, plan_) {
    derivatives_ = plan_.add_floats(kPlanesAtOnce * derivative_size());
    gradient_ = plan_.add_floats(tiling_.points * gradient_size());
    rows_ = plan_.add_bytes(static_cast<std::size_t>(rows()) * sizeof(std::int64_t));
    bias_sums_ = plan_.add_bytes(static_cast<std::size_t>(g_.out_channels) * sizeof(double));
  }
  ParameterKernel(const ParameterKernel&) = delete;
  ParameterKernel& operator=(const ParameterKernel&) = delete;

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    const auto* dy = call.operand<const float>(1);
    auto* gradient = scratch_at<float>(scratch, gradient_);
    std::fill_n(gradient, tiling_.points * gradient_size(), 0.0f);
    list_rows(scratch);
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      std::int64_t made = 0;
      for (std::int64_t ox = 0; ox < g_.out[0]; ox += kPlanesAtOnce) {
        const std::int64_t planes = std::min(kPlanesAtOnce, g_.out[0] - ox);
        input_.make(x + n * cells(g_.in) * g_.in_channels, ox + planes - 1, made, scratch);
        make_derivatives(dy + (n * g_.out[0] + ox) * plane_cells() * g_.out_channels, planes,
                         scratch);
        add_planes(ox, planes, scratch);
      }
    }
    write_gradient(gradient, call.operand<float>(2));
    if (g_.bias) {
      reference::sum_columns(dy, g_.batch * cells(g_.out), g_.out_channels,
                             scratch_at<double>(scratch, bias_sums_), call.operand<float>(3));
    }
  }

 private:
  std::int64_t plane_cells() const { return g_.out[1] * g_.out[2]; }
  // Of one x plane: [point][output][position].
  std::int64_t derivative_size() const {
    return tiling_.points * g_.out_channels * tiling_.positions;
  }
  // Of one kx: (ky, kz without tiles, channel).
  std::int64_t rows() const { return g_.kernel[1] * tiling_.taps_in_z * g_.in_channels; }
  // Of one point: (kx, row, output).
  std::int64_t gradient_size() const { return g_.kernel[0] * rows() * g_.out_channels; }

  // Places of all rows in an input plane.
  void list_rows(std::byte* scratch) const {
    auto* rows = scratch_at<std::int64_t>(scratch, rows_);
    for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
      for (std::int64_t kz = 0; kz < tiling_.taps_in_z; ++kz) {
        for (std::int64_t c = 0; c < g_.in_channels; ++c) {
          *rows++ = ky * tiling_.row + kz + c * input_.channel_stride();
        }
      }
    }
  }

  void make_derivatives(const float* dy, std::int64_t planes, std::byte* scratch) const {
    const std::int64_t stride = g_.out_channels * tiling_.positions;
    for (std::int64_t i = 0; i < planes; ++i) {
      float* to = scratch_at<float>(scratch, derivatives_) + i * derivative_size();
      rearrange({.rows = g_.out[1],
                 .row_cells = g_.out[2],
                 .channels = g_.out_channels,
                 .row_stride = g_.out[2] * g_.out_channels,
                 .cell_stride = g_.out_channels,
                 .plane_rows = g_.out[1],
                 .numbers = tiling_.outputs,
                 .step = tiling_.outputs,
                 .row = tiling_.row,
                 .plane = tiling_.positions},
                dy + i * plane_cells() * g_.out_channels, to);
      if (tiling_.tiles()) {
        transform_derivatives(to, stride, stride, static_cast<int>(tiling_.outputs));
      }
    }
  }

  void add_planes(std::int64_t ox, std::int64_t planes, std::byte* scratch) const {
    const auto* rows_list = scratch_at<std::int64_t>(scratch, rows_);
    for (std::int64_t point = 0; point < tiling_.points; ++point) {
      for (std::int64_t kx = 0; kx < g_.kernel[0]; ++kx) {
        std::array<const float*, kPlanesAtOnce> left{}, right{};
        std::size_t pairs = 0;
        for (std::int64_t i = 0; i < planes; ++i) {
          const std::int64_t ix = ox + i + kx - g_.pad_before[0];
          if (ix < 0 || ix >= g_.in[0]) continue;
          left[pairs] = input_.at(ix, scratch) + point * input_.point_stride();
          right[pairs++] = scratch_at<float>(scratch, derivatives_) + i * derivative_size() +
                           point * g_.out_channels * tiling_.positions;
        }
        add_plane_dots({.left = {left.data(), pairs},
                        .right = {right.data(), pairs},
                        .rows = {rows_list, static_cast<std::size_t>(rows())},
                        .outputs = g_.out_channels,
                        .right_stride = tiling_.positions,
                        .positions = tiling_.positions,
                        .sums = scratch_at<float>(scratch, gradient_) + point * gradient_size() +
                                kx * rows() * g_.out_channels,
                        .sums_stride = g_.out_channels});
      }
    }
  }

  void write_gradient(const float* gradient, float* dkernel) const {
    if (!tiling_.tiles()) {
      std::copy_n(gradient, gradient_size(), dkernel);
      return;
    }
    const auto transform = tap_transform(static_cast<int>(g_.kernel[2]));
    const std::int64_t block = g_.in_channels * g_.out_channels;
    for (std::int64_t column = 0; column < g_.kernel[0] * g_.kernel[1]; ++column) {
      for (std::int64_t tap = 0; tap < g_.kernel[2]; ++tap) {
        for (std::int64_t i = 0; i < block; ++i) {
          double sum = 0.0;
          for (std::int64_t point = 0; point < kPoints; ++point) {
            sum += transform[static_cast<std::size_t>(tap)][static_cast<std::size_t>(point)] *
                   static_cast<double>(gradient[point * gradient_size() + column * block + i]);
          }
          *dkernel++ = static_cast<float>(sum);
        }
      }
    }
  }

  const ConvolutionGeometry g_;
  const Tiling tiling_;
  ScratchPlan plan_;
  const InputPlanes input_;
  std::size_t derivatives_ = 0, gradient_ = 0, rows_ = 0, bias_sums_ = 0;
};

}  // namespace

bool prefers_planes(const ConvolutionForward& convolution) {
  return tiling_of(with_long_rows(convolution.geometry)).tiles();
}

bool prefers_planes(const ConvolutionBackwardInput& convolution) {
  const ConvolutionGeometry g = with_long_rows(reference::mirrored(convolution.geometry));
  return tiling_of(g).tiles() && g.out_channels > 1;
}

bool prefers_planes(const ConvolutionBackwardParameters& convolution) {
  const ConvolutionGeometry g = with_long_rows(convolution.geometry);
  return tiling_of(g).tiles() && g.in_channels > 1;
}

std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionForward& convolution) {
  return std::make_unique<ImageKernel>(convolution.geometry, convolution.activation, false,
                                       Places{0, 1, 2, 3});
}

std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionBackwardInput& convolution) {
  return std::make_unique<ImageKernel>(reference::mirrored(convolution.geometry), Activation{},
                                       true, Places{0, 1, 1, 2});
}

std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionBackwardParameters& convolution) {
  return std::make_unique<ParameterKernel>(convolution.geometry);
}

}  // namespace troupe::model::cpu

#include "model/backend/cpu/direct_convolution.h"

#include <algorithm>

#include "model/backend/cpu/rows.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/convolution.h"

namespace troupe::model::cpu {
namespace {

std::int64_t cells(const Extent& extent) { return extent[0] * extent[1] * extent[2]; }
std::int64_t up_to_lanes(std::int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// An image of spatial rank 2 is the same memory with its axes moved to y and z, where rows are
// long.
ConvolutionGeometry with_long_rows(ConvolutionGeometry g) {
  if (g.in[2] != 1 || g.out[2] != 1 || g.kernel[2] != 1) return g;
  for (Extent* e : {&g.in, &g.out, &g.kernel}) *e = {1, (*e)[0], (*e)[1]};
  for (Extent* e : {&g.pad_before, &g.pad_after}) *e = {0, (*e)[0], (*e)[1]};
  return g;
}

struct Range {
  std::int64_t begin, end;
};
// Output positions of an axis at which tap k lies inside the image.
Range outputs_inside(const ConvolutionGeometry& g, std::size_t axis, std::int64_t k) {
  const std::int64_t shift = k - g.pad_before[axis];
  return {std::max<std::int64_t>(0, -shift), std::min(g.out[axis], g.in[axis] - shift)};
}
// Taps of an axis that lie inside the image for one output position.
Range taps_inside(const ConvolutionGeometry& g, std::size_t axis, std::int64_t out) {
  const std::int64_t shift = out - g.pad_before[axis];
  return {std::max<std::int64_t>(0, -shift), std::min(g.kernel[axis], g.in[axis] - shift)};
}

// The input of one sample with every row long enough for all taps in z.
class PaddedRows {
 public:
  PaddedRows(const ConvolutionGeometry& g, ScratchPlan& plan)
      : rows_(g.in[0] * g.in[1]),
        body_(g.in[2] * g.in_channels),
        before_(g.pad_before[2] * g.in_channels),
        after_(g.pad_after[2] * g.in_channels) {
    if (copies()) place_ = plan.add_floats(rows_ * row_size());
  }

  std::int64_t row_size() const { return before_ + body_ + after_; }

  // x itself when there is nothing to pad.
  const float* of(const float* x, std::byte* scratch) const {
    if (!copies()) return x;
    auto* padded = scratch_at<float>(scratch, place_);
    float* to = padded;
    for (std::int64_t row = 0; row < rows_; ++row) {
      to = std::fill_n(to, before_, 0.0f);
      to = std::copy_n(x + row * body_, body_, to);
      to = std::fill_n(to, after_, 0.0f);
    }
    return padded;
  }

 private:
  bool copies() const { return before_ != 0 || after_ != 0; }

  std::int64_t rows_, body_, before_, after_;
  std::size_t place_ = 0;
};

// (kz, in) of the kernel; where less, the library's backward passes are faster.
constexpr std::int64_t kShortestRow = 8;

// Rows of the image whose products with dy are summed in registers: with their gradient they fit
// the nearest cache.
constexpr std::int64_t kRowsAtOnce = 4;

// Of the eight lanes in the gradient of the kernel; below, the library wastes no more than we do.
constexpr std::int64_t kFewestLanes = 3;

// The direct code's limits: a vector of output channels, and no row that loses cells to padding
// wider than the kernel (mirrored: negative).
bool fits(const ConvolutionGeometry& geometry) {
  const ConvolutionGeometry g = with_long_rows(geometry);
  return rows_supported() && g.out_channels <= kLanes && g.pad_before[2] >= 0 &&
         g.pad_after[2] >= 0;
}

bool has_long_rows(const ConvolutionGeometry& geometry) {
  const ConvolutionGeometry g = with_long_rows(geometry);
  return g.kernel[2] * g.in_channels >= kShortestRow;
}

// Where the operands of a product of images stand: y = activation(conv(x, kernel) + bias).
struct ImageOperands {
  std::size_t x, kernel, bias, y;
};

// Forward; backward to the input when `mirror` is set, with the geometry already mirrored.
class ImageKernel final : public Kernel {
 public:
  ImageKernel(const ConvolutionGeometry& geometry, const Activation& activation, bool mirror,
              const ImageOperands& places)
      : g_(with_long_rows(geometry)),
        activation_(activation),
        mirror_(mirror),
        places_(places),
        dots_(g_.out_channels == 1),
        row_length_(g_.kernel[2] * g_.in_channels),
        x_rows_(g_, plan_) {
    const std::int64_t columns = g_.kernel[0] * g_.kernel[1];
    tap_size_ = dots_ ? up_to_lanes(row_length_) : row_length_ * kLanes;
    if (mirror_) mirrored_ = plan_.add_floats(columns * row_length_ * g_.out_channels);
    packed_ = plan_.add_floats(columns * tap_size_);
    plane_ = plan_.add_floats(g_.out[1] * g_.out[2] * kLanes);
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const float* kernel = packed_kernel(call.operand<const float>(places_.kernel), scratch);
    const float* bias = g_.bias ? call.operand<const float>(places_.bias) : nullptr;
    auto* plane = scratch_at<float>(scratch, plane_);
    const std::int64_t plane_cells = g_.out[1] * g_.out[2];
    float* y = call.operand<float>(places_.y);
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      const float* sample =
          call.operand<const float>(places_.x) + n * cells(g_.in) * g_.in_channels;
      const float* x = x_rows_.of(sample, scratch);
      for (std::int64_t ox = 0; ox < g_.out[0]; ++ox) {
        fill_plane(x, kernel, ox, plane);
        if (dots_) {
          finish_dots(plane, plane_cells, bias, activation_, y);
        } else {
          finish_cells(plane, plane_cells, g_.out_channels, bias, activation_, y);
        }
        y += plane_cells * g_.out_channels;
      }
    }
  }

 private:
  // Per column (kx, ky) of the kernel: dots_ (kz, in) filled up with zeros, else (kz, in, 8 lanes).
  const float* packed_kernel(const float* kernel, std::byte* scratch) const {
    if (mirror_) {
      auto* mirrored = scratch_at<float>(scratch, mirrored_);
      reference::mirror_kernel(original(), kernel, mirrored);
      kernel = mirrored;
    }
    const std::int64_t block = dots_ ? row_length_ : g_.out_channels;
    const std::int64_t padded = dots_ ? tap_size_ : kLanes;
    if (block == padded) return kernel;
    auto* packed = scratch_at<float>(scratch, packed_);
    const std::int64_t blocks = g_.kernel[0] * g_.kernel[1] * tap_size_ / padded;
    for (std::int64_t i = 0; i < blocks; ++i) {
      float* end = std::copy_n(kernel + i * block, block, packed + i * padded);
      std::fill_n(end, padded - block, 0.0f);
    }
    return packed;
  }

  ConvolutionGeometry original() const { return reference::mirrored(g_); }

  // One x plane of the output: eight sums per cell.
  void fill_plane(const float* x, const float* kernel, std::int64_t ox, float* plane) const {
    std::fill_n(plane, g_.out[1] * g_.out[2] * kLanes, 0.0f);
    for (std::int64_t kx = 0; kx < g_.kernel[0]; ++kx) {
      const std::int64_t ix = ox + kx - g_.pad_before[0];
      if (ix < 0 || ix >= g_.in[0]) continue;
      for (std::int64_t oy = 0; oy < g_.out[1]; ++oy) {
        const Range taps = taps_inside(g_, 1, oy);
        const std::int64_t iy = oy + taps.begin - g_.pad_before[1];
        const RowProduct product{.a = x + (ix * g_.in[1] + iy) * x_rows_.row_size(),
                                 .row_stride = g_.in_channels,
                                 .step_stride = 1,
                                 .group_stride = x_rows_.row_size(),
                                 .b = kernel + (kx * g_.kernel[1] + taps.begin) * tap_size_,
                                 .rows = g_.out[2],
                                 .steps = row_length_,
                                 .groups = taps.end - taps.begin,
                                 .out = plane + oy * g_.out[2] * kLanes};
        dots_ ? add_dot_products(product) : add_products(product);
      }
    }
  }

  ConvolutionGeometry g_;
  Activation activation_;
  bool mirror_;
  ImageOperands places_;
  bool dots_;  // one output channel: lanes run over (kz, in)
  std::int64_t row_length_;
  std::int64_t tap_size_ = 0;
  ScratchPlan plan_;
  PaddedRows x_rows_;
  std::size_t mirrored_ = 0, packed_ = 0, plane_ = 0;
};

class ParameterKernel final : public Kernel {
 public:
  explicit ParameterKernel(const ConvolutionGeometry& geometry)
      : g_(with_long_rows(geometry)),
        row_length_(g_.kernel[2] * g_.in_channels),
        x_rows_(g_, plan_),
        dy_plane_(plan_.add_floats(g_.out[1] * g_.out[2] * kLanes)),
        gradient_(plan_.add_floats(g_.kernel[0] * g_.kernel[1] * row_length_ * kLanes)),
        bias_sums_(plan_.add_bytes(static_cast<std::size_t>(g_.out_channels) * sizeof(double))) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* dy = call.operand<const float>(1);
    auto* gradient = scratch_at<float>(scratch, gradient_);
    const std::int64_t entries = g_.kernel[0] * g_.kernel[1] * row_length_;
    std::fill_n(gradient, entries * kLanes, 0.0f);
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      const float* sample = call.operand<const float>(0) + n * cells(g_.in) * g_.in_channels;
      const float* x = x_rows_.of(sample, scratch);
      for (std::int64_t ox = 0; ox < g_.out[0]; ++ox) {
        add_plane(x, lanes_of_plane(dy, n * g_.out[0] + ox, scratch), ox, gradient);
      }
    }
    auto* dkernel = call.operand<float>(2);
    for (std::int64_t i = 0; i < entries; ++i) {
      dkernel = std::copy_n(gradient + i * kLanes, g_.out_channels, dkernel);
    }
    if (g_.bias) {
      reference::sum_columns(dy, g_.batch * cells(g_.out), g_.out_channels,
                             scratch_at<double>(scratch, bias_sums_), call.operand<float>(3));
    }
  }

 private:
  // One x plane of dy with eight lanes per cell.
  const float* lanes_of_plane(const float* dy, std::int64_t plane, std::byte* scratch) const {
    const std::int64_t plane_cells = g_.out[1] * g_.out[2];
    dy += plane * plane_cells * g_.out_channels;
    if (g_.out_channels == kLanes) return dy;
    auto* lanes = scratch_at<float>(scratch, dy_plane_);
    for (std::int64_t i = 0; i < plane_cells; ++i) {
      float* end = std::copy_n(dy + i * g_.out_channels, g_.out_channels, lanes + i * kLanes);
      std::fill_n(end, kLanes - g_.out_channels, 0.0f);
    }
    return lanes;
  }

  void add_plane(const float* x, const float* dy, std::int64_t ox, float* gradient) const {
    for (std::int64_t kx = 0; kx < g_.kernel[0]; ++kx) {
      const std::int64_t ix = ox + kx - g_.pad_before[0];
      if (ix < 0 || ix >= g_.in[0]) continue;
      for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
        const Range rows = outputs_inside(g_, 1, ky);
        for (std::int64_t oy = rows.begin; oy < rows.end; oy += kRowsAtOnce) {
          const std::int64_t iy = oy + ky - g_.pad_before[1];
          add_sums_of_products({.a = x + (ix * g_.in[1] + iy) * x_rows_.row_size(),
                                .row_stride = 1,
                                .step_stride = g_.in_channels,
                                .group_stride = x_rows_.row_size(),
                                .b = dy + oy * g_.out[2] * kLanes,
                                .rows = row_length_,
                                .steps = g_.out[2],
                                .groups = std::min(kRowsAtOnce, rows.end - oy),
                                .out = gradient + (kx * g_.kernel[1] + ky) * row_length_ * kLanes});
        }
      }
    }
  }

  ConvolutionGeometry g_;
  std::int64_t row_length_;
  ScratchPlan plan_;
  PaddedRows x_rows_;
  std::size_t dy_plane_, gradient_, bias_sums_;
};

}  // namespace

bool prefers_direct(const ConvolutionForward& convolution) { return fits(convolution.geometry); }

bool prefers_direct(const ConvolutionBackwardInput& convolution) {
  const ConvolutionGeometry geometry = reference::mirrored(convolution.geometry);
  return fits(geometry) && has_long_rows(geometry);
}

bool prefers_direct(const ConvolutionBackwardParameters& convolution) {
  const ConvolutionGeometry& geometry = convolution.geometry;
  return fits(geometry) && has_long_rows(geometry) && geometry.out_channels >= kFewestLanes;
}

std::unique_ptr<Kernel> make_direct_kernel(const ConvolutionForward& convolution) {
  return std::make_unique<ImageKernel>(convolution.geometry, convolution.activation, false,
                                       ImageOperands{0, 1, 2, 3});
}

std::unique_ptr<Kernel> make_direct_kernel(const ConvolutionBackwardInput& convolution) {
  return std::make_unique<ImageKernel>(reference::mirrored(convolution.geometry), Activation{},
                                       true, ImageOperands{0, 1, 1, 2});
}

std::unique_ptr<Kernel> make_direct_kernel(const ConvolutionBackwardParameters& convolution) {
  return std::make_unique<ParameterKernel>(convolution.geometry);
}

}  // namespace troupe::model::cpu

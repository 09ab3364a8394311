#include "model/backend/cpu/upsampled_convolution.h"

#include <algorithm>
#include <vector>

#include "model/backend/cpu/collapsed_kernel.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/rearrange.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/convolution.h"

namespace troupe::model::cpu {
namespace {

std::int64_t cells(const Extent& extent) { return extent[0] * extent[1] * extent[2]; }

// Calls use(y, z) for every pair in order.
template <class Use>
void for_each_pair(std::int64_t y_end, std::int64_t z_end, const Use& use) {
  for (std::int64_t y = 0; y < y_end; ++y) {
    for (std::int64_t z = 0; z < z_end; ++z) use(y, z);
  }
}

// The coarse image with the zero cells around it that outputs read, and the outputs of a phase, in
// planes with rows of one length: output c stands where coarse cell c does.
struct CoarsePlanes {
  std::int64_t rows, row, positions, plane;

  explicit CoarsePlanes(const CollapsedKernel& kernel)
      : rows(kernel.axis(1).length()),
        row(kernel.axis(2).length()),
        positions(whole_lanes(kernel.axis(1).output_length() * row)),
        plane(whole_lanes(positions + (kernel.axis(1).most_taps - 1) * row +
                          kernel.axis(2).most_taps - 1)) {}

  void fill(const ConvolutionGeometry& g, const CollapsedKernel& kernel, const float* image,
            float* planes) const {
    rearrange({.rows = g.in[1],
               .row_cells = g.in[2],
               .channels = g.in_channels,
               .row_stride = g.in[2] * g.in_channels,
               .cell_stride = g.in_channels,
               .first_row = kernel.axis(1).lead(),
               .plane_rows = rows,
               .before = kernel.axis(2).lead(),
               .row = row,
               .plane = plane},
              image, planes);
  }
};

// One x plane of the output's derivative: the cells of phases (y, z), output c at place c + lead.
void fill_phase(const ConvolutionGeometry& g, const CollapsedKernel& kernel, std::int64_t fy,
                std::int64_t fz, std::array<std::int64_t, 2> lead, const Rearrangement& planes,
                const float* dy, float* to) {
  const AxisPhases &y = kernel.axis(1), &z = kernel.axis(2);
  Rearrangement r = planes;
  r.rows = y.at(fy).count;
  r.row_cells = z.at(fz).count;
  r.channels = g.out_channels;
  r.cell_stride = z.factor * g.out_channels;
  r.row_stride = y.factor * g.out[2] * g.out_channels;
  r.first_row = y.at(fy).first + lead[0];
  r.before = z.at(fz).first + lead[1];
  const std::int64_t first = y.output(fy, y.at(fy).first) * g.out[2] + z.output(fz, z.at(fz).first);
  rearrange(r, r.rows > 0 && r.row_cells > 0 ? dy + first * g.out_channels : dy, to);
}

class ForwardKernel final : public Kernel {
 public:
  explicit ForwardKernel(const ConvolutionForward& convolution)
      : g_(convolution.geometry),
        activation_(convolution.activation),
        kernel_(g_),
        planes_(kernel_) {
    collapsed_ = plan_.add_floats(kernel_.size());
    block_ = plan_.add_bytes(static_cast<std::size_t>(g_.in_channels * g_.out_channels) *
                             sizeof(double));
    image_ = plan_.add_floats(g_.in[0] * g_.in_channels * planes_.plane);
    sums_ = plan_.add_floats(kernel_.axis(2).factor * g_.out_channels * planes_.positions +
                             kTransposed);
    taps_ =
        plan_.add_bytes(sizeof(const float*) * static_cast<std::size_t>(kernel_.axis(0).most_taps *
                                                                        kernel_.axis(1).most_taps *
                                                                        kernel_.axis(2).most_taps));
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    kernel_.collapse(call.operand<const float>(1), scratch_at<double>(scratch, block_),
                     scratch_at<float>(scratch, collapsed_));
    const float* bias = g_.bias ? call.operand<const float>(2) : nullptr;
    const AxisPhases& x = kernel_.axis(0);
    const std::int64_t output_plane = g_.out[1] * g_.out[2] * g_.out_channels;
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      fill_image(call.operand<const float>(0) + n * cells(g_.in) * g_.in_channels, scratch);
      for (std::int64_t fx = 0; fx < x.factor; ++fx) {
        for (std::int64_t i = 0; i < x.at(fx).count; ++i) {
          const std::int64_t c = x.at(fx).first + i;
          float* y = call.operand<float>(3) + (n * g_.out[0] + x.output(fx, c)) * output_plane;
          for (std::int64_t fy = 0; fy < kernel_.axis(1).factor; ++fy) {
            multiply(fx, c, fy, scratch);
            finish(fy, bias, y, scratch);
          }
        }
      }
    }
  }

 private:
  float* image_plane(std::int64_t ix, std::byte* scratch) const {
    return scratch_at<float>(scratch, image_) + ix * g_.in_channels * planes_.plane;
  }

  void fill_image(const float* sample, std::byte* scratch) const {
    for (std::int64_t ix = 0; ix < g_.in[0]; ++ix) {
      planes_.fill(g_, kernel_, sample + ix * g_.in[1] * g_.in[2] * g_.in_channels,
                   image_plane(ix, scratch));
    }
  }

  // Sums [phase along z][output][position] of one x plane and one phase along y.
  void multiply(std::int64_t fx, std::int64_t c, std::int64_t fy, std::byte* scratch) const {
    const std::int64_t begin = std::max<std::int64_t>(0, -c);
    const std::int64_t end = std::max(begin, std::min(kernel_.axis(0).at(fx).taps, g_.in[0] - c));
    auto* taps = scratch_at<const float*>(scratch, taps_);
    const std::int64_t y_taps = kernel_.axis(1).at(fy).taps;
    for (std::int64_t fz = 0; fz < kernel_.axis(2).factor; ++fz) {
      const std::int64_t z_taps = kernel_.axis(2).at(fz).taps;
      std::size_t count = 0;
      for (std::int64_t jx = begin; jx < end; ++jx) {
        const float* plane = image_plane(c + jx, scratch);
        for_each_pair(y_taps, z_taps, [&](std::int64_t jy, std::int64_t jz) {
          taps[count++] = plane + jy * planes_.row + jz;
        });
      }
      multiply_planes({.taps = {taps, count},
                       .channels = g_.in_channels,
                       .channel_stride = planes_.plane,
                       .weights = scratch_at<float>(scratch, collapsed_) +
                                  kernel_.place(fx, fy, fz) +
                                  begin * y_taps * z_taps * g_.in_channels * g_.out_channels,
                       .outputs = g_.out_channels,
                       .weights_stride = g_.out_channels,
                       .positions = planes_.positions,
                       .sums = sums_of(fz, scratch),
                       .sums_stride = planes_.positions});
    }
  }

  float* sums_of(std::int64_t fz, std::byte* scratch) const {
    return scratch_at<float>(scratch, sums_) + fz * g_.out_channels * planes_.positions;
  }

  // The rows of one phase along y from their sums.
  void finish(std::int64_t fy, const float* bias, float* y, std::byte* scratch) const {
    const AxisPhases &rows = kernel_.axis(1), &axis = kernel_.axis(2);
    for (std::int64_t fz = 0; fz < axis.factor; ++fz) {
      for (std::int64_t o = 0; o < g_.out_channels; ++o) {
        finish_plane(sums_of(fz, scratch) + o * planes_.positions, planes_.positions,
                     bias ? bias[o] : 0.0f, activation_);
      }
    }
    for (std::int64_t i = 0; i < rows.at(fy).count; ++i) {
      const std::int64_t c = rows.at(fy).first + i;
      float* row = y + rows.output(fy, c) * g_.out[2] * g_.out_channels;
      for (std::int64_t fz = 0; fz < axis.factor; ++fz) {
        const Phase& phase = axis.at(fz);
        const float* from =
            sums_of(fz, scratch) + (c + rows.lead()) * planes_.row + phase.first + axis.lead();
        float* to = row + axis.output(fz, phase.first) * g_.out_channels;
        planes_to_cells({.count = phase.count,
                         .channels = g_.out_channels,
                         .cell_stride = axis.factor * g_.out_channels,
                         .plane_stride = planes_.positions},
                        from, to);
      }
    }
  }

  const ConvolutionGeometry g_;
  const Activation activation_;
  const CollapsedKernel kernel_;
  const CoarsePlanes planes_;
  ScratchPlan plan_;
  std::size_t collapsed_ = 0, block_ = 0, image_ = 0, sums_ = 0, taps_ = 0;
};

// dx[c] = sum over phases and coarse taps j of dy[phase, c - j] collapsed[phase][j] transposed.
class BackwardInputKernel final : public Kernel {
 public:
  explicit BackwardInputKernel(const ConvolutionGeometry& geometry)
      : g_(geometry),
        kernel_(g_),
        lead_{kernel_.axis(1).most_taps - 1, kernel_.axis(2).most_taps - 1},
        row_(g_.in[2] + lead_[1]),
        positions_(whole_lanes(g_.in[1] * row_)),
        plane_(whole_lanes(positions_ + lead_[0] * row_ + lead_[1])) {
    collapsed_ = plan_.add_floats(kernel_.size());
    transposed_ = plan_.add_floats(kernel_.size());
    block_ = plan_.add_bytes(static_cast<std::size_t>(g_.in_channels * g_.out_channels) *
                             sizeof(double));
    derivatives_ = plan_.add_floats((g_.out[0] + 1) * phases_in_plane() * phase_size());
    taps_ = plan_.add_bytes(sizeof(const float*) * static_cast<std::size_t>(all_taps()));
    sums_ = plan_.add_floats(g_.in_channels * positions_ + kTransposed);
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    kernel_.collapse(call.operand<const float>(1), scratch_at<double>(scratch, block_),
                     scratch_at<float>(scratch, collapsed_));
    transpose(scratch);
    std::fill_n(phase_plane(g_.out[0], 0, 0, scratch), phases_in_plane() * phase_size(), 0.0f);
    auto* dx = call.operand<float>(2);
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      fill_derivatives(call.operand<const float>(0) + n * cells(g_.out) * g_.out_channels, scratch);
      for (std::int64_t c = 0; c < g_.in[0]; ++c) {
        multiply(c, scratch);
        const auto* sums = scratch_at<float>(scratch, sums_);
        for (std::int64_t y = 0; y < g_.in[1]; ++y, dx += g_.in[2] * g_.in_channels) {
          planes_to_cells({.count = g_.in[2],
                           .channels = g_.in_channels,
                           .cell_stride = g_.in_channels,
                           .plane_stride = positions_},
                          sums + y * row_, dx);
        }
      }
    }
  }

 private:
  std::int64_t all_taps() const {
    return kernel_.axis(0).all_taps * kernel_.axis(1).all_taps * kernel_.axis(2).all_taps;
  }
  std::int64_t phases_in_plane() const { return kernel_.axis(1).factor * kernel_.axis(2).factor; }
  std::int64_t phase_size() const { return g_.out_channels * plane_; }
  float* phase_plane(std::int64_t ox, std::int64_t fy, std::int64_t fz, std::byte* scratch) const {
    return scratch_at<float>(scratch, derivatives_) +
           (ox * phases_in_plane() + fy * kernel_.axis(2).factor + fz) * phase_size();
  }

  // Calls use(phase along x, jx), in the order of the taps.
  template <class Use>
  void for_each_x_tap(const Use& use) const {
    for (std::int64_t fx = 0; fx < kernel_.axis(0).factor; ++fx) {
      for (std::int64_t jx = 0; jx < kernel_.axis(0).at(fx).taps; ++jx) use(fx, jx);
    }
  }

  // Weights (fx, jx, fy, fz, jy, jz, output, input).
  void transpose(std::byte* scratch) const {
    auto* to = scratch_at<float>(scratch, transposed_);
    for_each_x_tap([&](std::int64_t fx, std::int64_t jx) {
      for_each_pair(
          kernel_.axis(1).factor, kernel_.axis(2).factor, [&](std::int64_t fy, std::int64_t fz) {
            const std::int64_t taps = kernel_.axis(1).at(fy).taps * kernel_.axis(2).at(fz).taps;
            const float* from = scratch_at<float>(scratch, collapsed_) + kernel_.place(fx, fy, fz) +
                                jx * taps * g_.in_channels * g_.out_channels;
            for (std::int64_t tap = 0; tap < taps; ++tap) {
              for (std::int64_t o = 0; o < g_.out_channels; ++o) {
                for (std::int64_t i = 0; i < g_.in_channels; ++i)
                  *to++ = from[i * g_.out_channels + o];
              }
              from += g_.in_channels * g_.out_channels;
            }
          });
    });
  }

  void fill_derivatives(const float* dy, std::byte* scratch) const {
    const Rearrangement planes{.plane_rows = g_.in[1] + lead_[0], .row = row_, .plane = plane_};
    for (std::int64_t ox = 0; ox < g_.out[0]; ++ox) {
      const float* plane = dy + ox * g_.out[1] * g_.out[2] * g_.out_channels;
      for_each_pair(
          kernel_.axis(1).factor, kernel_.axis(2).factor, [&](std::int64_t fy, std::int64_t fz) {
            fill_phase(g_, kernel_, fy, fz, lead_, planes, plane, phase_plane(ox, fy, fz, scratch));
          });
    }
  }

  // The sums of one x plane of dx. Planes beyond the image are one of zeros.
  void multiply(std::int64_t c, std::byte* scratch) const {
    auto* taps = scratch_at<const float*>(scratch, taps_);
    std::size_t count = 0;
    for_each_x_tap([&](std::int64_t fx, std::int64_t jx) {
      const std::int64_t place = kernel_.axis(0).output(fx, c - jx);
      const std::int64_t ox = place < 0 || place >= g_.out[0] ? g_.out[0] : place;
      for_each_pair(
          kernel_.axis(1).factor, kernel_.axis(2).factor, [&](std::int64_t fy, std::int64_t fz) {
            const float* plane = phase_plane(ox, fy, fz, scratch);
            for_each_pair(kernel_.axis(1).at(fy).taps, kernel_.axis(2).at(fz).taps,
                          [&](std::int64_t jy, std::int64_t jz) {
                            taps[count++] = plane + (lead_[0] - jy) * row_ + lead_[1] - jz;
                          });
          });
    });
    multiply_planes({.taps = {taps, count},
                     .channels = g_.out_channels,
                     .channel_stride = plane_,
                     .weights = scratch_at<float>(scratch, transposed_),
                     .outputs = g_.in_channels,
                     .weights_stride = g_.in_channels,
                     .positions = positions_,
                     .sums = scratch_at<float>(scratch, sums_),
                     .sums_stride = positions_});
  }

  const ConvolutionGeometry g_;
  const CollapsedKernel kernel_;
  const std::array<std::int64_t, 2> lead_;  // zero cells before the derivatives, along y and z
  const std::int64_t row_, positions_, plane_;
  ScratchPlan plan_;
  std::size_t collapsed_ = 0, transposed_ = 0, block_ = 0, derivatives_ = 0, taps_ = 0, sums_ = 0;
};

class ParameterKernel final : public Kernel {
 public:
  explicit ParameterKernel(const ConvolutionGeometry& geometry)
      : g_(geometry), kernel_(g_), planes_(kernel_) {
    gradient_ = plan_.add_floats(kernel_.size());
    block_ = plan_.add_bytes(static_cast<std::size_t>(g_.in_channels * g_.out_channels) *
                             sizeof(double));
    image_ = plan_.add_floats(g_.in[0] * g_.in_channels * planes_.plane);
    std::int64_t most_planes = 0;
    for (const Phase& phase : kernel_.axis(0).phases) {
      most_planes = std::max(most_planes, phase.count);
    }
    derivatives_ = plan_.add_floats(most_planes * phase_size());
    pairs_ = plan_.add_bytes(2 * sizeof(const float*) * static_cast<std::size_t>(most_planes));
    most_pairs_ = static_cast<std::size_t>(most_planes);
    rows_ = plan_.add_bytes(sizeof(std::int64_t) *
                            static_cast<std::size_t>(kernel_.axis(1).most_taps *
                                                     kernel_.axis(2).most_taps * g_.in_channels));
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    auto* gradient = scratch_at<float>(scratch, gradient_);
    std::fill_n(gradient, kernel_.size(), 0.0f);
    const auto* dy = call.operand<const float>(1);
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      const float* sample = call.operand<const float>(0) + n * cells(g_.in) * g_.in_channels;
      for (std::int64_t ix = 0; ix < g_.in[0]; ++ix) {
        planes_.fill(g_, kernel_, sample + ix * g_.in[1] * g_.in[2] * g_.in_channels,
                     image_plane(ix, scratch));
      }
      for (std::int64_t fx = 0; fx < kernel_.axis(0).factor; ++fx) {
        for_each_pair(kernel_.axis(1).factor, kernel_.axis(2).factor,
                      [&](std::int64_t fy, std::int64_t fz) {
                        add_phase({fx, fy, fz}, dy + n * cells(g_.out) * g_.out_channels, scratch);
                      });
      }
    }
    auto* sums = scratch_at<double>(scratch, block_);
    kernel_.expand(gradient, sums, call.operand<float>(2));
    if (g_.bias) {
      reference::sum_columns(dy, g_.batch * cells(g_.out), g_.out_channels, sums,
                             call.operand<float>(3));
    }
  }

 private:
  std::int64_t phase_size() const { return g_.out_channels * planes_.positions; }
  float* image_plane(std::int64_t ix, std::byte* scratch) const {
    return scratch_at<float>(scratch, image_) + ix * g_.in_channels * planes_.plane;
  }

  void add_phase(const Extent& f, const float* dy, std::byte* scratch) const {
    const Phase& x = kernel_.axis(0).at(f[0]);
    auto* derivatives = scratch_at<float>(scratch, derivatives_);
    const Rearrangement planes{.plane_rows = kernel_.axis(1).output_length(),
                               .row = planes_.row,
                               .plane = planes_.positions};
    for (std::int64_t i = 0; i < x.count; ++i) {
      const std::int64_t ox = kernel_.axis(0).output(f[0], x.first + i);
      fill_phase(g_, kernel_, f[1], f[2], {kernel_.axis(1).lead(), kernel_.axis(2).lead()}, planes,
                 dy + ox * g_.out[1] * g_.out[2] * g_.out_channels, derivatives + i * phase_size());
    }
    const std::int64_t y_taps = kernel_.axis(1).at(f[1]).taps,
                       z_taps = kernel_.axis(2).at(f[2]).taps;
    auto* rows = scratch_at<std::int64_t>(scratch, rows_);
    std::size_t count = 0;
    for_each_pair(y_taps, z_taps, [&](std::int64_t jy, std::int64_t jz) {
      for (std::int64_t c = 0; c < g_.in_channels; ++c) {
        rows[count++] = jy * planes_.row + jz + c * planes_.plane;
      }
    });
    auto* left = scratch_at<const float*>(scratch, pairs_);
    const float** right = left + most_pairs_;
    for (std::int64_t jx = 0; jx < x.taps; ++jx) {
      std::size_t pairs = 0;
      for (std::int64_t i = 0; i < x.count; ++i) {
        const std::int64_t ix = x.first + i + jx;
        if (ix < 0 || ix >= g_.in[0]) continue;
        left[pairs] = image_plane(ix, scratch);
        right[pairs++] = derivatives + i * phase_size();
      }
      add_plane_dots({.left = {left, pairs},
                      .right = {right, pairs},
                      .rows = {rows, count},
                      .outputs = g_.out_channels,
                      .right_stride = planes_.positions,
                      .positions = planes_.positions,
                      .sums = scratch_at<float>(scratch, gradient_) +
                              kernel_.place(f[0], f[1], f[2]) +
                              jx * y_taps * z_taps * g_.in_channels * g_.out_channels,
                      .sums_stride = g_.out_channels});
    }
  }

  const ConvolutionGeometry g_;
  const CollapsedKernel kernel_;
  const CoarsePlanes planes_;
  ScratchPlan plan_;
  std::size_t gradient_ = 0, block_ = 0, image_ = 0, derivatives_ = 0, pairs_ = 0, rows_ = 0;
  std::size_t most_pairs_ = 0;
};

}  // namespace

bool upsamples(const ConvolutionGeometry& geometry) { return geometry.upsample != Extent{1, 1, 1}; }

std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionForward& convolution) {
  return std::make_unique<ForwardKernel>(convolution);
}

std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionBackwardInput& convolution) {
  return std::make_unique<BackwardInputKernel>(convolution.geometry);
}

std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionBackwardParameters& convolution) {
  return std::make_unique<ParameterKernel>(convolution.geometry);
}

}  // namespace troupe::model::cpu

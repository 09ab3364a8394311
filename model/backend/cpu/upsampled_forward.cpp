#include "model/backend/cpu/upsampled_forward.h"

#include <algorithm>

#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_transforms.h"

namespace troupe::model::cpu {

UpsampledForward::UpsampledForward(const ConvolutionForward& convolution, const Elements& elements)
    : g_(with_long_rows(convolution.geometry)),
      kernel_(g_),
      planes_(kernel_, elements.in_lane),
      activation_(convolution.activation),
      channels_(elements.channels) {
  collapsed_ = plan_.add_floats(kernel_.size());
  block_ =
      plan_.add_bytes(static_cast<std::size_t>(g_.in_channels * g_.out_channels) * sizeof(double));
  sums_ =
      plan_.add_floats(kernel_.axis(2).factor * g_.out_channels * planes_.positions + kTransposed);
}

double UpsampledForward::products() const {
  return x_products(g_, kernel_.axis(0)) *
         plane_products(g_, kernel_, planes_.positions, channels_ * g_.out_channels);
}

void UpsampledForward::prepare(const KernelCall& call) const {
  auto* collapsed = scratch_at<float>(call.scratch, collapsed_);
  kernel_.collapse(call.operand<const float>(1), scratch_at<double>(call.scratch, block_),
                   collapsed);
  arrange(collapsed, call.scratch);
}

// The weights stand in the call's scratch memory.
void UpsampledForward::run_share(const KernelCall& call, std::int64_t n, std::byte* scratch) const {
  const float* bias = g_.bias ? call.operand<const float>(2) : nullptr;
  const AxisPhases& x = kernel_.axis(0);
  const std::int64_t output_plane = g_.out[1] * g_.out[2] * g_.out_channels;
  fill_image(call.operand<const float>(0) + n * cells(g_.in) * g_.in_channels, call.scratch,
             scratch);
  // The output planes of a phase read the coarse planes c to c + taps - 1. The rows of one phase
  // along y are finished before the next phase, as the sums of all phases along z of one (fx, c,
  // fy) fill the memory for sums.
  for (std::int64_t fx = 0; fx < x.factor; ++fx) {
    for (std::int64_t i = 0; i < x.at(fx).count; ++i) {
      const std::int64_t c = x.at(fx).first + i;
      float* y = call.operand<float>(3) + (n * g_.out[0] + x.output(fx, c)) * output_plane;
      for (std::int64_t fy = 0; fy < kernel_.axis(1).factor; ++fy) {
        form_sums({fx, c, fy}, call.scratch, scratch);
        finish(fy, bias, y, scratch);
      }
    }
  }
}

// Sums [phase along z][output][position].
void UpsampledForward::form_sums(const PlaneOfPhases& plane_of, const std::byte* weights,
                                 std::byte* scratch) const {
  const auto [fx, c, fy] = plane_of;
  const std::int64_t x_taps = kernel_.axis(0).at(fx).taps;
  // Taps along x that lie outside the image are left out, and their weights with them. Along y and
  // z the planes have zeros around the image.
  const std::int64_t begin = std::clamp<std::int64_t>(-c, 0, x_taps);
  const std::int64_t end = std::max(begin, std::min(x_taps, g_.in[0] - c));
  for (std::int64_t fz = 0; fz < kernel_.axis(2).factor; ++fz) {
    Taps taps{.first_plane = c + begin,
              .planes = end - begin,
              .y = kernel_.axis(1).at(fy).taps,
              .z = kernel_.axis(2).at(fz).taps};
    taps.first = kernel_.first_tap(fx, fy, fz) + begin * taps.y * taps.z;
    multiply(taps, weights, sums_of(fz, scratch), scratch);
  }
}

// The rows of one phase along y from their sums.
void UpsampledForward::finish(std::int64_t fy, const float* bias, float* y,
                              std::byte* scratch) const {
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
      if (phase.count == 0) continue;
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

}  // namespace troupe::model::cpu

#include "model/backend/cpu/plane_image.h"

#include <algorithm>

#include "model/backend/cpu/bfloat16_planes.h"
#include "model/backend/cpu/plane_transforms.h"
#include "model/backend/cpu/winograd.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model::cpu {

PlaneImageKernel::PlaneImageKernel(const ImageConvolution& convolution, const Tiling& tiling)
    : convolution_(convolution), tiling_(tiling) {
  const std::int64_t weights = cells(g_.kernel) * g_.in_channels * g_.out_channels;
  if (convolution_.mirror) mirrored_ = plan_.add_floats(weights);
  if (tiling_.tiles()) weights_ = plan_.add_floats(weights / tiling_.taps_of_part * tiling_.points);
  sums_ = plan_.add_floats(tiling_.points * g_.out_channels * tiling_.positions + kTransposed);
}

void PlaneImageKernel::prepare(const KernelCall& call) const {
  const auto* kernel = call.operand<const float>(convolution_.kernel);
  if (convolution_.mirror) {
    auto* mirrored = scratch_at<float>(call.scratch, mirrored_);
    reference::mirror_kernel(reference::mirrored(g_), kernel, mirrored);
    kernel = mirrored;
  }
  // Weights are transformed once per run, in double, and serve all samples and planes.
  if (tiling_.tiles()) transform_weights(kernel, scratch_at<float>(call.scratch, weights_));
  arrange(weights_of(call), call.scratch);
}

const float* PlaneImageKernel::weights_of(const KernelCall& call) const {
  if (tiling_.tiles()) return scratch_at<float>(call.scratch, weights_);
  if (convolution_.mirror) return scratch_at<float>(call.scratch, mirrored_);
  return call.operand<const float>(convolution_.kernel);
}

void PlaneImageKernel::run_sample(const KernelCall& call, std::int64_t n,
                                  std::byte* scratch) const {
  const Weights weights{weights_of(call), call.scratch};
  const float* bias = g_.bias ? call.operand<const float>(convolution_.bias) : nullptr;
  const float* sample =
      call.operand<const float>(convolution_.x) + n * cells(g_.in) * g_.in_channels;
  const std::int64_t plane = g_.out[1] * g_.out[2] * g_.out_channels;
  auto* y = call.operand<float>(convolution_.y);
  std::int64_t made = 0, begin = n * g_.out[0] * plane;
  for (std::int64_t ox = 0; ox < g_.out[0]; ++ox, begin += plane) {
    form_sums(sample, ox, made, weights, scratch);
    finish(bias, y + begin, scratch);
    if (call.part_done != nullptr) (*call.part_done)({begin, begin + plane});
  }
}

// Evaluates the taps along z at the points of the tiles (G). A column is one (kx, ky, part of the
// taps).
void PlaneImageKernel::transform_weights(const float* kernel, float* weights) const {
  const auto transform =
      tap_transform(static_cast<int>(tiling_.points), static_cast<int>(tiling_.taps_of_part));
  const std::int64_t block = g_.in_channels * g_.out_channels;
  for (std::int64_t column = 0; column < taps() * tiling_.parts; ++column) {
    for (std::int64_t i = 0; i < block; ++i) {
      for (std::int64_t point = 0; point < tiling_.points; ++point) {
        double weight = 0.0;
        for (std::int64_t tap = 0; tap < tiling_.taps_of_part; ++tap) {
          weight += transform[static_cast<std::size_t>(tap)][static_cast<std::size_t>(point)] *
                    static_cast<double>(kernel[(column * tiling_.taps_of_part + tap) * block + i]);
        }
        weights[point * weights_size() + column * block + i] = static_cast<float>(weight);
      }
    }
  }
}

// One x plane of the output from its sums.
void PlaneImageKernel::finish(const float* bias, float* y, std::byte* scratch) const {
  float* sums = this->sums(scratch);
  const std::int64_t stride = g_.out_channels * tiling_.positions;
  if (tiling_.tiles()) {
    const auto restore =
        tiling_.points == kSevenPoints ? &restore_outputs_of_seven : &restore_outputs;
    restore(sums, stride, stride, static_cast<int>(tiling_.outputs));
  }
  // Number j of each tile is output j of its positions, so the numbers stand in planes of their
  // own. Bias and activation work on these planes, before they are interleaved again to cells.
  for (std::int64_t j = 0; j < tiling_.outputs; ++j) {
    for (std::int64_t o = 0; o < g_.out_channels; ++o) {
      finish_plane(sums + j * stride + o * tiling_.positions, tiling_.positions,
                   bias ? bias[o] : 0.0f, convolution_.activation);
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

}  // namespace troupe::model::cpu

#include "model/backend/cpu/plane_image.h"

#include <algorithm>

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

void PlaneImageKernel::run_share(const KernelCall& call, std::int64_t share,
                                 std::byte* scratch) const {
  const Weights weights{weights_of(call), call.scratch};
  const float* bias = g_.bias ? call.operand<const float>(convolution_.bias) : nullptr;
  const auto* images = call.operand<const float>(convolution_.x);
  auto* y = call.operand<float>(convolution_.y);
  const Samples samples = share_of(g_.batch, tiling_.samples, share);
  const std::int64_t plane = g_.out[1] * g_.out[2] * g_.out_channels, size = g_.out[0] * plane;
  std::int64_t made = 0, begin = samples.first * size;
  for (std::int64_t ox = 0; ox < g_.out[0]; ++ox, begin += plane) {
    form_sums(images, samples, ox, made, weights, scratch);
    finish(bias, samples.count, y + begin, scratch);
    for (std::int64_t s = 0; s < samples.count && call.part_done != nullptr; ++s) {
      (*call.part_done)({begin + s * size, begin + s * size + plane});
    }
  }
}

// Evaluates the taps along z at the points of the tiles (G). A column is one (kx, ky, part of the
// taps).
void PlaneImageKernel::transform_weights(const float* kernel, float* weights) const {
  const auto of_taps = tap_transform(static_cast<int>(tiling_.taps_of_part));
  const std::int64_t block = g_.in_channels * g_.out_channels;
  WeighedRows rows{.weights = {},
                   .from_rows = tiling_.taps_of_part,
                   .from_stride = block,
                   .to_rows = tiling_.points,
                   .to_stride = weights_size(),
                   .count = block};
  for (std::size_t tap = 0; tap < of_taps.size(); ++tap) {
    for (std::size_t point = 0; point < kPoints; ++point) {
      rows.weights[point][tap] = of_taps[tap][point];
    }
  }
  for (std::int64_t column = 0; column < taps() * tiling_.parts; ++column) {
    add_weighed(rows, kernel + column * tiling_.taps_of_part * block, weights + column * block);
  }
}

// One x plane of the outputs of some samples, the first of which stands at `y`, from their sums.
void PlaneImageKernel::finish(const float* bias, std::int64_t samples, float* y,
                              std::byte* scratch) const {
  float* sums = this->sums(scratch);
  const std::int64_t stride = g_.out_channels * tiling_.positions;
  if (tiling_.tiles()) {
    restore_outputs(sums, stride, stride, static_cast<int>(tiling_.outputs));
  }
  // Number j of each tile is output j of its positions, so the numbers stand in planes of their
  // own. Bias and activation work on these planes, and they are interleaved again to cells.
  if (tiling_.samples > 1) return finish_side_by_side(bias, samples, sums, y);
  for (std::int64_t j = 0; j < std::min(tiling_.outputs, g_.out[2]); ++j) {
    finish_cells({.rows = g_.out[1],
                  .row_cells = g_.out[2],
                  .channels = g_.out_channels,
                  .row = tiling_.row,
                  .step = tiling_.outputs,
                  .first = j,
                  .plane_stride = tiling_.positions,
                  .biases = bias,
                  .activation = convolution_.activation},
                 sums + j * stride, y);
  }
}

void PlaneImageKernel::finish_side_by_side(const float* bias, std::int64_t samples, float* sums,
                                           float* y) const {
  const std::int64_t channels = g_.out_channels, size = cells(g_.out) * channels;
  for (std::int64_t j = 0; j < std::min(tiling_.outputs, g_.out[2]); ++j) {
    for (std::int64_t o = 0; o < channels; ++o) {
      finish_plane(sums + o * tiling_.positions, tiling_.positions, bias ? bias[o] : 0.0f,
                   convolution_.activation);
    }
    for (std::int64_t oy = 0; oy < g_.out[1]; ++oy) {
      const float* from = sums + oy * tiling_.row_stride();
      for (std::int64_t z = j; z < g_.out[2]; z += tiling_.outputs, from += tiling_.samples) {
        planes_to_cells({samples, channels, size, tiling_.positions}, from,
                        y + (oy * g_.out[2] + z) * channels);
      }
    }
    sums += channels * tiling_.positions;
  }
}

}  // namespace troupe::model::cpu

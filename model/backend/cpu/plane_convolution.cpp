#include "model/backend/cpu/plane_convolution.h"

#include <algorithm>

#include "model/backend/cpu/plane_image.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/reference/convolution.h"

namespace troupe::model::cpu {
namespace {

// Sums over all taps in registers.
class ManyOutputsKernel final : public PlaneImageKernel {
 public:
  explicit ManyOutputsKernel(const ImageConvolution& convolution)
      : PlaneImageKernel(convolution),
        input_(g_, tiling_, g_.kernel[0], plan_),
        taps_(plan_.add_bytes(static_cast<std::size_t>(taps()) * sizeof(const float*))) {}

  double products() const override {
    return static_cast<double>(g_.batch * all_taps_inside(g_) * tiling_.points *
                               tiling_.positions) *
           static_cast<double>(weights_size() / g_.kernel[0]);
  }

 private:
  const float* arrange(const float* weights, std::byte*) const override { return weights; }

  void form_sums(const float* sample, std::int64_t ox, std::int64_t& made, const float* weights,
                 std::byte* scratch) const override {
    input_.make_up_to(sample, ox, made, scratch);
    auto* taps = scratch_at<const float*>(scratch, taps_);
    const TapRange inside = taps_inside(g_, ox);
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
                       .channels = input_.channels(),
                       .channel_stride = input_.channel_stride(),
                       .weights = weights + point * weights_size() + inside.begin * column,
                       .outputs = g_.out_channels,
                       .weights_stride = g_.out_channels,
                       .positions = tiling_.positions,
                       .sums = sums(scratch) + point * g_.out_channels * tiling_.positions,
                       .sums_stride = tiling_.positions});
    }
  }

  const InputPlanes input_;
  const std::size_t taps_;
};

// With one output there is nothing to block but taps: these take the outputs' place. Each plane of
// the input gives a plane of sums over its channels for every tap, and the output is what of these
// planes, each shifted by its tap, adds up.
class OneOutputKernel final : public PlaneImageKernel {
 public:
  explicit OneOutputKernel(const ImageConvolution& convolution)
      : PlaneImageKernel(convolution),
        input_(g_, tiling_, 1, plan_),
        weights_(plan_.add_floats(tiling_.points * weights_size())),
        of_taps_(plan_.add_floats(g_.kernel[0] * tiling_.points * taps() * tiling_.plane)),
        planes_(plan_.add_bytes(static_cast<std::size_t>(taps()) * sizeof(const float*))) {}

  double products() const override {
    return static_cast<double>(g_.batch * g_.in[0] * tiling_.points * tiling_.plane) *
           static_cast<double>(weights_size());
  }

 private:
  // [point][channel][tap].
  const float* arrange(const float* weights, std::byte* scratch) const override {
    auto* arranged = scratch_at<float>(scratch, weights_);
    for (std::int64_t point = 0; point < tiling_.points; ++point) {
      for (std::int64_t tap = 0; tap < taps(); ++tap) {
        for (std::int64_t c = 0; c < input_.channels(); ++c) {
          arranged[point * weights_size() + c * taps() + tap] = *weights++;
        }
      }
    }
    return arranged;
  }

  void form_sums(const float* sample, std::int64_t ox, std::int64_t& made, const float* weights,
                 std::byte* scratch) const override {
    const std::int64_t needed = std::min(g_.in[0], ox - g_.pad_before[0] + g_.kernel[0]);
    for (; made < needed; ++made) {
      const float* plane = input_.make(sample, made, scratch);
      for (std::int64_t point = 0; point < tiling_.points; ++point) {
        const float* channels = plane + point * input_.point_stride();
        multiply_planes({.taps = {&channels, 1},
                         .channels = input_.channels(),
                         .channel_stride = input_.channel_stride(),
                         .weights = weights + point * weights_size(),
                         .outputs = taps(),
                         .weights_stride = taps(),
                         .positions = tiling_.plane,
                         .sums = of_taps(made, point, scratch),
                         .sums_stride = tiling_.plane});
      }
    }
    const TapRange inside = taps_inside(g_, ox);
    auto* planes = scratch_at<const float*>(scratch, planes_);
    for (std::int64_t point = 0; point < tiling_.points; ++point) {
      std::size_t count = 0;
      for (std::int64_t kx = inside.begin; kx < inside.end; ++kx) {
        const float* tap = of_taps(ox + kx - g_.pad_before[0], point, scratch) +
                           kx * taps() / g_.kernel[0] * tiling_.plane;
        for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
          for (std::int64_t kz = 0; kz < tiling_.taps_in_z; ++kz, tap += tiling_.plane) {
            planes[count++] = tap + ky * tiling_.row + kz;
          }
        }
      }
      add_planes({planes, count}, tiling_.positions, sums(scratch) + point * tiling_.positions);
    }
  }

  // [tap][position] of one plane of the input.
  float* of_taps(std::int64_t ix, std::int64_t point, std::byte* scratch) const {
    return scratch_at<float>(scratch, of_taps_) +
           (ix % g_.kernel[0] * tiling_.points + point) * taps() * tiling_.plane;
  }

  const InputPlanes input_;
  const std::size_t weights_, of_taps_, planes_;
};

std::unique_ptr<Kernel> make_image_kernel(const ImageConvolution& convolution) {
  if (convolution.geometry.out_channels == 1) return std::make_unique<OneOutputKernel>(convolution);
  return std::make_unique<ManyOutputsKernel>(convolution);
}

// Whether tiles do all they can: on the smallest images they fill few of the lanes, and the more
// parts the taps have, the more products there are.
bool are_good(const Tiling& tiling, const ConvolutionGeometry& g) {
  return tiling.tiles() && tiling.parts == 1 && 2 * g.out[1] * tiling.row > tiling.positions;
}

bool prefers_planes_for_image(const ConvolutionGeometry& g) {
  return are_good(tiling_of(g), g) || g.out_channels == 1;
}

}  // namespace

bool prefers_planes(const ConvolutionForward& convolution) {
  return prefers_planes_for_image(with_long_rows(convolution.geometry));
}

bool prefers_planes(const ConvolutionBackwardInput& convolution) {
  return prefers_planes_for_image(with_long_rows(reference::mirrored(convolution.geometry)));
}

bool prefers_planes(const ConvolutionBackwardParameters& convolution) {
  const ConvolutionGeometry g = with_long_rows(convolution.geometry);
  return are_good(tiling_of(g), g) || g.out_channels < 8;
}

std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionForward& convolution) {
  return make_image_kernel(
      {.geometry = with_long_rows(convolution.geometry), .activation = convolution.activation});
}

std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionBackwardInput& convolution) {
  return make_image_kernel({.geometry = with_long_rows(reference::mirrored(convolution.geometry)),
                            .activation = {},
                            .mirror = true,
                            .x = 0,
                            .kernel = 1,
                            .y = 2});
}

}  // namespace troupe::model::cpu

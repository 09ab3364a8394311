#include "model/backend/cpu/plane_convolution.h"

#include <algorithm>
#include <iterator>

#include "model/backend/cpu/element_planes.h"
#include "model/backend/cpu/element_weights.h"
#include "model/backend/cpu/phase_channels.h"
#include "model/backend/cpu/plane_image.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model::cpu {
namespace {

template <class Element>
Tiling tiling_for(const ConvolutionGeometry& geometry) {
  return side_by_side(geometry, tiling_of<Element>(geometry));
}

// Sums over all taps in registers.
template <class Element>
class ManyOutputsKernel final : public PlaneImageKernel {
 public:
  explicit ManyOutputsKernel(const ImageConvolution& convolution)
      : PlaneImageKernel(convolution, tiling_for<Element>(convolution.geometry)),
        input_(g_, tiling_, g_.kernel[0], plan_),
        weights_(tiling_.points * taps(), input_.image_channels(), g_.out_channels, plan_),
        phases_(g_, convolution.mirror ? g_.out_channels : g_.in_channels, tiling_.tiles(),
                convolution.mirror ? 1 : PlaneFormat<Element>::kInPair),
        taps_(plan_.add_array<const Element*>(most_taps())),
        rows_(plan_.add_array<WeightRows>(most_taps())) {}

  double products() const override {
    const std::int64_t of_x_plane = taps() / g_.kernel[0] * input_.channels() *
                                    PlaneFormat<Element>::kChannels * g_.out_channels;
    return static_cast<double>(shares() * all_taps_inside(g_) * tiling_.points *
                               tiling_.positions) *
           static_cast<double>(of_x_plane);
  }

 private:
  void arrange(const float* weights, std::byte* scratch) const override {
    weights_.arrange(weights, scratch);
  }

  std::int64_t most_taps() const { return taps() * tiling_.parts * std::ssize(phases_.groups()); }

  void form_sums(const float* images, const Samples& samples, std::int64_t ox, std::int64_t& made,
                 const Weights& weights, std::byte* scratch) const override {
    input_.make_up_to(images, samples, ox, made, scratch);
    for (std::int64_t point = 0; point < tiling_.points; ++point) {
      const Element* of_point = weights_.of_tap(point * taps(), weights.plain, weights.scratch);
      if (!convolution_.mirror) {
        multiply(ox, point, {{0, g_.out_channels}, 0}, of_point, scratch);
        continue;
      }
      for (const PhaseChannels::Group& outputs : phases_.groups()) {
        multiply(ox, point, outputs, of_point, scratch);
      }
    }
  }

  // The sums of some outputs. A tap of the kernel is a pointer into a plane: shifting the pointer
  // by a row and a position moves the image by (ky, kz). Taps outside the image in x are left out;
  // in y and z they read the zeros around each plane. Planes of all channels are the same distance
  // apart, so one pointer serves neighbours.
  void multiply(std::int64_t ox, std::int64_t point, const PhaseChannels::Group& outputs,
                const Element* weights, std::byte* scratch) const {
    auto* taps = scratch_at<const Element*>(scratch, taps_);
    auto* rows = scratch_at<WeightRows>(scratch, rows_);
    const TapRange inside = taps_inside(g_, ox);
    std::size_t count = 0;
    for (std::int64_t kx = inside.begin; kx < inside.end; ++kx) {
      const Element* plane =
          input_.at(ox + kx - g_.pad_before[0], scratch) + point * input_.point_stride();
      for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
        for (std::int64_t kz = 0; kz < tiling_.taps_in_z; ++kz) {
          const Element* tap = plane + ky * tiling_.row_stride() + kz * tiling_.samples;
          if (phases_.are_whole()) {
            taps[count++] = tap;
            continue;
          }
          const std::int64_t row = row_of(kx, ky, kz);
          const auto add = [&](std::int64_t first, std::int64_t channels) {
            taps[count] = tap + first * input_.channel_stride();
            rows[count++] = {row + first, channels};
          };
          over_channels({kx, ky, kz}, outputs, add);
        }
      }
    }
    const std::int64_t sums = point * g_.out_channels + outputs.channels.first;
    if (phases_.are_whole()) weights += row_of(inside.begin, 0, 0) * g_.out_channels;
    multiply_planes(PlaneProduct<Element>{.taps = {taps, count},
                                          .rows = {rows, phases_.are_whole() ? 0 : count},
                                          .channels = input_.channels(),
                                          .channel_stride = input_.channel_stride(),
                                          .weights = weights + outputs.channels.first,
                                          .outputs = outputs.channels.count,
                                          .weights_stride = g_.out_channels,
                                          .positions = tiling_.positions,
                                          .sums = this->sums(scratch) + sums * tiling_.positions,
                                          .sums_stride = tiling_.positions});
  }

  // The first row of weights of a tap, if it has all channels.
  std::int64_t row_of(std::int64_t kx, std::int64_t ky, std::int64_t kz) const {
    return ((kx * g_.kernel[1] + ky) * tiling_.taps_in_z + kz) * input_.channels();
  }

  // Calls add(first, count) for the channels of the input planes that the tap of these outputs has.
  template <class Add>
  void over_channels(const Extent& tap, const PhaseChannels::Group& outputs, const Add& add) const {
    if (convolution_.mirror) {
      Extent of_kernel;  // that is not mirrored
      for (std::size_t axis = 0; axis < 3; ++axis) {
        of_kernel[axis] = g_.kernel[axis] - 1 - tap[axis];
      }
      if (outputs.has(phases_.last(of_kernel))) add(0, input_.channels());
      return;
    }
    constexpr std::int64_t kChannels = PlaneFormat<Element>::kChannels;
    for (std::int64_t part = 0; part < tiling_.parts; ++part) {
      for (const PhaseChannels::Range& range : phases_.of_tap(tap)) {
        add((part * g_.in_channels + range.first) / kChannels, range.count / kChannels);
      }
    }
  }

  const InputPlanes<Element> input_;
  const ElementWeights<Element> weights_;
  const PhaseChannels phases_;
  const std::size_t taps_, rows_;
};

// A convolution with one output channel has no outputs to fill the rows of a block with, so taps
// take their place. Each plane of the input gives, for every tap, a plane of sums over its
// channels. The output is the sum of these planes, each shifted by its tap.
template <class Element>
class OneOutputKernel final : public PlaneImageKernel {
 public:
  explicit OneOutputKernel(const ImageConvolution& convolution)
      : PlaneImageKernel(convolution, tiling_for<Element>(convolution.geometry)),
        input_(g_, tiling_, 1, plan_),
        weights_(tiling_.points, input_.image_channels(), taps(), plan_),
        taps_last_(plan_.add_floats(tiling_.points * input_.image_channels() * taps())),
        of_taps_(plan_.add_floats(g_.kernel[0] * tiling_.points * taps() * tiling_.plane)),
        planes_(plan_.add_bytes(static_cast<std::size_t>(taps()) * sizeof(const float*))) {}

  double products() const override {
    return static_cast<double>(shares() * g_.in[0] * tiling_.points * tiling_.plane *
                               PlaneFormat<Element>::kChannels) *
           static_cast<double>(input_.channels() * taps());
  }

 private:
  // From [point][tap][channel] to [point][channel][tap], as if taps were outputs.
  void arrange(const float* weights, std::byte* scratch) const override {
    auto* to = scratch_at<float>(scratch, taps_last_);
    const std::int64_t channels = input_.image_channels();
    for (std::int64_t point = 0; point < tiling_.points; ++point, weights += taps() * channels) {
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t tap = 0; tap < taps(); ++tap) *to++ = weights[tap * channels + c];
      }
    }
    weights_.arrange(scratch_at<float>(scratch, taps_last_), scratch);
  }

  void form_sums(const float* images, const Samples& samples, std::int64_t ox, std::int64_t& made,
                 const Weights& weights, std::byte* scratch) const override {
    // Each plane of the input is multiplied once, with all taps, when the first output needs it.
    // Its products stay until the last output that needs them: of_taps() keeps as many planes as
    // the kernel has taps along x.
    for (const std::int64_t needed = input_.needed_for(ox); made < needed; ++made) {
      const Element* plane = input_.make(images, samples, made, scratch, scratch);
      for (std::int64_t point = 0; point < tiling_.points; ++point) {
        const Element* channels = plane + point * input_.point_stride();
        multiply_planes(PlaneProduct<Element>{
            .taps = {&channels, 1},
            .channels = input_.channels(),
            .channel_stride = input_.channel_stride(),
            .weights = weights_.of_tap(point, scratch_at<float>(weights.scratch, taps_last_),
                                       weights.scratch),
            .outputs = taps(),
            .weights_stride = taps(),
            .positions = tiling_.plane,
            .sums = of_taps(made, point, scratch),
            .sums_stride = tiling_.plane});
      }
    }
    const TapRange inside = taps_inside(g_, ox);
    // The output is the sum over taps of the planes of products, each read from the place of its
    // tap.
    auto* planes = scratch_at<const float*>(scratch, planes_);
    for (std::int64_t point = 0; point < tiling_.points; ++point) {
      std::size_t count = 0;
      for (std::int64_t kx = inside.begin; kx < inside.end; ++kx) {
        const float* tap = of_taps(ox + kx - g_.pad_before[0], point, scratch) +
                           kx * taps() / g_.kernel[0] * tiling_.plane;
        for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
          for (std::int64_t kz = 0; kz < tiling_.taps_in_z; ++kz, tap += tiling_.plane) {
            planes[count++] = tap + ky * tiling_.row_stride() + kz * tiling_.samples;
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

  const InputPlanes<Element> input_;
  const ElementWeights<Element> weights_;
  const std::size_t taps_last_, of_taps_, planes_;
};

template <class Element>
std::unique_ptr<Kernel> make_image_kernel_of(const ImageConvolution& convolution) {
  if (convolution.geometry.out_channels == 1) {
    return std::make_unique<OneOutputKernel<Element>>(convolution);
  }
  return std::make_unique<ManyOutputsKernel<Element>>(convolution);
}

std::unique_ptr<Kernel> make_image_kernel(const ImageConvolution& convolution,
                                          Precision precision) {
  return with_element(precision, convolution.geometry.in_channels, [&](auto element) {
    return make_image_kernel_of<decltype(element)>(convolution);
  });
}

// True where tiles pay: on the smallest images they fill few of the lanes, and every further part
// of the taps adds products.
bool are_good(const Tiling& tiling, const ConvolutionGeometry& g) {
  return tiling.tiles() && tiling.parts == 1 && 2 * g.out[1] * tiling.row > tiling.positions;
}

bool prefers_planes_for_image(const ConvolutionGeometry& g) {
  return are_good(tiling_of<float>(g), g) || g.out_channels == 1;
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
  return are_good(tiling_of<float>(g), g) || g.out_channels < 8;
}

std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionForward& convolution,
                                          Precision precision) {
  return make_image_kernel(
      {.geometry = with_long_rows(convolution.geometry), .activation = convolution.activation},
      precision);
}

std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionBackwardInput& convolution,
                                          Precision precision) {
  return make_image_kernel({.geometry = with_long_rows(reference::mirrored(convolution.geometry)),
                            .activation = {},
                            .mirror = true,
                            .x = 0,
                            .kernel = 1,
                            .y = 2},
                           precision);
}

}  // namespace troupe::model::cpu

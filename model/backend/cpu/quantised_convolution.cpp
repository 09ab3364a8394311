#include "model/backend/cpu/quantised_convolution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "model/backend/cpu/int8.h"
#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/quad_vectors.h"
#include "model/backend/cpu/upsampled_forward.h"

namespace troupe::model::cpu {
namespace {

constexpr float kMost = static_cast<float>(kInt8Most);

bool is_step(float step) { return step >= std::numeric_limits<float>::min(); }

class QuantisedKernel final : public UpsampledForward {
 public:
  QuantisedKernel(const ConvolutionForward& convolution, std::vector<float> ranges)
      : UpsampledForward(convolution,
                         {1, kQuad * quads_of(with_long_rows(convolution.geometry).in_channels)}),
        ranges_(std::move(ranges)),
        quads_(quads_of(g_.in_channels)) {
    CHECK(static_cast<std::int64_t>(ranges_.size()) == g_.in_channels, "a range for each channel");
    scaled_ = plan_.add_floats(kernel_.size());
    weights_ = plan_.add_array<Int8Quad>(kernel_.taps() * quads_ * g_.out_channels);
    weight_steps_ = plan_.add_floats(find_largest_floats(g_.out_channels));
    weight_sums_ = plan_.add_array<std::uint32_t>((kernel_.taps() + 1) * g_.out_channels);
    image_ = plan_.add_array<Int8Quad>(g_.in[0] * plane_size());
    numbers_ = plan_.add_floats(g_.in_channels * planes_.plane);
    factors_ = plan_.add_floats(find_largest_floats(g_.in_channels));
    scales_ = plan_.add_floats(g_.out_channels);
    offsets_ = plan_.add_array<std::int32_t>(g_.out_channels);
    taps_ = plan_.add_bytes(sizeof(const Int8Quad*) * static_cast<std::size_t>(most_taps()));
  }

 private:
  std::int64_t plane_size() const { return quads_ * planes_.plane; }

  void arrange(const float* collapsed, std::byte* scratch) const override {
    auto* scaled = scratch_at<float>(scratch, scaled_);
    const std::int64_t rows = kernel_.taps() * g_.in_channels;
    for (std::int64_t row = 0; row < rows; ++row) {
      const float range = ranges_[static_cast<std::size_t>(row % g_.in_channels)];
      for (std::int64_t o = 0; o < g_.out_channels; ++o) {
        scaled[row * g_.out_channels + o] = collapsed[row * g_.out_channels + o] * range;
      }
    }
    auto* steps = scratch_at<float>(scratch, weight_steps_);
    find_largest(scaled, rows, g_.out_channels, steps);
    for (std::int64_t o = 0; o < g_.out_channels; ++o) steps[o] /= kMost;
    auto* sums = scratch_at<std::uint32_t>(scratch, weight_sums_);
    std::fill_n(sums, g_.out_channels, 0u);
    auto* quads = scratch_at<Int8Quad>(scratch, weights_);
    for (std::int64_t tap = 0; tap < kernel_.taps(); ++tap) {
      const std::int64_t place = tap * quads_ * g_.out_channels;
      quantise(scaled + tap * g_.in_channels * g_.out_channels, steps, quads + place);
      add_up(quads + place, sums + tap * g_.out_channels);
    }
  }

  // The weights of a tap, from [channel][output].
  void quantise(const float* scaled, const float* steps, Int8Quad* quads) const {
    for (std::int64_t c = 0; c < g_.in_channels; ++c) {
      for (std::int64_t o = 0; o < g_.out_channels; ++o) {
        const float step = steps[o];
        const float value = is_step(step) ? scaled[c * g_.out_channels + o] / step : 0.0f;
        // To the nearest, ties to even, as prepare_thread() has it. NaN has a step of NaN.
        const long whole = value == value ? std::lrint(std::clamp(value, -kMost, kMost)) : 0;
        quads[c / kQuad * g_.out_channels + o].bytes[static_cast<std::size_t>(c % kQuad)] =
            static_cast<std::uint8_t>(whole);
      }
    }
    for (std::int64_t c = g_.in_channels; c < kQuad * quads_; ++c) {
      for (std::int64_t o = 0; o < g_.out_channels; ++o) {
        quads[c / kQuad * g_.out_channels + o].bytes[static_cast<std::size_t>(c % kQuad)] = 0;
      }
    }
  }

  // Behind the sums of all weights of earlier taps those with this tap, modulo 2^32.
  void add_up(const Int8Quad* quads, std::uint32_t* sums) const {
    for (std::int64_t o = 0; o < g_.out_channels; ++o) {
      std::uint32_t sum = sums[o];
      for (std::int64_t quad = 0; quad < quads_; ++quad) {
        for (const std::uint8_t byte : quads[quad * g_.out_channels + o].bytes) {
          sum += static_cast<std::uint32_t>(static_cast<std::int8_t>(byte));
        }
      }
      sums[g_.out_channels + o] = sum;
    }
  }

  void fill_image(const float* sample, const std::byte* weights,
                  std::byte* scratch) const override {
    auto* factors = scratch_at<float>(scratch, factors_);
    find_largest(sample, cells(g_.in), g_.in_channels, factors);
    float largest = 0.0f;
    for (std::size_t c = 0; c < ranges_.size(); ++c) {
      largest = larger_magnitude(largest, factors[c] / ranges_[c]);
    }
    const float step = largest / kMost;
    for (std::size_t c = 0; c < ranges_.size(); ++c) {
      const float of_channel = step * ranges_[c];
      factors[c] = is_step(of_channel) ? 1.0f / of_channel : 0.0f;
    }
    auto* scales = scratch_at<float>(scratch, scales_);
    const auto* steps = scratch_at<float>(weights, weight_steps_);
    for (std::int64_t o = 0; o < g_.out_channels; ++o) scales[o] = step * steps[o];
    auto* numbers = scratch_at<float>(scratch, numbers_);
    for (std::int64_t ix = 0; ix < g_.in[0]; ++ix) {
      planes_.fill(g_, kernel_, sample + ix * g_.in[1] * g_.in[2] * g_.in_channels, numbers);
      to_quads(numbers, g_.in_channels, planes_.plane, factors,
               scratch_at<Int8Quad>(scratch, image_) + ix * plane_size());
    }
  }

  void multiply(const Taps& taps, const std::byte* weights, float* sums,
                std::byte* scratch) const override {
    const Int8Quad* image = scratch_at<Int8Quad>(scratch, image_);
    const auto* before =
        scratch_at<std::uint32_t>(weights, weight_sums_) + taps.first * g_.out_channels;
    const auto* behind = before + taps.count() * g_.out_channels;
    auto* offsets = scratch_at<std::int32_t>(scratch, offsets_);
    for (std::int64_t o = 0; o < g_.out_channels; ++o) {
      offsets[o] = static_cast<std::int32_t>(kInt8Zero * (before[o] - behind[o]));
    }
    multiply_planes(QuadProduct{
        .taps = places(taps, image, plane_size(), scratch_at<const Int8Quad*>(scratch, taps_)),
        .quads = quads_,
        .stride = planes_.plane,
        .weights = scratch_at<Int8Quad>(weights, weights_) + taps.first * quads_ * g_.out_channels,
        .outputs = g_.out_channels,
        .offsets = offsets,
        .scales = scratch_at<float>(scratch, scales_),
        .positions = planes_.positions,
        .sums = sums,
        .sums_stride = planes_.positions});
  }

  const std::vector<float> ranges_;
  const std::int64_t quads_;
  // For all samples: kernels times ranges, quantised, their steps, and the sums of those of all
  // taps before each one.
  std::size_t scaled_ = 0, weights_ = 0, weight_steps_ = 0, weight_sums_ = 0;
  // In one sample.
  std::size_t image_ = 0, numbers_ = 0, factors_ = 0, scales_ = 0, offsets_ = 0, taps_ = 0;
};

}  // namespace

bool can_be_quantised(const ConvolutionForward& convolution) {
  const ConvolutionGeometry& g = convolution.geometry;
  return g.in_channels > 1 && g.out_channels > 1 &&
         cells(g.kernel) * g.in_channels <= kMostProductsInt8;
}

std::unique_ptr<Kernel> make_quantised_kernel(const ConvolutionForward& convolution,
                                              std::vector<float> ranges) {
  return std::make_unique<QuantisedKernel>(convolution, std::move(ranges));
}

}  // namespace troupe::model::cpu

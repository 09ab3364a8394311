#include <algorithm>
#include <array>

#include "model/backend/cpu/coarse_planes.h"
#include "model/backend/cpu/element_planes.h"
#include "model/backend/cpu/element_weights.h"
#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_transforms.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/sample_kernel.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/cpu/upsampled_convolution.h"

namespace troupe::model::cpu {
namespace {

// dx[c] = sum over phases and coarse taps j of dy[phase, c - j] collapsed[phase][j] transposed.
template <class Element>
class BackwardInputKernel final : public SampleKernel {
 public:
  explicit BackwardInputKernel(const ConvolutionGeometry& geometry)
      : g_(with_long_rows(geometry)),
        kernel_(g_),
        lead_{kernel_.axis(1).most_taps - 1, kernel_.axis(2).most_taps - 1},
        row_(g_.in[2] + lead_[1]),
        positions_(whole_lanes(g_.in[1] * row_)),
        plane_(whole_lanes(positions_ + lead_[0] * row_ + lead_[1])),
        elements_(g_.out_channels * plane_, plan_),
        weights_(all_taps(), g_.out_channels, g_.in_channels, plan_) {
    collapsed_ = plan_.add_floats(kernel_.size());
    transposed_ = plan_.add_floats(kernel_.size());
    block_ = plan_.add_bytes(static_cast<std::size_t>(g_.in_channels * g_.out_channels) *
                             sizeof(double));
    derivatives_ = plan_.add_array<Element>((g_.out[0] + 1) * phases_in_plane() * phase_size());
    taps_ = plan_.add_bytes(sizeof(const Element*) * static_cast<std::size_t>(all_taps()));
    sums_ = plan_.add_floats(g_.in_channels * positions_ + kTransposed);
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  double products() const override {
    return static_cast<double>(g_.in[0] * kernel_.axis(0).all_taps) *
           plane_products(g_, kernel_, positions_,
                          channels() * PlaneFormat<Element>::kChannels * g_.in_channels);
  }

 private:
  std::int64_t shares() const override { return g_.batch; }

  void prepare(const KernelCall& call) const override {
    kernel_.collapse(call.operand<const float>(1), scratch_at<double>(call.scratch, block_),
                     scratch_at<float>(call.scratch, collapsed_));
    transpose(call.scratch);
    weights_.arrange(scratch_at<float>(call.scratch, transposed_), call.scratch);
  }

  // The weights stand in the call's scratch memory.
  void run_share(const KernelCall& call, std::int64_t n, std::byte* scratch) const override {
    std::fill_n(phase_plane(g_.out[0], 0, 0, scratch), phases_in_plane() * phase_size(), Element{});
    fill_derivatives(call.operand<const float>(0) + n * cells(g_.out) * g_.out_channels, scratch);
    float* dx = call.operand<float>(2) + n * cells(g_.in) * g_.in_channels;
    for (std::int64_t c = 0; c < g_.in[0]; ++c) {
      multiply(c, call.scratch, scratch);
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

  std::int64_t all_taps() const {
    return kernel_.axis(0).all_taps * kernel_.axis(1).all_taps * kernel_.axis(2).all_taps;
  }
  std::int64_t phases_in_plane() const { return kernel_.axis(1).factor * kernel_.axis(2).factor; }
  std::int64_t channels() const { return elements_of<Element>(g_.out_channels); }
  std::int64_t phase_size() const { return channels() * plane_; }
  Element* phase_plane(std::int64_t ox, std::int64_t fy, std::int64_t fz,
                       std::byte* scratch) const {
    return scratch_at<Element>(scratch, derivatives_) +
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
      for_each_pair(kernel_.axis(1).factor, kernel_.axis(2).factor,
                    [&](std::int64_t fy, std::int64_t fz) {
                      Element* phase = phase_plane(ox, fy, fz, scratch);
                      fill_phase(g_, kernel_, fy, fz, lead_, planes, plane,
                                 elements_.numbers(phase, scratch));
                      elements_.make_inputs({false, g_.out_channels, plane_}, phase, scratch);
                    });
    }
  }

  // The sums of one x plane of dx. One plane of zeros stands for all planes beyond the image.
  void multiply(std::int64_t c, const std::byte* weights, std::byte* scratch) const {
    auto* taps = scratch_at<const Element*>(scratch, taps_);
    std::size_t count = 0;
    for_each_x_tap([&](std::int64_t fx, std::int64_t jx) {
      const std::int64_t place = kernel_.axis(0).output(fx, c - jx);
      const std::int64_t ox = place < 0 || place >= g_.out[0] ? g_.out[0] : place;
      for_each_pair(
          kernel_.axis(1).factor, kernel_.axis(2).factor, [&](std::int64_t fy, std::int64_t fz) {
            const Element* plane = phase_plane(ox, fy, fz, scratch);
            for_each_pair(kernel_.axis(1).at(fy).taps, kernel_.axis(2).at(fz).taps,
                          [&](std::int64_t jy, std::int64_t jz) {
                            taps[count++] = plane + (lead_[0] - jy) * row_ + lead_[1] - jz;
                          });
          });
    });
    multiply_planes(PlaneProduct<Element>{
        .taps = {taps, count},
        .channels = channels(),
        .channel_stride = plane_,
        .weights = weights_.of_tap(0, scratch_at<float>(weights, transposed_), weights),
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
  const ElementPlanes<Element> elements_;
  const ElementWeights<Element> weights_;
  std::size_t collapsed_ = 0, transposed_ = 0, block_ = 0, derivatives_ = 0, taps_ = 0, sums_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionBackwardInput& convolution,
                                              Precision precision) {
  return with_element(
      precision, convolution.geometry.out_channels, [&](auto element) -> std::unique_ptr<Kernel> {
        return std::make_unique<BackwardInputKernel<decltype(element)>>(convolution.geometry);
      });
}

}  // namespace troupe::model::cpu

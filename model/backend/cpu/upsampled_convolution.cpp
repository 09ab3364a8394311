#include "model/backend/cpu/upsampled_convolution.h"

#include <algorithm>

#include "model/backend/cpu/coarse_planes.h"
#include "model/backend/cpu/element_planes.h"
#include "model/backend/cpu/element_weights.h"
#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_transforms.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/sample_kernel.h"
#include "model/backend/cpu/scratch.h"

namespace troupe::model::cpu {
namespace {

// Element: float or Bfloat16Pair.
template <class Element>
class ForwardKernel final : public SampleKernel {
 public:
  explicit ForwardKernel(const ConvolutionForward& convolution)
      : g_(with_long_rows(convolution.geometry)),
        activation_(convolution.activation),
        kernel_(g_),
        planes_(kernel_, PlaneFormat<Element>::kInLane),
        elements_(g_.in_channels * planes_.plane, plan_),
        weights_(kernel_.taps(), g_.in_channels, g_.out_channels, plan_) {
    collapsed_ = plan_.add_floats(kernel_.size());
    block_ = plan_.add_bytes(static_cast<std::size_t>(g_.in_channels * g_.out_channels) *
                             sizeof(double));
    image_ = plan_.add_array<Element>(g_.in[0] * channels() * planes_.plane);
    sums_ = plan_.add_floats(kernel_.axis(2).factor * g_.out_channels * planes_.positions +
                             kTransposed);
    taps_ = plan_.add_bytes(
        sizeof(const Element*) *
        static_cast<std::size_t>(kernel_.axis(0).most_taps * kernel_.axis(1).most_taps *
                                 kernel_.axis(2).most_taps));
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  double products() const override {
    return x_products(g_, kernel_.axis(0)) *
           plane_products(g_, kernel_, planes_.positions,
                          channels() * PlaneFormat<Element>::kChannels * g_.out_channels);
  }

 private:
  std::int64_t samples() const override { return g_.batch; }

  void prepare(const KernelCall& call) const override {
    auto* collapsed = scratch_at<float>(call.scratch, collapsed_);
    kernel_.collapse(call.operand<const float>(1), scratch_at<double>(call.scratch, block_),
                     collapsed);
    weights_.arrange(collapsed, call.scratch);
  }

  // The weights stand in the call's scratch memory.
  void run_sample(const KernelCall& call, std::int64_t n, std::byte* scratch) const override {
    const float* bias = g_.bias ? call.operand<const float>(2) : nullptr;
    const AxisPhases& x = kernel_.axis(0);
    const std::int64_t output_plane = g_.out[1] * g_.out[2] * g_.out_channels;
    fill_image(call.operand<const float>(0) + n * cells(g_.in) * g_.in_channels, scratch);
    // The output planes of a phase read the coarse planes c to c + taps - 1. The rows of one phase
    // along y are finished before the next phase, as the sums of all phases along z of one (fx, c,
    // fy) fill the memory for sums.
    for (std::int64_t fx = 0; fx < x.factor; ++fx) {
      for (std::int64_t i = 0; i < x.at(fx).count; ++i) {
        const std::int64_t c = x.at(fx).first + i;
        float* y = call.operand<float>(3) + (n * g_.out[0] + x.output(fx, c)) * output_plane;
        for (std::int64_t fy = 0; fy < kernel_.axis(1).factor; ++fy) {
          multiply({fx, c, fy}, call.scratch, scratch);
          finish(fy, bias, y, scratch);
        }
      }
    }
  }

  std::int64_t channels() const { return elements_of<Element>(g_.in_channels); }
  Element* image_plane(std::int64_t ix, std::byte* scratch) const {
    return scratch_at<Element>(scratch, image_) + ix * channels() * planes_.plane;
  }

  void fill_image(const float* sample, std::byte* scratch) const {
    for (std::int64_t ix = 0; ix < g_.in[0]; ++ix) {
      Element* plane = image_plane(ix, scratch);
      planes_.fill(g_, kernel_, sample + ix * g_.in[1] * g_.in[2] * g_.in_channels,
                   elements_.numbers(plane, scratch));
      elements_.make_inputs({false, g_.in_channels, planes_.plane}, plane, scratch);
    }
  }

  struct PlaneOfPhases {
    std::int64_t fx, c, fy;  // plane c of the phase along x, and the phase along y
  };
  // Sums [phase along z][output][position].
  void multiply(const PlaneOfPhases& plane_of, const std::byte* weights, std::byte* scratch) const {
    const auto [fx, c, fy] = plane_of;
    const std::int64_t x_taps = kernel_.axis(0).at(fx).taps;
    // Taps along x that lie outside the image are left out, and their weights with them. Along y
    // and z the planes have zeros around the image.
    const std::int64_t begin = std::clamp<std::int64_t>(-c, 0, x_taps);
    const std::int64_t end = std::max(begin, std::min(x_taps, g_.in[0] - c));
    auto* taps = scratch_at<const Element*>(scratch, taps_);
    const std::int64_t y_taps = kernel_.axis(1).at(fy).taps;
    for (std::int64_t fz = 0; fz < kernel_.axis(2).factor; ++fz) {
      const std::int64_t z_taps = kernel_.axis(2).at(fz).taps;
      std::size_t count = 0;
      for (std::int64_t jx = begin; jx < end; ++jx) {
        const Element* plane = image_plane(c + jx, scratch);
        for_each_pair(y_taps, z_taps, [&](std::int64_t jy, std::int64_t jz) {
          taps[count++] = plane + jy * planes_.row + jz;
        });
      }
      const std::int64_t first_tap = kernel_.first_tap(fx, fy, fz) + begin * y_taps * z_taps;
      multiply_planes(PlaneProduct<Element>{
          .taps = {taps, count},
          .channels = channels(),
          .channel_stride = planes_.plane,
          .weights = weights_.of_tap(first_tap, scratch_at<float>(weights, collapsed_), weights),
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

  const ConvolutionGeometry g_;
  const Activation activation_;
  const CollapsedKernel kernel_;
  const CoarsePlanes planes_;
  ScratchPlan plan_;
  const ElementPlanes<Element> elements_;
  const ElementWeights<Element> weights_;
  std::size_t collapsed_ = 0, block_ = 0, image_ = 0, sums_ = 0, taps_ = 0;
};

}  // namespace

bool upsamples(const ConvolutionGeometry& geometry) { return geometry.upsample != Extent{1, 1, 1}; }

std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionForward& convolution,
                                              Precision precision) {
  if (in_pairs(precision, convolution.geometry.in_channels)) {
    return std::make_unique<ForwardKernel<Bfloat16Pair>>(convolution);
  }
  return std::make_unique<ForwardKernel<float>>(convolution);
}

}  // namespace troupe::model::cpu

#include "model/backend/cpu/upsampled_convolution.h"

#include "model/backend/cpu/element_planes.h"
#include "model/backend/cpu/element_weights.h"
#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/upsampled_forward.h"

namespace troupe::model::cpu {
namespace {

template <class Element>
class ForwardKernel final : public UpsampledForward {
 public:
  explicit ForwardKernel(const ConvolutionForward& convolution)
      : UpsampledForward(convolution, {PlaneFormat<Element>::kInLane,
                                       channels_of(with_long_rows(convolution.geometry)) *
                                           PlaneFormat<Element>::kChannels}),
        elements_(g_.in_channels * planes_.plane, plan_),
        weights_(kernel_.taps(), g_.in_channels, g_.out_channels, plan_) {
    image_ = plan_.add_array<Element>(g_.in[0] * plane_size());
    taps_ = plan_.add_bytes(sizeof(const Element*) * static_cast<std::size_t>(most_taps()));
  }

 private:
  static std::int64_t channels_of(const ConvolutionGeometry& g) {
    return elements_of<Element>(g.in_channels);
  }
  std::int64_t plane_size() const { return channels_of(g_) * planes_.plane; }

  void arrange(const float* collapsed, std::byte* scratch) const override {
    weights_.arrange(collapsed, scratch);
  }

  void fill_image(const float* sample, const std::byte*, std::byte* scratch) const override {
    for (std::int64_t ix = 0; ix < g_.in[0]; ++ix) {
      Element* plane = scratch_at<Element>(scratch, image_) + ix * plane_size();
      planes_.fill(g_, kernel_, sample + ix * g_.in[1] * g_.in[2] * g_.in_channels,
                   elements_.numbers(plane, scratch));
      elements_.make_inputs({false, g_.in_channels, planes_.plane}, plane, scratch);
    }
  }

  void multiply(const Taps& taps, const std::byte* weights, float* sums,
                std::byte* scratch) const override {
    const Element* image = scratch_at<Element>(scratch, image_);
    multiply_planes(PlaneProduct<Element>{
        .taps = places(taps, image, plane_size(), scratch_at<const Element*>(scratch, taps_)),
        .channels = channels_of(g_),
        .channel_stride = planes_.plane,
        .weights = weights_.of_tap(taps.first, collapsed(weights), weights),
        .outputs = g_.out_channels,
        .weights_stride = g_.out_channels,
        .positions = planes_.positions,
        .sums = sums,
        .sums_stride = planes_.positions});
  }

  const ElementPlanes<Element> elements_;
  const ElementWeights<Element> weights_;
  std::size_t image_ = 0, taps_ = 0;
};

}  // namespace

bool upsamples(const ConvolutionGeometry& geometry) { return geometry.upsample != Extent{1, 1, 1}; }

std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionForward& convolution,
                                              Precision precision) {
  return with_element(precision, convolution.geometry.in_channels,
                      [&](auto element) -> std::unique_ptr<Kernel> {
                        return std::make_unique<ForwardKernel<decltype(element)>>(convolution);
                      });
}

}  // namespace troupe::model::cpu

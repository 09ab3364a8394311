#include <algorithm>

#include "model/backend/cpu/channel_sums.h"
#include "model/backend/cpu/coarse_planes.h"
#include "model/backend/cpu/element_planes.h"
#include "model/backend/cpu/plane_dots.h"
#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/cpu/upsampled_convolution.h"
#include "model/backend/kernel_call.h"

namespace troupe::model::cpu {
namespace {

// Element: float or Bfloat16.
template <class Element>
class ParameterKernel final : public Kernel {
 public:
  explicit ParameterKernel(const ConvolutionGeometry& geometry)
      : g_(with_long_rows(geometry)),
        kernel_(g_),
        planes_(kernel_, PlaneFormat<Element>::kInLane),
        elements_(std::max(g_.in_channels * planes_.plane, phase_size()), plan_),
        outputs_(g_.batch * cells(g_.out), g_.out_channels) {
    gradient_ = plan_.add_floats(kernel_.size());
    block_ = plan_.add_array<double>(
        std::max(g_.in_channels * g_.out_channels, g_.bias ? outputs_.chains() : 0));
    image_ = plan_.add_array<Element>(g_.in[0] * g_.in_channels * planes_.plane);
    std::int64_t most_planes = 0;
    for (const Phase& phase : kernel_.axis(0).phases) {
      most_planes = std::max(most_planes, phase.count);
    }
    derivatives_ = plan_.add_array<Element>(most_planes * phase_size());
    pairs_ = plan_.add_bytes(2 * sizeof(const Element*) * static_cast<std::size_t>(most_planes));
    most_pairs_ = static_cast<std::size_t>(most_planes);
    rows_ = plan_.add_bytes(sizeof(DotRow) *
                            static_cast<std::size_t>(kernel_.axis(1).most_taps *
                                                     kernel_.axis(2).most_taps * g_.in_channels));
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  double products() const override {
    return x_products(g_, kernel_.axis(0)) *
           plane_products(g_, kernel_, planes_.positions, g_.in_channels * g_.out_channels);
  }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    run_together(operands, random, Crew(scratch));
  }
  // Threads divide the planes of the image, then the phases. Every phase writes to its own part of
  // the collapsed gradient, so the order of a sum never depends on the threads. The image and the
  // gradient are in the caller's scratch memory.
  void run_together(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& all) const override {
    const Crew crew = all.for_work(products(), 2 * g_.batch);
    std::byte* const scratch = crew.scratch();
    const KernelCall call{operands, random, scratch};
    auto* gradient = scratch_at<float>(scratch, gradient_);
    std::fill_n(gradient, kernel_.size(), 0.0f);
    const auto* dy = call.operand<const float>(1);
    const std::int64_t y_phases = kernel_.axis(1).factor, z_phases = kernel_.axis(2).factor;
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      const float* sample = call.operand<const float>(0) + n * cells(g_.in) * g_.in_channels;
      crew.run(g_.in[0], [&](std::int64_t ix, int thread) {
        Element* plane = image_plane(ix, scratch);
        planes_.fill(g_, kernel_, sample + ix * g_.in[1] * g_.in[2] * g_.in_channels,
                     elements_.numbers(plane, crew.scratch(thread)));
        elements_.make_inputs({false, g_.in_channels, planes_.plane}, plane, crew.scratch(thread));
      });
      crew.run(kernel_.axis(0).factor * y_phases * z_phases, [&](std::int64_t phase, int thread) {
        add_phase({phase / (y_phases * z_phases), phase / z_phases % y_phases, phase % z_phases},
                  dy + n * cells(g_.out) * g_.out_channels, scratch, crew.scratch(thread));
      });
    }
    auto* sums = scratch_at<double>(scratch, block_);
    kernel_.expand(gradient, sums, call.operand<float>(2));
    if (g_.bias) {
      sum_channels(outputs_, dy, sums, call.operand<float>(3));
    }
  }

 private:
  std::int64_t phase_size() const { return g_.out_channels * planes_.positions; }
  Element* image_plane(std::int64_t ix, std::byte* scratch) const {
    return scratch_at<Element>(scratch, image_) + ix * g_.in_channels * planes_.plane;
  }

  // Adds one sample to the gradient of the phase `f`. For each coarse tap along x, the planes of
  // the image and of the derivatives that meet are listed as pairs, and all taps along y and z are
  // summed over them in one call. `shared` holds the image and the gradient, `scratch` all else.
  void add_phase(const Extent& f, const float* dy, std::byte* shared, std::byte* scratch) const {
    const Phase& x = kernel_.axis(0).at(f[0]);
    auto* derivatives = scratch_at<Element>(scratch, derivatives_);
    const Rearrangement planes{.plane_rows = kernel_.axis(1).output_length(),
                               .row = planes_.row,
                               .plane = planes_.positions};
    for (std::int64_t i = 0; i < x.count; ++i) {
      const std::int64_t ox = kernel_.axis(0).output(f[0], x.first + i);
      Element* of_plane = derivatives + i * phase_size();
      fill_phase(g_, kernel_, f[1], f[2], {kernel_.axis(1).lead(), kernel_.axis(2).lead()}, planes,
                 dy + ox * g_.out[1] * g_.out[2] * g_.out_channels,
                 elements_.numbers(of_plane, scratch));
      elements_.make_inputs({false, g_.out_channels, planes_.positions}, of_plane, scratch);
    }
    const std::int64_t y_taps = kernel_.axis(1).at(f[1]).taps,
                       z_taps = kernel_.axis(2).at(f[2]).taps;
    auto* rows = scratch_at<DotRow>(scratch, rows_);
    std::size_t count = 0;
    for_each_pair(y_taps, z_taps, [&](std::int64_t jy, std::int64_t jz) {
      for (std::int64_t c = 0; c < g_.in_channels; ++c) {
        const std::int64_t sums = static_cast<std::int64_t>(count) * g_.out_channels;
        rows[count++] = {jy * planes_.row + jz + c * planes_.plane, sums};
      }
    });
    auto* left = scratch_at<const Element*>(scratch, pairs_);
    const Element** right = left + most_pairs_;
    for (std::int64_t jx = 0; jx < x.taps; ++jx) {
      std::size_t pairs = 0;
      for (std::int64_t i = 0; i < x.count; ++i) {
        const std::int64_t ix = x.first + i + jx;
        if (ix < 0 || ix >= g_.in[0]) continue;
        left[pairs] = image_plane(ix, shared);
        right[pairs++] = derivatives + i * phase_size();
      }
      add_plane_dots(PlaneDots<Element>{
          .left = {left, pairs},
          .right = {right, pairs},
          .rows = {rows, count},
          .outputs = g_.out_channels,
          .right_stride = planes_.positions,
          .positions = planes_.positions,
          .sums = scratch_at<float>(shared, gradient_) + kernel_.place(f[0], f[1], f[2]) +
                  jx * y_taps * z_taps * g_.in_channels * g_.out_channels});
    }
  }

  const ConvolutionGeometry g_;
  const CollapsedKernel kernel_;
  const CoarsePlanes planes_;
  ScratchPlan plan_;
  const ElementPlanes<Element> elements_;
  const ChannelSums outputs_;  // of derivatives, for the bias
  std::size_t gradient_ = 0, block_ = 0, image_ = 0, derivatives_ = 0, pairs_ = 0, rows_ = 0;
  std::size_t most_pairs_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_upsampled_kernel(const ConvolutionBackwardParameters& convolution,
                                              Precision precision) {
  if (precision == Precision::kFp32) {
    return std::make_unique<ParameterKernel<float>>(convolution.geometry);
  }
  return std::make_unique<ParameterKernel<Bfloat16>>(convolution.geometry);
}

}  // namespace troupe::model::cpu

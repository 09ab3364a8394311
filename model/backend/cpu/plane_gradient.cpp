#include <algorithm>
#include <array>

#include "model/backend/cpu/channel_sums.h"
#include "model/backend/cpu/input_planes.h"
#include "model/backend/cpu/plane_convolution.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/rearrange.h"
#include "model/backend/cpu/winograd.h"
#include "model/backend/kernel_call.h"

namespace troupe::model::cpu {
namespace {

// x planes of the output whose products with an image are summed at once.
constexpr std::int64_t kPlanesAtOnce = 8;

// Element: float or Bfloat16.
template <class Element>
class ParameterKernel final : public Kernel {
 public:
  explicit ParameterKernel(const ConvolutionGeometry& geometry)
      : g_(with_long_rows(geometry)),
        tiling_(tiling_of<Element>(g_)),
        input_(g_, tiling_, kPlanesAtOnce + g_.kernel[0] - 1, plan_),
        elements_(derivative_size(), plan_),
        outputs_(g_.batch * cells(g_.out), g_.out_channels) {
    derivatives_ = plan_.add_array<Element>(kPlanesAtOnce * derivative_size());
    gradient_ = plan_.add_floats(tiling_.points * gradient_size());
    rows_ = plan_.add_bytes(static_cast<std::size_t>(rows()) * sizeof(std::int64_t));
    bias_sums_ = plan_.add_array<double>(g_.bias ? outputs_.chains() : 0);
  }
  ParameterKernel(const ParameterKernel&) = delete;
  ParameterKernel& operator=(const ParameterKernel&) = delete;

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  double products() const override {
    return static_cast<double>(g_.batch * all_taps_inside(g_) * tiling_.points *
                               tiling_.positions) *
           static_cast<double>(rows() * g_.out_channels);
  }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    run_together(operands, random, Crew(scratch));
  }
  // Threads divide the planes while these are made, then the points and taps along x. The memory
  // beside a plane that is being made is the thread's scratch memory; all else is in the caller's.
  void run_together(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& all) const override {
    // The gradient of a tap is the sum, over all positions, of the image shifted by the tap times
    // the derivative. Planes are taken in groups, so that the image planes of a group are made once
    // for all taps along x. Each (point, kx) has sums of its own and is added to by one thread at a
    // time, group after group: the order of a sum never depends on the threads.
    const std::int64_t groups = (g_.out[0] + kPlanesAtOnce - 1) / kPlanesAtOnce;
    const Crew crew = all.for_work(products(), 2 * g_.batch * groups);
    std::byte* const scratch = crew.scratch();
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    const auto* dy = call.operand<const float>(1);
    auto* gradient = scratch_at<float>(scratch, gradient_);
    std::fill_n(gradient, tiling_.points * gradient_size(), 0.0f);
    list_rows(scratch);
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      std::int64_t made = 0;
      for (std::int64_t ox = 0; ox < g_.out[0]; ox += kPlanesAtOnce) {
        const std::int64_t planes = std::min(kPlanesAtOnce, g_.out[0] - ox);
        make_planes(x + n * cells(g_.in) * g_.in_channels, made,
                    dy + (n * g_.out[0] + ox) * plane_cells() * g_.out_channels, {ox, planes},
                    crew);
        crew.run(tiling_.points * g_.kernel[0], [&](std::int64_t i, int) {
          add_planes({ox, planes}, i / g_.kernel[0], i % g_.kernel[0], scratch);
        });
      }
    }
    write_gradient(gradient, call.operand<float>(2));
    if (g_.bias) {
      sum_channels(outputs_, dy, scratch_at<double>(scratch, bias_sums_), call.operand<float>(3));
    }
  }

 private:
  struct Group {
    std::int64_t first, planes;  // x planes of the output
  };

  // Makes the planes of the derivatives `dy` of a group, and the planes of the image that the group
  // needs and that are not `made` yet.
  void make_planes(const float* sample, std::int64_t& made, const float* dy, const Group& group,
                   const Crew& crew) const {
    const std::int64_t inputs =
        std::max<std::int64_t>(0, input_.needed_for(group.first + group.planes - 1) - made);
    crew.run(inputs + group.planes, [&](std::int64_t i, int thread) {
      if (i < inputs) {
        input_.make(sample, made + i, crew.scratch(), crew.scratch(thread));
      } else {
        const std::int64_t plane = i - inputs;
        make_derivatives(dy + plane * plane_cells() * g_.out_channels,
                         derivatives(plane, crew.scratch()), crew.scratch(thread));
      }
    });
    made += inputs;
  }

  std::int64_t plane_cells() const { return g_.out[1] * g_.out[2]; }
  // Elements of one x plane: [point][output][position].
  std::int64_t derivative_size() const {
    return tiling_.points * g_.out_channels * tiling_.positions;
  }
  // Rows of one kx: (ky, kz without tiles, part of the taps, channel).
  std::int64_t rows() const { return g_.kernel[1] * tiling_.taps_in_z * input_.channels(); }
  // Sums of one point: (kx, row, output).
  std::int64_t gradient_size() const { return g_.kernel[0] * rows() * g_.out_channels; }

  Element* derivatives(std::int64_t i, std::byte* scratch) const {
    return scratch_at<Element>(scratch, derivatives_) + i * derivative_size();
  }

  // Places of all rows in an input plane.
  void list_rows(std::byte* scratch) const {
    auto* rows = scratch_at<std::int64_t>(scratch, rows_);
    for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
      for (std::int64_t kz = 0; kz < tiling_.taps_in_z; ++kz) {
        for (std::int64_t c = 0; c < input_.channels(); ++c) {
          *rows++ = ky * tiling_.row + kz + c * input_.channel_stride();
        }
      }
    }
  }

  void make_derivatives(const float* dy, Element* derivatives, std::byte* scratch) const {
    float* numbers = elements_.numbers(derivatives, scratch);
    const std::int64_t stride = g_.out_channels * tiling_.positions;
    rearrange({.rows = g_.out[1],
               .row_cells = g_.out[2],
               .channels = g_.out_channels,
               .row_stride = g_.out[2] * g_.out_channels,
               .cell_stride = g_.out_channels,
               .plane_rows = g_.out[1],
               .numbers = tiling_.outputs,
               .step = tiling_.outputs,
               .row = tiling_.row,
               .plane = tiling_.positions,
               .number_stride = stride},
              dy, numbers);
    elements_.make_derivatives({tiling_.tiles(), g_.out_channels, tiling_.positions},
                               static_cast<int>(tiling_.outputs), derivatives, scratch);
  }

  // Adds the products of a group for one point and one tap along x. Pairs whose image plane lies
  // outside the image have no products.
  void add_planes(const Group& group, std::int64_t point, std::int64_t kx,
                  std::byte* scratch) const {
    std::array<const Element*, kPlanesAtOnce> left{}, right{};
    std::size_t pairs = 0;
    for (std::int64_t i = 0; i < group.planes; ++i) {
      const std::int64_t ix = group.first + i + kx - g_.pad_before[0];
      if (ix < 0 || ix >= g_.in[0]) continue;
      left[pairs] = input_.at(ix, scratch) + point * input_.point_stride();
      right[pairs++] = derivatives(i, scratch) + point * g_.out_channels * tiling_.positions;
    }
    add_plane_dots(PlaneDots<Element>{
        .left = {left.data(), pairs},
        .right = {right.data(), pairs},
        .rows = {scratch_at<std::int64_t>(scratch, rows_), static_cast<std::size_t>(rows())},
        .outputs = g_.out_channels,
        .right_stride = tiling_.positions,
        .positions = tiling_.positions,
        .sums = scratch_at<float>(scratch, gradient_) + point * gradient_size() +
                kx * rows() * g_.out_channels,
        .sums_stride = g_.out_channels});
  }

  // With tiles the sums are those of the points; the transposed transform G^T turns them into the
  // gradients of the taps. This is done once per run, in double.
  void write_gradient(const float* gradient, float* dkernel) const {
    if (!tiling_.tiles()) {
      std::copy_n(gradient, gradient_size(), dkernel);
      return;
    }
    const auto transform =
        tap_transform(static_cast<int>(tiling_.points), static_cast<int>(tiling_.taps_of_part));
    const std::int64_t block = g_.in_channels * g_.out_channels;
    const std::int64_t columns = g_.kernel[0] * g_.kernel[1] * tiling_.parts;
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t tap = 0; tap < tiling_.taps_of_part; ++tap) {
        for (std::int64_t i = 0; i < block; ++i) {
          double sum = 0.0;
          for (std::int64_t point = 0; point < tiling_.points; ++point) {
            sum += transform[static_cast<std::size_t>(tap)][static_cast<std::size_t>(point)] *
                   static_cast<double>(gradient[point * gradient_size() + column * block + i]);
          }
          *dkernel++ = static_cast<float>(sum);
        }
      }
    }
  }

  const ConvolutionGeometry g_;
  const Tiling tiling_;
  ScratchPlan plan_;
  const InputPlanes<Element> input_;
  const ElementPlanes<Element> elements_;  // of one plane of derivatives
  const ChannelSums outputs_;              // of derivatives, for the bias
  std::size_t derivatives_ = 0, gradient_ = 0, rows_ = 0, bias_sums_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_plane_kernel(const ConvolutionBackwardParameters& convolution,
                                          Precision precision) {
  if (precision == Precision::kFp32) {
    return std::make_unique<ParameterKernel<float>>(convolution.geometry);
  }
  return std::make_unique<ParameterKernel<Bfloat16>>(convolution.geometry);
}

}  // namespace troupe::model::cpu

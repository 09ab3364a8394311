#include <algorithm>
#include <array>
#include <span>

#include "model/backend/cpu/channel_dots.h"
#include "model/backend/cpu/channel_sums.h"
#include "model/backend/cpu/input_planes.h"
#include "model/backend/cpu/phase_channels.h"
#include "model/backend/cpu/plane_convolution.h"
#include "model/backend/cpu/plane_dots.h"
#include "model/backend/cpu/plane_transforms.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/rearrange.h"
#include "model/backend/cpu/winograd.h"
#include "model/backend/kernel_call.h"

namespace troupe::model::cpu {
namespace {

// x planes of the output whose products with an image are summed at once.
constexpr std::int64_t kPlanesAtOnce = 8;
// Samples whose sums are added to the gradient at once, where lanes run over outputs.
constexpr std::int64_t kSamplesAtOnce = 4;

// Words (channel_dots.h) of a plane of the output.
template <class Element>
std::int64_t words_of(const ConvolutionGeometry& g, const Tiling& tiling) {
  constexpr std::int64_t kInLane = PlaneFormat<Element>::kInLane;
  return (g.out[1] * tiling.row + kInLane - 1) / kInLane;
}

// True if lanes over outputs take less time than lanes over positions. A vector of sixteen sums
// takes a multiply-add for each plane and word, and an addition for each lane of positions that is
// used, the last one to the gradient. Sixteen sums over positions take a multiply-add for each
// plane and sixteen words, and six more steps in which their lanes change places and are added.
template <class Element>
bool prefers_channels(const ConvolutionGeometry& g, const Tiling& tiling) {
  const std::int64_t planes = std::min(kPlanesAtOnce, g.out[0]);
  const std::int64_t words = words_of<Element>(g, tiling);
  const std::int64_t used = std::min(words, kPositionLanes);
  const std::int64_t over_outputs = (planes * words + used + 2) * whole_lanes(g.out_channels);
  const std::int64_t over_positions =
      kPositionLanes * (planes * (whole_lanes(words) / kPositionLanes) + 6) * g.out_channels;
  return over_outputs < over_positions;
}

// Element: float or Bfloat16.
template <class Element>
class ParameterKernel final : public Kernel {
 public:
  explicit ParameterKernel(const ConvolutionGeometry& geometry)
      : g_(with_long_rows(geometry)),
        tiling_(tiling_of<Element>(g_)),
        words_(prefers_channels<Element>(g_, tiling_) ? words_of<Element>(g_, tiling_) : 0),
        samples_(words_ > 0 && g_.out[0] <= kPlanesAtOnce ? std::min(kSamplesAtOnce, g_.batch) : 1),
        held_(std::min(kPlanesAtOnce + g_.kernel[0] - 1, g_.in[0])),
        input_(g_, tiling_, samples_ * held_, plan_),
        phases_(g_, g_.in_channels, tiling_.tiles(), 1),
        elements_(derivative_size(), plan_),
        outputs_(g_.batch * cells(g_.out), g_.out_channels) {
    const std::int64_t planes = samples_ * std::min(kPlanesAtOnce, g_.out[0]);
    if (words_ > 0) {
      apart_ = plan_.add_array<Element>(derivative_size());
      derivatives_ = plan_.add_floats(planes * channel_words());
    } else {
      derivatives_ = plan_.add_array<Element>(planes * derivative_size());
    }
    gradient_ = plan_.add_floats(tiling_.points * gradient_size());
    rows_ = plan_.add_array<DotRow>(kTapsInX * rows());
    if (words_ > 0) listed_ = plan_.add_array<DotWord<Element>>(planes * words_);
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
    const Crew crew = all.for_work(products(), 2 * shares_of(g_.batch, samples_) * groups);
    std::byte* const scratch = crew.scratch();
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    const auto* dy = call.operand<const float>(1);
    auto* gradient = scratch_at<float>(scratch, gradient_);
    std::fill_n(gradient, tiling_.points * gradient_size(), 0.0f);
    const Rows rows_of = list_rows(scratch);
    for (std::int64_t n = 0; n < g_.batch; n += samples_) {
      std::int64_t made = 0;
      for (std::int64_t ox = 0; ox < g_.out[0]; ox += kPlanesAtOnce) {
        const Group group{
            {n, std::min(samples_, g_.batch - n)}, ox, std::min(kPlanesAtOnce, g_.out[0] - ox)};
        make_planes(x, made, dy, group, crew);
        crew.run(tiling_.points * g_.kernel[0], [&](std::int64_t i, int thread) {
          add_planes(group, i / g_.kernel[0], i % g_.kernel[0], rows_of, scratch,
                     crew.scratch(thread));
        });
      }
    }
    write_gradient(gradient, call.operand<float>(2));
    if (g_.bias) {
      sum_channels(outputs_, dy, scratch_at<double>(scratch, bias_sums_), call.operand<float>(3));
    }
  }

 private:
  static constexpr std::int64_t kInLane = PlaneFormat<Element>::kInLane;
  static constexpr std::size_t kMostPairs = kPlanesAtOnce * kSamplesAtOnce;

  // x planes of the output, of some samples.
  struct Group {
    Samples samples;
    std::int64_t first, planes;
  };

  // Makes the planes of the derivatives of a group, and the planes of the images that the group
  // needs and that are not `made` yet. Both operands are the whole micro-batch's.
  void make_planes(const float* x, std::int64_t& made, const float* dy, const Group& group,
                   const Crew& crew) const {
    const std::int64_t inputs =
        std::max<std::int64_t>(0, input_.needed_for(group.first + group.planes - 1) - made);
    const std::int64_t each = inputs + group.planes;
    crew.run(group.samples.count * each, [&](std::int64_t i, int thread) {
      const std::int64_t s = i / each, n = group.samples.first + s, plane = i % each - inputs;
      if (plane < 0) {
        const std::int64_t ix = made + i % each;
        input_.make(x, {n, 1}, ix, input(s, ix, crew.scratch()), crew.scratch(thread));
      } else {
        const std::int64_t ox = group.first + plane;
        make_derivatives(dy + (n * g_.out[0] + ox) * plane_cells() * g_.out_channels,
                         s * group.planes + plane, crew.scratch(), crew.scratch(thread));
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

  // Words of one x plane, with lanes over outputs: [point][word][output].
  std::int64_t channel_words() const {
    return tiling_.points * words_ * whole_lanes(g_.out_channels);
  }

  // Plane `ix` of sample s of those at once.
  Element* input(std::int64_t s, std::int64_t ix, std::byte* scratch) const {
    return input_.at(s * held_ + ix % held_, scratch);
  }
  Element* derivatives(std::int64_t i, std::byte* scratch) const {
    return scratch_at<Element>(scratch, derivatives_) + i * derivative_size();
  }
  float* words(std::int64_t i, std::byte* scratch) const {
    return scratch_at<float>(scratch, derivatives_) + i * channel_words();
  }

  // The rows that have real taps, without and with the last tap along x.
  static constexpr std::int64_t kTapsInX = 2;
  using Rows = std::array<std::span<const DotRow>, kTapsInX>;
  Rows list_rows(std::byte* scratch) const {
    Rows rows;
    auto* to = scratch_at<DotRow>(scratch, rows_);
    for (std::size_t last = 0; last < rows.size(); ++last) {
      const DotRow* first = to;
      for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
        for (std::int64_t kz = 0; kz < tiling_.taps_in_z; ++kz) {
          to = list_rows({last == 1 ? g_.kernel[0] - 1 : -1, ky, kz}, to);
        }
      }
      rows[last] = {first, to};
    }
    return rows;
  }
  DotRow* list_rows(const Extent& tap, DotRow* to) const {
    const std::int64_t place = tap[1] * tiling_.row + tap[2];
    const std::int64_t row = (tap[1] * tiling_.taps_in_z + tap[2]) * input_.channels();
    for (std::int64_t part = 0; part < tiling_.parts; ++part) {
      for (const PhaseChannels::Range& range : phases_.of_tap(tap)) {
        for (std::int64_t i = 0; i < range.count; ++i) {
          const std::int64_t c = part * g_.in_channels + range.first + i;
          *to++ = {place + c * input_.channel_stride(), (row + c) * g_.out_channels};
        }
      }
    }
    return to;
  }

  // Plane i of those at once; `beside` is scratch memory for the work.
  void make_derivatives(const float* dy, std::int64_t i, std::byte* scratch,
                        std::byte* beside) const {
    if (words_ == 0) return make_derivatives(dy, derivatives(i, scratch), beside);
    make_derivatives(dy, scratch_at<Element>(beside, apart_), beside);
    const auto* apart = scratch_at<float>(beside, apart_);
    const std::int64_t plane = tiling_.positions / kInLane, lanes = whole_lanes(g_.out_channels);
    float* to = words(i, scratch);
    if (lanes > g_.out_channels) std::fill_n(to, channel_words(), 0.0f);
    for (std::int64_t point = 0; point < tiling_.points; ++point) {
      planes_to_cells({words_, g_.out_channels, lanes, plane},
                      apart + point * g_.out_channels * plane, to + point * words_ * lanes);
    }
  }

  void make_derivatives(const float* dy, Element* derivatives, std::byte* scratch) const {
    const std::int64_t stride = g_.out_channels * tiling_.positions;
    const Rearrangement cells{.rows = g_.out[1],
                              .row_cells = g_.out[2],
                              .channels = g_.out_channels,
                              .row_stride = g_.out[2] * g_.out_channels,
                              .cell_stride = g_.out_channels,
                              .plane_rows = g_.out[1],
                              .numbers = tiling_.outputs,
                              .step = tiling_.outputs,
                              .row = tiling_.row,
                              .plane = tiling_.positions,
                              .number_stride = stride};
    if constexpr (!std::is_same_v<Element, float>) {
      if (tiling_.tiles() && prefers_cells(g_.out_channels)) {
        return derivative_cells_to(cells, dy, stride, derivatives);
      }
    }
    rearrange(cells, dy, elements_.numbers(derivatives, scratch));
    elements_.make_derivatives({tiling_.tiles(), g_.out_channels, tiling_.positions},
                               static_cast<int>(tiling_.outputs), derivatives, scratch);
  }

  // Adds the products of a group for one point and one tap along x. Pairs whose image plane lies
  // outside the image have no products.
  void add_planes(const Group& group, std::int64_t point, std::int64_t kx, const Rows& rows_of,
                  std::byte* scratch, std::byte* beside) const {
    std::array<const Element*, kMostPairs> left{}, right{};
    std::array<const float*, kMostPairs> right_words{};
    std::array<std::size_t, kSamplesAtOnce> ends{};
    std::size_t pairs = 0;
    for (std::int64_t s = 0; s < group.samples.count; ++s) {
      for (std::int64_t i = 0; i < group.planes; ++i) {
        const std::int64_t ix = group.first + i + kx - g_.pad_before[0];
        if (ix < 0 || ix >= g_.in[0]) continue;
        const std::int64_t plane = s * group.planes + i;
        left[pairs] = input(s, ix, scratch) + point * input_.point_stride();
        if (words_ > 0) {
          right_words[pairs++] =
              words(plane, scratch) + point * words_ * whole_lanes(g_.out_channels);
        } else {
          right[pairs++] =
              derivatives(plane, scratch) + point * g_.out_channels * tiling_.positions;
        }
      }
      ends[static_cast<std::size_t>(s)] = pairs;
    }
    const std::span<const DotRow> places = rows_of[kx == g_.kernel[0] - 1 ? 1 : 0];
    float* sums = scratch_at<float>(scratch, gradient_) + point * gradient_size() +
                  kx * rows() * g_.out_channels;
    if (words_ > 0) {
      // Cells behind the outputs of a row are zero.
      const bool in_rows = kInLane == 1 && !tiling_.tiles();
      add_channel_dots(
          ChannelDots<Element>{.left = {left.data(), pairs},
                               .right = {right_words.data(), pairs},
                               .ends = {ends.data(), static_cast<std::size_t>(group.samples.count)},
                               .rows = places,
                               .outputs = g_.out_channels,
                               .right_stride = whole_lanes(g_.out_channels),
                               .words = words_,
                               .row_words = in_rows ? tiling_.row : 1,
                               .used_words = in_rows ? g_.out[2] : 1,
                               .memory = scratch_at<DotWord<Element>>(beside, listed_),
                               .sums = sums});
    } else {
      add_plane_dots(PlaneDots<Element>{.left = {left.data(), pairs},
                                        .right = {right.data(), pairs},
                                        .rows = places,
                                        .outputs = g_.out_channels,
                                        .right_stride = tiling_.positions,
                                        .positions = tiling_.positions,
                                        .sums = sums});
    }
  }

  // With tiles the sums are those of the points; the transposed transform G^T turns them into the
  // gradients of the taps. This is done once per run, in double.
  void write_gradient(const float* gradient, float* dkernel) const {
    if (!tiling_.tiles()) {
      std::copy_n(gradient, gradient_size(), dkernel);
      return;
    }
    const auto of_taps = tap_transform(static_cast<int>(tiling_.taps_of_part));
    const std::int64_t block = g_.in_channels * g_.out_channels;
    WeighedRows rows{.weights = {},
                     .from_rows = tiling_.points,
                     .from_stride = gradient_size(),
                     .to_rows = tiling_.taps_of_part,
                     .to_stride = block,
                     .count = block};
    std::copy(of_taps.begin(), of_taps.end(), rows.weights.begin());
    const std::int64_t columns = g_.kernel[0] * g_.kernel[1] * tiling_.parts;
    for (std::int64_t column = 0; column < columns; ++column) {
      add_weighed(rows, gradient + column * block, dkernel + column * tiling_.taps_of_part * block);
    }
  }

  const ConvolutionGeometry g_;
  const Tiling tiling_;
  ScratchPlan plan_;
  const std::int64_t words_;    // of a plane, with lanes over outputs; else 0
  const std::int64_t samples_;  // at once
  const std::int64_t held_;     // planes of each sample's image
  const InputPlanes<Element> input_;
  const PhaseChannels phases_;
  const ElementPlanes<Element> elements_;  // of one plane of derivatives
  const ChannelSums outputs_;              // of derivatives, for the bias
  std::size_t derivatives_ = 0, apart_ = 0, gradient_ = 0, rows_ = 0, listed_ = 0, bias_sums_ = 0;
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

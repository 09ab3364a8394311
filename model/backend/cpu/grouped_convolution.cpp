#include "model/backend/cpu/grouped_convolution.h"

#include <algorithm>
#include <array>
#include <vector>

#include "model/backend/cpu/grouped_vectors.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/sample_kernel.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model::cpu {
namespace {

constexpr std::int64_t kMostSpread = std::int64_t{1} << 22;  // floats of an image in one group

// Images of fewer axes are the same memory with their axes moved to the end, where rows are long.
GroupedGeometry with_long_rows(GroupedGeometry g) {
  for (int times = 0; times < 2; ++times) {
    if (g.in[2] != 1 || g.out[2] != 1 || g.kernel[2] != 1 || g.pad_before[2] != 0) break;
    for (Extent* e : {&g.in, &g.out, &g.kernel, &g.stride, &g.dilation}) *e = {1, (*e)[0], (*e)[1]};
    g.pad_before = {0, g.pad_before[0], g.pad_before[1]};
  }
  return g;
}

// An image behind a convolution in groups, or behind its transpose: `targets`, each a sum over taps
// of `sources`.
class GroupedImage {
 public:
  GroupedImage(const GroupedGeometry& g, bool transposed)
      : targets(transposed ? g.in : g.out),
        sources(transposed ? g.out : g.in),
        kernel(g.kernel),
        target_channels(transposed ? g.in_channels : g.out_channels),
        source_channels(transposed ? g.out_channels : g.in_channels),
        depth(source_channels / g.groups),
        channels((target_channels + kChannelLanes - 1) / kChannelLanes * kChannelLanes),
        spread_{g.groups, depth, target_channels / g.groups, channels} {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      for (std::int64_t tap = 0; tap < kernel[axis]; ++tap) {
        for (std::int64_t t = 0; t < targets[axis]; ++t) {
          partners_[axis].push_back(transposed ? output_cell(g, axis, t, tap)
                                               : input_cell(g, axis, t, tap));
        }
      }
    }
    for (const std::int64_t partner : partners_[2]) {
      places_.push_back((partner < 0 ? sources[2] : partner) * cell());
    }
  }

  // The cell of the sources that a tap of a target meets along an axis; -1: none.
  std::int64_t partner(std::size_t axis, std::int64_t target, std::int64_t tap) const {
    return partners_[axis][static_cast<std::size_t>(tap * targets[axis] + target)];
  }
  // Floats from the start of a row to the partner along z, or to a cell of zeros: [tap][target].
  const std::vector<std::int64_t>& places() const { return places_; }

  // Floats of a source, spread; of a row of them, with a cell of zeros behind it; of all rows.
  std::int64_t cell() const { return depth * channels; }
  std::int64_t row() const { return (sources[2] + 1) * cell(); }
  std::int64_t spread_size() const { return sources[0] * sources[1] * row() + kChannelLanes; }

  void spread(const float* sample, float* to) const {
    for (std::int64_t i = 0; i < sources[0] * sources[1]; ++i, to += row()) {
      spread_cells(spread_, sample + i * sources[2] * source_channels, sources[2], to);
      std::fill_n(to + sources[2] * cell(), cell(), 0.0f);
    }
  }

  const Extent targets, sources, kernel;
  const std::int64_t target_channels, source_channels;
  const std::int64_t depth;     // source channels of a group
  const std::int64_t channels;  // of targets, rounded up to whole vectors

 private:
  static std::int64_t input_cell(const GroupedGeometry& g, std::size_t axis, std::int64_t out,
                                 std::int64_t tap) {
    const std::int64_t in = out * g.stride[axis] + tap * g.dilation[axis] - g.pad_before[axis];
    return in >= 0 && in < g.in[axis] ? in : -1;
  }
  static std::int64_t output_cell(const GroupedGeometry& g, std::size_t axis, std::int64_t in,
                                  std::int64_t tap) {
    const std::int64_t from = in + g.pad_before[axis] - tap * g.dilation[axis];
    if (from < 0 || from % g.stride[axis] != 0) return -1;
    return from / g.stride[axis] < g.out[axis] ? from / g.stride[axis] : -1;
  }

  const SpreadCells spread_;
  std::array<std::vector<std::int64_t>, 3> partners_;
  std::vector<std::int64_t> places_;
};

// Forward, or backward to the input.
class ImageKernel final : public SampleKernel {
 public:
  ImageKernel(const GroupedGeometry& geometry, bool transposed)
      : g_(with_long_rows(geometry)), transposed_(transposed), image_(g_, transposed) {
    weights_ = plan_.add_floats(cells(g_.kernel) * image_.cell());
    spread_ = plan_.add_floats(image_.spread_size());
    const auto pairs = static_cast<std::size_t>(g_.kernel[0] * g_.kernel[1]);
    rows_ = plan_.add_bytes(pairs * sizeof(const float*));
    taps_ = plan_.add_bytes(pairs * sizeof(const float*));
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  double products() const override {
    return static_cast<double>(g_.batch * cells(image_.targets)) *
           static_cast<double>(cells(g_.kernel) * image_.cell());
  }

 private:
  std::int64_t shares() const override { return g_.batch; }

  // Weights as targets meet them: [tap][source channel of the group][target channel].
  void prepare(const KernelCall& call) const override {
    const auto* kernel = call.operand<const float>(1);
    auto* to = scratch_at<float>(call.scratch, weights_);
    const std::int64_t group_in = g_.in_channels / g_.groups;
    const std::int64_t group_out = g_.out_channels / g_.groups;
    for (std::int64_t tap = 0; tap < cells(g_.kernel); ++tap) {
      for (std::int64_t j = 0; j < image_.depth; ++j, to += image_.channels) {
        std::fill_n(to, image_.channels, 0.0f);
        for (std::int64_t c = 0; c < image_.target_channels; ++c) {
          to[c] = transposed_
                      ? kernel[c % group_in * g_.out_channels + c / group_in * group_out + j]
                      : kernel[j * g_.out_channels + c];
        }
      }
      kernel += group_in * g_.out_channels;
    }
  }

  void run_share(const KernelCall& call, std::int64_t n, std::byte* scratch) const override {
    auto* spread = scratch_at<float>(scratch, spread_);
    image_.spread(call.operand<const float>(0) + n * cells(image_.sources) * image_.source_channels,
                  spread);
    const std::int64_t row = image_.targets[2] * image_.target_channels;
    float* to = call.operand<float>(transposed_ ? 2 : 3) +
                n * cells(image_.targets) * image_.target_channels;
    for (std::int64_t x = 0; x < image_.targets[0]; ++x) {
      for (std::int64_t y = 0; y < image_.targets[1]; ++y, to += row) {
        make_row(call, x, y, spread, scratch, to);
      }
    }
  }

  void make_row(const KernelCall& call, std::int64_t x, std::int64_t y, const float* spread,
                std::byte* scratch, float* to) const {
    auto* rows = scratch_at<const float*>(scratch, rows_);
    auto* taps = scratch_at<const float*>(scratch, taps_);
    const auto* weights = scratch_at<float>(call.scratch, weights_);
    std::size_t pairs = 0;
    for (std::int64_t kx = 0; kx < g_.kernel[0]; ++kx) {
      for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
        const std::int64_t from_x = image_.partner(0, x, kx), from_y = image_.partner(1, y, ky);
        if (from_x < 0 || from_y < 0) continue;
        rows[pairs] = spread + (from_x * image_.sources[1] + from_y) * image_.row();
        taps[pairs++] = weights + (kx * g_.kernel[1] + ky) * g_.kernel[2] * image_.cell();
      }
    }
    sum_row({.rows = {rows, pairs},
             .weights = {taps, pairs},
             .places = image_.places().data(),
             .taps = g_.kernel[2],
             .cells = image_.targets[2],
             .depth = image_.depth,
             .channels = image_.channels,
             .real_channels = image_.target_channels,
             .bias = !transposed_ && g_.bias ? call.operand<const float>(2) : nullptr,
             .to = to});
  }

  const GroupedGeometry g_;
  const bool transposed_;
  const GroupedImage image_;
  ScratchPlan plan_;
  std::size_t weights_ = 0;                       // for all samples
  std::size_t spread_ = 0, rows_ = 0, taps_ = 0;  // in one sample
};

class ParameterKernel final : public Kernel {
 public:
  explicit ParameterKernel(const GroupedGeometry& geometry)
      : g_(with_long_rows(geometry)), image_(g_, false) {
    sums_ = plan_.add_array<double>(cells(g_.kernel) * image_.cell());
    spread_ = plan_.add_floats(image_.spread_size());
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    const auto* dy = call.operand<const float>(1);
    auto* sums = scratch_at<double>(scratch, sums_);
    auto* spread = scratch_at<float>(scratch, spread_);
    std::fill_n(sums, cells(g_.kernel) * image_.cell(), 0.0);
    for (std::int64_t n = 0; n < g_.batch; ++n) {
      image_.spread(x + n * cells(g_.in) * g_.in_channels, spread);
      for (std::int64_t row = 0; row < g_.out[0] * g_.out[1]; ++row) {
        add_row(row / g_.out[1], row % g_.out[1], spread,
                dy + (n * g_.out[0] * g_.out[1] + row) * g_.out[2] * g_.out_channels, sums);
      }
    }
    auto* to = call.operand<float>(2);
    for (std::int64_t i = 0; i < cells(g_.kernel) * image_.depth; ++i) {
      for (std::int64_t c = 0; c < g_.out_channels; ++c) {
        *to++ = static_cast<float>(sums[i * image_.channels + c]);
      }
    }
  }

 private:
  // Cells of a row whose tap lies in the image.
  struct Inside {
    std::int64_t first, count;
  };
  Inside inside(std::int64_t tap) const {
    std::int64_t first = 0, end = g_.out[2];
    while (first < end && image_.partner(2, first, tap) < 0) ++first;
    while (end > first && image_.partner(2, end - 1, tap) < 0) --end;
    return {first, end - first};
  }

  void add_row(std::int64_t x, std::int64_t y, const float* spread, const float* dy,
               double* sums) const {
    for (std::int64_t kx = 0; kx < g_.kernel[0]; ++kx) {
      for (std::int64_t ky = 0; ky < g_.kernel[1]; ++ky) {
        const std::int64_t from_x = image_.partner(0, x, kx), from_y = image_.partner(1, y, ky);
        if (from_x < 0 || from_y < 0) continue;
        for (std::int64_t kz = 0; kz < g_.kernel[2]; ++kz) {
          const Inside cells = inside(kz);
          add_products(
              {.row = spread + (from_x * g_.in[1] + from_y) * image_.row(),
               .dy = dy + cells.first * g_.out_channels,
               .places = {image_.places().data() + kz * g_.out[2] + cells.first,
                          static_cast<std::size_t>(cells.count)},
               .depth = image_.depth,
               .channels = image_.channels,
               .real_channels = g_.out_channels,
               .sums = sums + ((kx * g_.kernel[1] + ky) * g_.kernel[2] + kz) * image_.cell()});
        }
      }
    }
  }

  const GroupedGeometry g_;
  const GroupedImage image_;
  ScratchPlan plan_;
  std::size_t sums_ = 0, spread_ = 0;
};

// Hosts without the vectors' instructions use the reference, and so do large images in one group,
// which would be spread to as many times their size as a target has channels.
bool needs_reference(const GroupedGeometry& g, bool transposed) {
  if (!plane_vectors_supported()) return true;
  return g.groups == 1 && GroupedImage(with_long_rows(g), transposed).spread_size() > kMostSpread;
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const GroupedConvolutionForward& convolution) {
  const GroupedGeometry& g = convolution.geometry;
  if (needs_reference(g, false)) return reference::make_kernel<float>(convolution);
  return std::make_unique<ImageKernel>(g, false);
}

std::unique_ptr<Kernel> make_kernel(const GroupedConvolutionBackwardInput& convolution) {
  const GroupedGeometry& g = convolution.geometry;
  if (needs_reference(g, true)) return reference::make_kernel<float>(convolution);
  return std::make_unique<ImageKernel>(g, true);
}

std::unique_ptr<Kernel> make_kernel(const GroupedConvolutionBackwardParameters& convolution) {
  const GroupedGeometry& g = convolution.geometry;
  if (needs_reference(g, false)) return reference::make_kernel<float>(convolution);
  return std::make_unique<ParameterKernel>(g);
}

}  // namespace troupe::model::cpu

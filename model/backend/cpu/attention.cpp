#include "model/backend/cpu/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/backend/cpu/activations.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/sample_kernel.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/reference/kernels.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/attention.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#ifndef TROUPE_ATTENTION_SHAPES
#define TROUPE_ATTENTION_SHAPES
namespace troupe::model::cpu {

// Queries of a block stand beside each other, those of the last one behind the cells included.
constexpr std::int64_t kBlock = 8;

// A head of a sample in double: each part is [cell][stride], of which `width` are values and the
// others 0. Weights of a block are [cell][query].
struct HeadShape {
  std::int64_t cells = 0, width = 0;

  std::int64_t stride() const { return (width + kBlock - 1) / kBlock * kBlock; }
  std::int64_t blocks() const { return (cells + kBlock - 1) / kBlock; }
  std::int64_t of_part() const { return cells * stride(); }
  std::int64_t of_block() const { return cells * kBlock; }
};

}  // namespace troupe::model::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::CappedTag<double, kBlock>;
using DoubleVector = hn::Vec<Doubles>;
constexpr std::int64_t kLanes = hn::MaxLanes(Doubles());
constexpr std::int64_t kAtOnce = 4;  // sums that do not wait for each other

// Calls several(i) for kAtOnce numbers from i on, and one(i) for the rest.
template <class Several, class One>
HWY_INLINE void over(std::int64_t count, const Several& several, const One& one) {
  std::int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) several(i);
  for (; i < count; ++i) one(i);
}

// Dots of a block's queries, [width][query], with each cell of a part.
void dot_block(const HeadShape& head, const double* queries, const double* part, double* dots) {
  const Doubles tag;
  const std::int64_t stride = head.stride();
  for (std::int64_t lane = 0; lane < kBlock; lane += kLanes) {
    over(
        head.cells,
        [&](std::int64_t cell) {
          std::array<DoubleVector, kAtOnce> sums;
          sums.fill(hn::Zero(tag));
          for (std::int64_t d = 0; d < head.width; ++d) {
            const auto query = hn::Load(tag, queries + d * kBlock + lane);
            for (std::int64_t k = 0; k < kAtOnce; ++k) {
              const auto value = hn::Set(tag, part[(cell + k) * stride + d]);
              sums[k] = hn::Add(sums[k], hn::Mul(query, value));
            }
          }
          for (std::int64_t k = 0; k < kAtOnce; ++k) {
            hn::Store(sums[k], tag, dots + (cell + k) * kBlock + lane);
          }
        },
        [&](std::int64_t cell) {
          auto sum = hn::Zero(tag);
          for (std::int64_t d = 0; d < head.width; ++d) {
            const auto query = hn::Load(tag, queries + d * kBlock + lane);
            sum = hn::Add(sum, hn::Mul(query, hn::Set(tag, part[cell * stride + d])));
          }
          hn::Store(sum, tag, dots + cell * kBlock + lane);
        });
  }
}

// Dots become what they are times the scale, less the largest of that for each query.
void centre_block(const HeadShape& head, double scale, double* dots) {
  const Doubles tag;
  const auto factor = hn::Set(tag, scale);
  for (std::int64_t lane = 0; lane < kBlock; lane += kLanes) {
    auto largest = hn::Mul(factor, hn::Load(tag, dots + lane));
    for (std::int64_t cell = 0; cell < head.cells; ++cell) {
      const auto value = hn::Mul(factor, hn::Load(tag, dots + cell * kBlock + lane));
      hn::Store(value, tag, dots + cell * kBlock + lane);
      // As reference::largest_of() has it: NaN stays.
      const auto is_larger = hn::AndNot(hn::Le(value, largest), hn::Eq(largest, largest));
      largest = hn::IfThenElse(is_larger, value, largest);
    }
    for (std::int64_t cell = 0; cell < head.cells; ++cell) {
      double* place = dots + cell * kBlock + lane;
      hn::Store(hn::Sub(hn::Load(tag, place), largest), tag, place);
    }
  }
}

// Powers become weights, whose sum for each query is one.
void divide_block(const HeadShape& head, double* powers) {
  const Doubles tag;
  for (std::int64_t lane = 0; lane < kBlock; lane += kLanes) {
    auto sum = hn::Zero(tag);
    for (std::int64_t cell = 0; cell < head.cells; ++cell) {
      sum = hn::Add(sum, hn::Load(tag, powers + cell * kBlock + lane));
    }
    for (std::int64_t cell = 0; cell < head.cells; ++cell) {
      double* place = powers + cell * kBlock + lane;
      hn::Store(hn::Div(hn::Load(tag, place), sum), tag, place);
    }
  }
}

// For each query of a block the sum over cells of weight times a part's values: [width][query].
void gather_block(const HeadShape& head, const double* weights, const double* part, double* sums) {
  const Doubles tag;
  const std::int64_t stride = head.stride();
  for (std::int64_t lane = 0; lane < kBlock; lane += kLanes) {
    // `stride` is a multiple of kAtOnce.
    for (std::int64_t d = 0; d < head.width; d += kAtOnce) {
      std::array<DoubleVector, kAtOnce> all;
      all.fill(hn::Zero(tag));
      for (std::int64_t cell = 0; cell < head.cells; ++cell) {
        const auto weight = hn::Load(tag, weights + cell * kBlock + lane);
        for (std::int64_t k = 0; k < kAtOnce; ++k) {
          all[k] = hn::Add(all[k], hn::Mul(weight, hn::Set(tag, part[cell * stride + d + k])));
        }
      }
      for (std::int64_t k = 0; k < kAtOnce; ++k) {
        hn::Store(all[k], tag, sums + (d + k) * kBlock + lane);
      }
    }
  }
}

// Derivatives of weights become those of dots.
void slope_block(const HeadShape& head, const double* weights, double* slopes) {
  const Doubles tag;
  for (std::int64_t lane = 0; lane < kBlock; lane += kLanes) {
    auto mean = hn::Zero(tag);
    for (std::int64_t cell = 0; cell < head.cells; ++cell) {
      const std::int64_t i = cell * kBlock + lane;
      mean = hn::Add(mean, hn::Mul(hn::Load(tag, weights + i), hn::Load(tag, slopes + i)));
    }
    for (std::int64_t cell = 0; cell < head.cells; ++cell) {
      const std::int64_t i = cell * kBlock + lane;
      const auto centred = hn::Sub(hn::Load(tag, slopes + i), mean);
      hn::Store(hn::Mul(hn::Load(tag, weights + i), centred), tag, slopes + i);
    }
  }
}

// For each cell the sum over queries of weight, of all blocks, times a part's values.
void gather_cells(const HeadShape& head, const double* weights, const double* part, double* sums) {
  const Doubles tag;
  const std::int64_t stride = head.stride();
  const auto weight_of = [&](std::int64_t query, std::int64_t cell) {
    const std::int64_t block = query / kBlock;
    return hn::Set(tag, weights[block * head.of_block() + cell * kBlock + query % kBlock]);
  };
  for (std::int64_t d = 0; d < stride; d += kLanes) {
    over(
        head.cells,
        [&](std::int64_t cell) {
          std::array<DoubleVector, kAtOnce> all;
          all.fill(hn::Zero(tag));
          for (std::int64_t query = 0; query < head.cells; ++query) {
            const auto value = hn::Load(tag, part + query * stride + d);
            for (std::int64_t k = 0; k < kAtOnce; ++k) {
              all[k] = hn::Add(all[k], hn::Mul(weight_of(query, cell + k), value));
            }
          }
          for (std::int64_t k = 0; k < kAtOnce; ++k) {
            hn::Store(all[k], tag, sums + (cell + k) * stride + d);
          }
        },
        [&](std::int64_t cell) {
          auto sum = hn::Zero(tag);
          for (std::int64_t query = 0; query < head.cells; ++query) {
            const auto value = hn::Load(tag, part + query * stride + d);
            sum = hn::Add(sum, hn::Mul(weight_of(query, cell), value));
          }
          hn::Store(sum, tag, sums + cell * stride + d);
        });
  }
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(dot_block);
HWY_EXPORT(centre_block);
HWY_EXPORT(divide_block);
HWY_EXPORT(gather_block);
HWY_EXPORT(slope_block);
HWY_EXPORT(gather_cells);

namespace {

// Queries, keys, values and derivatives of one head, in double, and what is computed of them.
class HeadKernel : public SampleKernel {
 public:
  HeadKernel(std::int64_t batch, std::int64_t cells, std::int64_t heads, std::int64_t width)
      : batch_(batch),
        heads_(heads),
        head_{cells, width},
        scale_(1.0 / std::sqrt(static_cast<double>(width))) {
    for (std::size_t* place : {&queries_, &keys_, &values_}) {
      *place = plan_.add_array<double>(head_.of_part());
    }
    for (std::size_t* place : {&block_, &sums_}) {
      *place = plan_.add_array<double>(head_.stride() * kBlock);
    }
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

 protected:
  // Copies what stands `step` apart in a sample.
  void take(const float* from, std::int64_t step, double* part) const {
    for (std::int64_t cell = 0; cell < head_.cells; ++cell) {
      double* to = part + cell * head_.stride();
      for (std::int64_t d = 0; d < head_.width; ++d) {
        to[d] = static_cast<double>(from[cell * step + d]);
      }
      std::fill(to + head_.width, to + head_.stride(), 0.0);
    }
  }
  // Queries, keys and values of a share.
  void take_all(const KernelCall& call, std::int64_t share, std::byte* scratch) const {
    const float* from = call.operand<const float>(0) + at(share, 3);
    for (const std::size_t place : {queries_, keys_, values_}) {
      take(from, 3 * channels(), scratch_at<double>(scratch, place));
      from += channels();
    }
  }
  // A block of a part, as [width][query].
  const double* block_of(const double* part, std::int64_t block, std::byte* scratch) const {
    auto* queries = scratch_at<double>(scratch, block_);
    const std::int64_t first = block * kBlock;
    for (std::int64_t i = 0; i < kBlock; ++i) {
      for (std::int64_t d = 0; d < head_.width; ++d) {
        const bool is_cell = first + i < head_.cells;
        queries[d * kBlock + i] = is_cell ? part[(first + i) * head_.stride() + d] : 0.0;
      }
    }
    return queries;
  }
  void weigh(std::int64_t block, std::byte* scratch, double* weights) const {
    const auto* queries = block_of(scratch_at<double>(scratch, queries_), block, scratch);
    HWY_DYNAMIC_DISPATCH(dot_block)(head_, queries, scratch_at<double>(scratch, keys_), weights);
    HWY_DYNAMIC_DISPATCH(centre_block)(head_, scale_, weights);
    exponentials(weights, head_.of_block());
    HWY_DYNAMIC_DISPATCH(divide_block)(head_, weights);
  }
  // Sums of a block over cells, times a factor, to where they stand `step` apart.
  void gather(std::int64_t block, const double* weights, const double* part, double factor,
              std::byte* scratch, float* to, std::int64_t step) const {
    auto* sums = scratch_at<double>(scratch, sums_);
    HWY_DYNAMIC_DISPATCH(gather_block)(head_, weights, part, sums);
    const std::int64_t first = block * kBlock, end = std::min(first + kBlock, head_.cells);
    for (std::int64_t cell = first; cell < end; ++cell) {
      for (std::int64_t d = 0; d < head_.width; ++d) {
        to[cell * step + d] = static_cast<float>(sums[d * kBlock + cell - first] * factor);
      }
    }
  }

  std::int64_t channels() const { return heads_ * head_.width; }
  // Where a share begins in an array of so many parts.
  std::int64_t at(std::int64_t share, std::int64_t parts) const {
    return share / heads_ * head_.cells * parts * channels() + share % heads_ * head_.width;
  }
  std::int64_t shares() const override { return batch_ * heads_; }
  void prepare(const KernelCall&) const override {}
  double products_in(int rounds) const {
    const auto blocks = static_cast<double>(head_.blocks() * head_.of_block() * head_.stride());
    return rounds * static_cast<double>(shares()) * blocks;
  }

  const std::int64_t batch_, heads_;
  const HeadShape head_;
  const double scale_;
  ScratchPlan plan_;
  std::size_t queries_ = 0, keys_ = 0, values_ = 0, block_ = 0, sums_ = 0;
};

class ForwardKernel final : public HeadKernel {
 public:
  explicit ForwardKernel(const AttentionForward& a)
      : HeadKernel(a.batch, a.cells, a.heads, a.width) {
    weights_ = plan_.add_array<double>(head_.of_block());
  }

  double products() const override { return products_in(2); }

 private:
  void run_share(const KernelCall& call, std::int64_t share, std::byte* scratch) const override {
    take_all(call, share, scratch);
    auto* weights = scratch_at<double>(scratch, weights_);
    float* y = call.operand<float>(1) + at(share, 1);
    for (std::int64_t block = 0; block < head_.blocks(); ++block) {
      weigh(block, scratch, weights);
      gather(block, weights, scratch_at<double>(scratch, values_), 1.0, scratch, y, channels());
    }
  }

  std::size_t weights_ = 0;
};

// As the reference derives them.
class BackwardKernel final : public HeadKernel {
 public:
  explicit BackwardKernel(const AttentionBackward& a)
      : HeadKernel(a.batch, a.cells, a.heads, a.width) {
    derivatives_ = plan_.add_array<double>(head_.of_part());
    of_cells_ = plan_.add_array<double>(head_.of_part());
    for (std::size_t* place : {&weights_, &slopes_}) {
      *place = plan_.add_array<double>(head_.blocks() * head_.of_block());
    }
  }

  double products() const override { return products_in(5); }

 private:
  void run_share(const KernelCall& call, std::int64_t share, std::byte* scratch) const override {
    take_all(call, share, scratch);
    const auto doubles = [&](std::size_t place) { return scratch_at<double>(scratch, place); };
    take(call.operand<const float>(1) + at(share, 1), channels(), doubles(derivatives_));
    float* to = call.operand<float>(2) + at(share, 3);
    for (std::int64_t block = 0; block < head_.blocks(); ++block) {
      double* weights = doubles(weights_) + block * head_.of_block();
      double* slopes = doubles(slopes_) + block * head_.of_block();
      weigh(block, scratch, weights);
      const double* derivatives = block_of(doubles(derivatives_), block, scratch);
      HWY_DYNAMIC_DISPATCH(dot_block)(head_, derivatives, doubles(values_), slopes);
      HWY_DYNAMIC_DISPATCH(slope_block)(head_, weights, slopes);
      gather(block, slopes, doubles(keys_), scale_, scratch, to, 3 * channels());
    }
    gather_all(doubles(slopes_), doubles(queries_), scale_, scratch, to + channels());
    gather_all(doubles(weights_), doubles(derivatives_), 1.0, scratch, to + 2 * channels());
  }
  void gather_all(const double* weights, const double* part, double factor, std::byte* scratch,
                  float* to) const {
    auto* sums = scratch_at<double>(scratch, of_cells_);
    HWY_DYNAMIC_DISPATCH(gather_cells)(head_, weights, part, sums);
    for (std::int64_t cell = 0; cell < head_.cells; ++cell) {
      for (std::int64_t d = 0; d < head_.width; ++d) {
        to[cell * 3 * channels() + d] =
            static_cast<float>(sums[cell * head_.stride() + d] * factor);
      }
    }
  }

  std::size_t derivatives_ = 0, of_cells_ = 0, weights_ = 0, slopes_ = 0;
};

// Hosts without the vectors' instructions use the reference.
template <class Ours, class Attention>
std::unique_ptr<Kernel> choose(const Attention& attention) {
  if (plane_vectors_supported()) return std::make_unique<Ours>(attention);
  return reference::make_kernel<float>(attention);
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const AttentionForward& attention) {
  return choose<ForwardKernel>(attention);
}

std::unique_ptr<Kernel> make_kernel(const AttentionBackward& attention) {
  return choose<BackwardKernel>(attention);
}

}  // namespace troupe::model::cpu

#endif

#include "model/backend/cpu/max_pool.h"

#include <algorithm>

#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/kernels.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/max_pool.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#ifndef TROUPE_POOLED_ROW
#define TROUPE_POOLED_ROW
namespace troupe::model::cpu {

// Lanes of channels. Eight, as few layers have sixteen channels and more.
constexpr std::int64_t kPooledChannels = 8;

// A row of windows along z, and the elements of an image from one cell to the next of each axis.
struct PooledRow {
  std::int64_t windows = 0, channels = 0;
  Extent size{}, step{};
};

}  // namespace troupe::model::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

#if HWY_MAX_BYTES < 32

void pool_row(const PooledRow&, const float*, float*) {}
void pool_row_backward(const PooledRow&, const float*, const float*, float*) {}

#else

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::FixedTag<float, kPooledChannels>;
using Numbers = hn::RebindToSigned<Floats>;

// Calls use(place of a cell, its number) for each cell of a window.
template <class Use>
HWY_INLINE void over_window(const PooledRow& w, const Use& use) {
  std::int32_t number = 0;
  for (std::int64_t x = 0; x < w.size[0]; ++x) {
    for (std::int64_t y = 0; y < w.size[1]; ++y) {
      std::int64_t place = x * w.step[0] + y * w.step[1];
      for (std::int64_t z = 0; z < w.size[2]; ++z, place += w.step[2]) use(place, number++);
    }
  }
}

HWY_INLINE auto is_larger(hn::Vec<Floats> value, hn::Vec<Floats> largest) {
  return hn::And(hn::Eq(largest, largest), hn::Not(hn::Le(value, largest)));
}

HWY_INLINE void pool_channels(const PooledRow& w, const float* x, float* y) {
  const Floats tag;
  auto largest = hn::LoadU(tag, x);
  over_window(w, [&](std::int64_t place, std::int32_t) {
    const auto value = hn::LoadU(tag, x + place);
    largest = hn::IfThenElse(is_larger(value, largest), value, largest);
  });
  hn::StoreU(largest, tag, y);
}

HWY_INLINE void pool_channels_backward(const PooledRow& w, const float* x, const float* dy,
                                       float* dx) {
  const Floats tag;
  const Numbers numbers;
  auto largest = hn::LoadU(tag, x);
  auto of_largest = hn::Zero(numbers);
  over_window(w, [&](std::int64_t place, std::int32_t number) {
    const auto value = hn::LoadU(tag, x + place);
    const auto larger = is_larger(value, largest);
    largest = hn::IfThenElse(larger, value, largest);
    of_largest =
        hn::IfThenElse(hn::RebindMask(numbers, larger), hn::Set(numbers, number), of_largest);
  });
  const auto derivative = hn::LoadU(tag, dy);
  over_window(w, [&](std::int64_t place, std::int32_t number) {
    const auto here = hn::RebindMask(tag, hn::Eq(of_largest, hn::Set(numbers, number)));
    hn::StoreU(hn::IfThenElseZero(here, derivative), tag, dx + place);
  });
}

// Calls use(element of the fine row, of the coarse one) for each vector of channels of each window.
template <class Use>
HWY_INLINE void over_row(const PooledRow& w, const Use& use) {
  std::int64_t to = 0;
  for (std::int64_t z = 0; z < w.windows; ++z) {
    const std::int64_t from = z * w.size[2] * w.channels;
    for (std::int64_t c = 0; c < w.channels; c += kPooledChannels, to += kPooledChannels) {
      use(from + c, to);
    }
  }
}

void pool_row(const PooledRow& w, const float* x, float* y) {
  over_row(w, [&](std::int64_t from, std::int64_t to) { pool_channels(w, x + from, y + to); });
}

void pool_row_backward(const PooledRow& w, const float* x, const float* dy, float* dx) {
  over_row(w, [&](std::int64_t from, std::int64_t to) {
    pool_channels_backward(w, x + from, dy + to, dx + from);
  });
}

#endif

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(pool_row);
HWY_EXPORT(pool_row_backward);

namespace {

// Calls use(first element of a row of windows, of the coarse row) for each.
template <class Op, class Use>
void over_rows(const Op& p, const Use& use) {
  const std::int64_t row = p.in[2] * p.channels, plane = p.in[1] * row;
  const std::int64_t coarse_row = p.in[2] / p.size[2] * p.channels;
  std::int64_t to = 0;
  for (std::int64_t n = 0; n < p.batch; ++n) {
    for (std::int64_t x = 0; x < p.in[0] / p.size[0]; ++x) {
      for (std::int64_t y = 0; y < p.in[1] / p.size[1]; ++y, to += coarse_row) {
        use((n * p.in[0] + x * p.size[0]) * plane + y * p.size[1] * row, to);
      }
    }
  }
}

template <class Op>
class PoolKernel final : public Kernel {
 public:
  explicit PoolKernel(const Op& pool)
      : pool_(pool),
        row_{pool.in[2] / pool.size[2],
             pool.channels,
             pool.size,
             {pool.in[1] * pool.in[2] * pool.channels, pool.in[2] * pool.channels, pool.channels}} {
  }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    if constexpr (std::is_same_v<Op, MaxPoolForward>) {
      auto* y = call.operand<float>(1);
      over_rows(pool_, [&](std::int64_t from, std::int64_t to) {
        HWY_DYNAMIC_DISPATCH(pool_row)(row_, x + from, y + to);
      });
    } else {
      const auto* dy = call.operand<const float>(1);
      auto* dx = call.operand<float>(2);
      // Cells that fill no window.
      std::fill_n(dx, pool_.batch * cells(pool_.in) * pool_.channels, 0.0F);
      over_rows(pool_, [&](std::int64_t from, std::int64_t to) {
        HWY_DYNAMIC_DISPATCH(pool_row_backward)(row_, x + from, dy + to, dx + from);
      });
    }
  }

 private:
  const Op pool_;
  const PooledRow row_;
};

// Hosts without the vectors' instructions use the reference, as images of other channels do.
template <class Op>
std::unique_ptr<Kernel> choose(const Op& pool) {
  if (plane_vectors_supported() && pool.channels % kPooledChannels == 0) {
    return std::make_unique<PoolKernel<Op>>(pool);
  }
  return reference::make_kernel<float>(pool);
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const MaxPoolForward& pool) { return choose(pool); }
std::unique_ptr<Kernel> make_kernel(const MaxPoolBackward& pool) { return choose(pool); }

}  // namespace troupe::model::cpu

#endif

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

// A row of windows along z, by their cells inside the image, which follow each other in it along
// each axis by so many elements.
struct PooledRow {
  const PoolGeometry& pool;
  std::int64_t cells_x = 0, cells_y = 0;
  Extent step{};
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

// Calls use(place of a cell, its number) for each cell of a window with so many cells along z.
template <class Use>
HWY_INLINE void over_window(const PooledRow& w, std::int64_t cells_z, const Use& use) {
  std::int32_t number = 0;
  for (std::int64_t x = 0; x < w.cells_x; ++x) {
    for (std::int64_t y = 0; y < w.cells_y; ++y) {
      std::int64_t place = x * w.step[0] + y * w.step[1];
      for (std::int64_t z = 0; z < cells_z; ++z, place += w.step[2]) use(place, number++);
    }
  }
}

HWY_INLINE auto is_larger(hn::Vec<Floats> value, hn::Vec<Floats> largest) {
  return hn::And(hn::Eq(largest, largest), hn::Not(hn::Le(value, largest)));
}

HWY_INLINE void pool_channels(const PooledRow& w, std::int64_t cells_z, const float* x, float* y) {
  const Floats tag;
  auto largest = hn::LoadU(tag, x);
  over_window(w, cells_z, [&](std::int64_t place, std::int32_t) {
    const auto value = hn::LoadU(tag, x + place);
    largest = hn::IfThenElse(is_larger(value, largest), value, largest);
  });
  hn::StoreU(largest, tag, y);
}

// The derivative is put where the largest cell is, and 0 elsewhere; or it is added, where windows
// overlap. A sum that begins as 0 is never -0, so adding 0 to the other cells changes none of them.
template <bool kAdds>
HWY_INLINE void pool_channels_backward(const PooledRow& w, std::int64_t cells_z, const float* x,
                                       const float* dy, float* dx) {
  const Floats tag;
  const Numbers numbers;
  auto largest = hn::LoadU(tag, x);
  auto of_largest = hn::Zero(numbers);
  over_window(w, cells_z, [&](std::int64_t place, std::int32_t number) {
    const auto value = hn::LoadU(tag, x + place);
    const auto larger = is_larger(value, largest);
    largest = hn::IfThenElse(larger, value, largest);
    of_largest =
        hn::IfThenElse(hn::RebindMask(numbers, larger), hn::Set(numbers, number), of_largest);
  });
  const auto derivative = hn::LoadU(tag, dy);
  over_window(w, cells_z, [&](std::int64_t place, std::int32_t number) {
    const auto here = hn::RebindMask(tag, hn::Eq(of_largest, hn::Set(numbers, number)));
    auto part = hn::IfThenElseZero(here, derivative);
    if constexpr (kAdds) part = hn::Add(hn::LoadU(tag, dx + place), part);
    hn::StoreU(part, tag, dx + place);
  });
}

// Calls use(cells along z, element of the fine row, of the coarse one) for each vector of channels
// of each window.
template <class Use>
HWY_INLINE void over_row(const PooledRow& w, const Use& use) {
  const std::int64_t channels = w.pool.channels;
  std::int64_t to = 0;
  for (std::int64_t window = 0; window < w.pool.out[2]; ++window) {
    const reference::CellRange z = reference::cells_of_window(w.pool, 2, window);
    const std::int64_t from = z.begin * channels;
    for (std::int64_t c = 0; c < channels; c += kPooledChannels, to += kPooledChannels) {
      use(z.size(), from + c, to);
    }
  }
}

void pool_row(const PooledRow& w, const float* x, float* y) {
  over_row(w, [&](std::int64_t cells_z, std::int64_t from, std::int64_t to) {
    pool_channels(w, cells_z, x + from, y + to);
  });
}

template <bool kAdds>
void differentiate_row(const PooledRow& w, const float* x, const float* dy, float* dx) {
  over_row(w, [&](std::int64_t cells_z, std::int64_t from, std::int64_t to) {
    pool_channels_backward<kAdds>(w, cells_z, x + from, dy + to, dx + from);
  });
}
void pool_row_backward(const PooledRow& w, const float* x, const float* dy, float* dx) {
  side_by_side(w.pool) ? differentiate_row<false>(w, x, dy, dx)
                       : differentiate_row<true>(w, x, dy, dx);
}

#endif

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(pool_row);
HWY_EXPORT(pool_row_backward);

namespace {

// Calls use(row of windows, its first element in the image, in the coarse image) for each.
template <class Use>
void over_rows(const PoolGeometry& pool, const Use& use) {
  const std::int64_t row = pool.in[2] * pool.channels, plane = pool.in[1] * row;
  std::int64_t to = 0;
  for (std::int64_t n = 0; n < pool.batch; ++n) {
    for (std::int64_t wx = 0; wx < pool.out[0]; ++wx) {
      const reference::CellRange x = reference::cells_of_window(pool, 0, wx);
      for (std::int64_t wy = 0; wy < pool.out[1]; ++wy, to += pool.out[2] * pool.channels) {
        const reference::CellRange y = reference::cells_of_window(pool, 1, wy);
        use(PooledRow{pool, x.size(), y.size(), {plane, row, pool.channels}},
            (n * pool.in[0] + x.begin) * plane + y.begin * row, to);
      }
    }
  }
}

template <class Op>
class PoolKernel final : public Kernel {
 public:
  explicit PoolKernel(const Op& pool) : pool_(pool.geometry) {}

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    if constexpr (std::is_same_v<Op, MaxPoolForward>) {
      auto* y = call.operand<float>(1);
      over_rows(pool_, [&](const PooledRow& row, std::int64_t from, std::int64_t to) {
        HWY_DYNAMIC_DISPATCH(pool_row)(row, x + from, y + to);
      });
    } else {
      const auto* dy = call.operand<const float>(1);
      auto* dx = call.operand<float>(2);
      // Cells that fill no window, and those of which several windows make a sum.
      std::fill_n(dx, pool_.batch * cells(pool_.in) * pool_.channels, 0.0F);
      over_rows(pool_, [&](const PooledRow& row, std::int64_t from, std::int64_t to) {
        HWY_DYNAMIC_DISPATCH(pool_row_backward)(row, x + from, dy + to, dx + from);
      });
    }
  }

 private:
  const PoolGeometry pool_;
};

// Hosts without the vectors' instructions use the reference, as images of other channels do.
template <class Op>
std::unique_ptr<Kernel> choose(const Op& pool) {
  if (plane_vectors_supported() && pool.geometry.channels % kPooledChannels == 0) {
    return std::make_unique<PoolKernel<Op>>(pool);
  }
  return reference::make_kernel<float>(pool);
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const MaxPoolForward& pool) { return choose(pool); }
std::unique_ptr<Kernel> make_kernel(const MaxPoolBackward& pool) { return choose(pool); }

}  // namespace troupe::model::cpu

#endif

#include "model/backend/cpu/layer_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/backend/cpu/scratch.h"
#include "model/backend/kernel_call.h"
#include "runtime/base/error.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/layer_norm.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#ifndef TROUPE_NORM_CELLS
#define TROUPE_NORM_CELLS
namespace troupe::model::cpu {

// So many cells have their sums at once, which do not wait for each other.
constexpr std::int64_t kCells = 8;
using CellSums = std::array<double, static_cast<std::size_t>(kCells)>;

// A few cells behind each other, kCells at most, and what is known of each.
struct NormCells {
  std::int64_t count = 0, channels = 0;
  const float *x = nullptr, *dy = nullptr;
  const float *mean = nullptr, *inverse_deviation = nullptr;
};
// Per channel: sums over cells, and for each cell gamma times derivatives, [cell][channel].
struct NormDerivatives {
  double *sums = nullptr, *products = nullptr;
  double *weighted = nullptr, *weighted_products = nullptr;
};

}  // namespace troupe::model::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::CappedTag<double, 8>;
using HalfFloats = hn::Rebind<float, Doubles>;
constexpr std::int64_t kLanes = hn::MaxLanes(Doubles());

// Calls use(tag, c) for whole vectors of channels from c on, and for single ones.
template <class Use>
HWY_INLINE void over_channels(std::int64_t channels, const Use& use) {
  std::int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) use(HalfFloats(), c);
  for (; c < channels; ++c) use(hn::CappedTag<float, 1>(), c);
}

void normalise_cells(const NormCells& cells, const float* gamma, const float* beta, float* y) {
  for (std::int64_t cell = 0; cell < cells.count; ++cell) {
    const float* x = cells.x + cell * cells.channels;
    float* to = y + cell * cells.channels;
    over_channels(cells.channels, [&](auto tag, std::int64_t c) {
      const auto centred = hn::Sub(hn::LoadU(tag, x + c), hn::Set(tag, cells.mean[cell]));
      const auto scale =
          hn::Mul(hn::Set(tag, cells.inverse_deviation[cell]), hn::LoadU(tag, gamma + c));
      hn::StoreU(hn::Add(hn::Mul(centred, scale), hn::LoadU(tag, beta + c)), tag, to + c);
    });
  }
}

void add_derivatives(const NormCells& cells, const float* gamma, const NormDerivatives& to) {
  for (std::int64_t cell = 0; cell < cells.count; ++cell) {
    const std::int64_t first = cell * cells.channels;
    over_channels(cells.channels, [&](auto tag, std::int64_t c) {
      const hn::Rebind<double, decltype(tag)> wide;
      const auto normalised =
          hn::Mul(hn::Sub(hn::LoadU(tag, cells.x + first + c), hn::Set(tag, cells.mean[cell])),
                  hn::Set(tag, cells.inverse_deviation[cell]));
      const auto derivative = hn::PromoteTo(wide, hn::LoadU(tag, cells.dy + first + c));
      const auto product = hn::Mul(derivative, hn::PromoteTo(wide, normalised));
      const auto weight = hn::PromoteTo(wide, hn::LoadU(tag, gamma + c));
      hn::StoreU(hn::Add(hn::LoadU(wide, to.sums + c), derivative), wide, to.sums + c);
      hn::StoreU(hn::Add(hn::LoadU(wide, to.products + c), product), wide, to.products + c);
      hn::StoreU(hn::Mul(weight, derivative), wide, to.weighted + first + c);
      hn::StoreU(hn::Mul(weight, product), wide, to.weighted_products + first + c);
    });
  }
}

// `sums` and `products`: means of d and of d x^ in the reference's formula, of each cell.
void derive_cells(const NormCells& cells, const float* gamma, const CellSums& sums,
                  const CellSums& products, float* dx) {
  for (std::int64_t cell = 0; cell < cells.count; ++cell) {
    const std::int64_t first = cell * cells.channels;
    const auto sum = static_cast<float>(sums[static_cast<std::size_t>(cell)]);
    const auto product = static_cast<float>(products[static_cast<std::size_t>(cell)]);
    over_channels(cells.channels, [&](auto tag, std::int64_t c) {
      const auto inverse = hn::Set(tag, cells.inverse_deviation[cell]);
      const auto normalised = hn::Mul(
          hn::Sub(hn::LoadU(tag, cells.x + first + c), hn::Set(tag, cells.mean[cell])), inverse);
      const auto weighted =
          hn::Mul(hn::LoadU(tag, gamma + c), hn::LoadU(tag, cells.dy + first + c));
      const auto centred =
          hn::Sub(hn::Sub(weighted, hn::Set(tag, sum)), hn::Mul(normalised, hn::Set(tag, product)));
      hn::StoreU(hn::Mul(inverse, centred), tag, dx + first + c);
    });
  }
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(normalise_cells);
HWY_EXPORT(add_derivatives);
HWY_EXPORT(derive_cells);

namespace {

// For each of kCells cells the sum of of(cell, channel).
template <class Of>
CellSums sums_of(std::int64_t channels, const Of& of) {
  CellSums sums{};
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t cell = 0; cell < kCells; ++cell) {
      sums[static_cast<std::size_t>(cell)] += of(cell, c);
    }
  }
  return sums;
}

class ForwardKernel final : public Kernel {
 public:
  explicit ForwardKernel(const GroupNormForward& norm) : norm_(norm) {
    CHECK(is_of_cells(norm), "cells alone");
  }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    run_together(operands, random, Crew(scratch));
  }
  void run_together(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& crew) const override {
    const auto work = static_cast<double>(norm_.samples * norm_.channels);
    const std::int64_t shares = (norm_.samples + kShare - 1) / kShare;
    crew.for_work(work, 1).run(shares, [&](std::int64_t share, int) {
      const std::int64_t end = std::min((share + 1) * kShare, norm_.samples);
      for (std::int64_t first = share * kShare; first < end; first += kCells) {
        normalise(KernelCall{operands, random}, first, std::min(kCells, end - first));
      }
    });
  }

 private:
  static constexpr std::int64_t kShare = 128 * kCells;  // cells, by one thread

  void normalise(const KernelCall& call, std::int64_t first, std::int64_t count) const {
    const std::int64_t channels = norm_.channels;
    const float* x = call.operand<const float>(0) + first * channels;
    float* mean = call.operand<float>(4) + first;
    float* inverse_deviation = call.operand<float>(5) + first;
    // Behind the last cell it is told again.
    const auto value = [&](std::int64_t cell, std::int64_t c) {
      return static_cast<double>(x[std::min(cell, count - 1) * channels + c]);
    };
    CellSums means = sums_of(channels, value);
    for (double& sum : means) sum /= static_cast<double>(channels);
    const CellSums squares = sums_of(channels, [&](std::int64_t cell, std::int64_t c) {
      const double deviation = value(cell, c) - means[static_cast<std::size_t>(cell)];
      return deviation * deviation;
    });
    for (std::int64_t cell = 0; cell < count; ++cell) {
      const auto i = static_cast<std::size_t>(cell);
      mean[cell] = static_cast<float>(means[i]);
      inverse_deviation[cell] = static_cast<float>(
          1.0 / std::sqrt(squares[i] / static_cast<double>(channels) + norm_.epsilon));
    }
    HWY_DYNAMIC_DISPATCH(normalise_cells)
    ({count, channels, x, nullptr, mean, inverse_deviation}, call.operand<const float>(1),
     call.operand<const float>(2), call.operand<float>(3) + first * channels);
  }

  const GroupNormForward norm_;
};

class BackwardKernel final : public Kernel {
 public:
  explicit BackwardKernel(const GroupNormBackward& norm) : norm_(norm) {
    CHECK(is_of_cells(norm), "cells alone");
    for (std::size_t* place : {&sums_, &products_}) {
      *place = plan_.add_array<double>(norm.channels);
    }
    for (std::size_t* place : {&weighted_, &weighted_products_}) {
      *place = plan_.add_array<double>(kCells * norm.channels);
    }
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto doubles = [&](std::size_t place) { return scratch_at<double>(scratch, place); };
    const NormDerivatives to{doubles(sums_), doubles(products_), doubles(weighted_),
                             doubles(weighted_products_)};
    std::fill_n(to.sums, norm_.channels, 0.0);
    std::fill_n(to.products, norm_.channels, 0.0);
    std::fill_n(to.weighted, kCells * norm_.channels, 0.0);
    std::fill_n(to.weighted_products, kCells * norm_.channels, 0.0);
    for (std::int64_t first = 0; first < norm_.samples; first += kCells) {
      derive(call, first, std::min(kCells, norm_.samples - first), to);
    }
    auto* dgamma = call.operand<float>(6);
    auto* dbeta = call.operand<float>(7);
    for (std::int64_t c = 0; c < norm_.channels; ++c) {
      if (dgamma) dgamma[c] = static_cast<float>(to.products[c]);
      if (dbeta) dbeta[c] = static_cast<float>(to.sums[c]);
    }
  }

 private:
  void derive(const KernelCall& call, std::int64_t first, std::int64_t count,
              const NormDerivatives& to) const {
    const std::int64_t channels = norm_.channels;
    const NormCells cells{count,
                          channels,
                          call.operand<const float>(0) + first * channels,
                          call.operand<const float>(1) + first * channels,
                          call.operand<const float>(3) + first,
                          call.operand<const float>(4) + first};
    const auto* gamma = call.operand<const float>(2);
    HWY_DYNAMIC_DISPATCH(add_derivatives)(cells, gamma, to);
    const auto mean_of = [&](const double* weighted) {
      CellSums means = sums_of(channels, [&](std::int64_t cell, std::int64_t c) {
        return weighted[cell * channels + c];
      });
      for (double& sum : means) sum /= static_cast<double>(channels);
      return means;
    };
    const CellSums sums = mean_of(to.weighted), products = mean_of(to.weighted_products);
    HWY_DYNAMIC_DISPATCH(derive_cells)
    (cells, gamma, sums, products, call.operand<float>(5) + first * channels);
  }

  const GroupNormBackward norm_;
  ScratchPlan plan_;
  std::size_t sums_ = 0, products_ = 0, weighted_ = 0, weighted_products_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_cell_kernel(const GroupNormForward& norm) {
  return std::make_unique<ForwardKernel>(norm);
}

std::unique_ptr<Kernel> make_cell_kernel(const GroupNormBackward& norm) {
  return std::make_unique<BackwardKernel>(norm);
}

}  // namespace troupe::model::cpu

#endif

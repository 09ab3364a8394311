#include "model/backend/cpu/grouped_vectors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/backend/cpu/in_parts.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/grouped_vectors.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, kChannelLanes>;
using Vector = hn::Vec<Tag>;
constexpr std::int64_t kLanes = hn::MaxLanes(Tag());
constexpr std::size_t kMostCells = 8;  // of one block

// A number is stored in whole vectors, the next group's over those it has too many of.
void spread_cells(const SpreadCells& s, const float* cells, std::int64_t count, float* to) {
  const Tag tag;
  if (s.of_group == 1 && s.to_group == 1) {  // each channel by itself
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(cells + i * s.groups, s.groups, to + i * s.channels);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i, cells += s.groups * s.of_group) {
    for (std::int64_t j = 0; j < s.of_group; ++j, to += s.channels) {
      for (std::int64_t group = 0; group < s.groups; ++group) {
        const Vector value = hn::Set(tag, cells[group * s.of_group + j]);
        float* first = to + group * s.to_group;
        for (std::int64_t c = 0; c < s.to_group; c += kLanes) hn::StoreU(value, tag, first + c);
      }
    }
  }
}

template <std::size_t kCells>
HWY_NOINLINE void sum_block(const GroupedRow& r, std::int64_t first, std::int64_t channel) {
  const Tag tag;
  Vector sums[kCells];
  for (Vector& sum : sums) sum = hn::Zero(tag);
  for (std::size_t pair = 0; pair < r.rows.size(); ++pair) {
    const float* weights = r.weights[pair] + channel;
    for (std::int64_t tap = 0; tap < r.taps; ++tap) {
      const std::int64_t* places = r.places + tap * r.cells + first;
      const float* row = r.rows[pair] + channel;
      for (std::int64_t j = 0; j < r.depth; ++j, row += r.channels, weights += r.channels) {
        const Vector weight = hn::LoadU(tag, weights);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kCells; ++i) {
          sums[i] = hn::Add(sums[i], hn::Mul(hn::LoadU(tag, row + places[i]), weight));
        }
      }
    }
  }
  const auto count = static_cast<std::size_t>(std::min(kLanes, r.real_channels - channel));
  const auto mask = hn::FirstN(tag, count);
  for (std::size_t i = 0; i < kCells; ++i) {
    Vector sum = sums[i];
    if (r.bias != nullptr) sum = hn::Add(sum, hn::MaskedLoad(mask, tag, r.bias + channel));
    float* to = r.to + (first + static_cast<std::int64_t>(i)) * r.real_channels + channel;
    hn::BlendedStore(sum, mask, tag, to);
  }
}

template <std::size_t... kCells>
constexpr auto sum_blocks(std::index_sequence<kCells...>) {
  return std::array{&sum_block<kCells + 1>...};
}

void sum_row(const GroupedRow& row) {
  static constexpr auto kBlocks = sum_blocks(std::make_index_sequence<kMostCells>());
  for (std::int64_t channel = 0; channel < row.real_channels; channel += kLanes) {
    in_parts(row.cells, kMostCells, [&](std::int64_t first, std::int64_t count) {
      kBlocks[static_cast<std::size_t>(count - 1)](row, first, channel);
    });
  }
}

using Doubles = hn::CappedTag<double, 8>;
using HalfFloats = hn::Rebind<float, Doubles>;
constexpr std::int64_t kDoubleLanes = hn::MaxLanes(Doubles());
constexpr std::size_t kMostDepth = 4;  // of one block

// The product of two floats is exact in double, so that a fused step changes nothing.
template <std::size_t kDepth>
HWY_NOINLINE void add_block(const GroupedProducts& p, std::int64_t first, std::int64_t channel) {
  const Doubles tag;
  const HalfFloats half;
  const auto load = [&](const float* from)
                        HWY_ATTR { return hn::PromoteTo(tag, hn::LoadU(half, from)); };
  const auto count = static_cast<std::size_t>(std::min(kDoubleLanes, p.real_channels - channel));
  const auto mask = hn::FirstN(half, count);
  double* to = p.sums + first * p.channels + channel;
  const float* row = p.row + first * p.channels + channel;
  const float* dy = p.dy + channel;
  hn::Vec<Doubles> sums[kDepth];
  for (std::size_t j = 0; j < kDepth; ++j) {
    sums[j] = hn::LoadU(tag, to + static_cast<std::int64_t>(j) * p.channels);
  }
  for (std::size_t z = 0; z < p.places.size(); ++z, dy += p.real_channels) {
    const auto derivative = hn::PromoteTo(tag, hn::MaskedLoad(mask, half, dy));
    const float* cell = row + p.places[z];
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kDepth; ++j) {
      sums[j] =
          hn::MulAdd(load(cell + static_cast<std::int64_t>(j) * p.channels), derivative, sums[j]);
    }
  }
  for (std::size_t j = 0; j < kDepth; ++j) {
    hn::StoreU(sums[j], tag, to + static_cast<std::int64_t>(j) * p.channels);
  }
}

void add_products(const GroupedProducts& p) {
  static constexpr std::array kBlocks{&add_block<1>, &add_block<2>, &add_block<3>, &add_block<4>};
  for (std::int64_t channel = 0; channel < p.real_channels; channel += kDoubleLanes) {
    in_parts(p.depth, kMostDepth, [&](std::int64_t first, std::int64_t count) {
      kBlocks[static_cast<std::size_t>(count - 1)](p, first, channel);
    });
  }
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(spread_cells);
HWY_EXPORT(sum_row);
HWY_EXPORT(add_products);

void spread_cells(const SpreadCells& spread, const float* cells, std::int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(spread_cells)(spread, cells, count, to);
}

void sum_row(const GroupedRow& row) { HWY_DYNAMIC_DISPATCH(sum_row)(row); }

void add_products(const GroupedProducts& products) { HWY_DYNAMIC_DISPATCH(add_products)(products); }

}  // namespace troupe::model::cpu

#endif

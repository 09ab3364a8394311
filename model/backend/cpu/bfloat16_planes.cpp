#include "model/backend/cpu/bfloat16_planes.h"

#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/winograd.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/bfloat16_planes.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

#include "model/backend/cpu/bfloat16_arithmetic.inc"
#include "model/backend/cpu/tile_transforms.inc"

using Tag = hn::CappedTag<float, kPositionLanes>;
using Vector = hn::Vec<Tag>;
using Bits = hn::RebindToUnsigned<Tag>;
constexpr std::int64_t kLanes = hn::MaxLanes(Tag());

// Numbers of a vector of tiles, `stride` floats apart.
HWY_INLINE void load_numbers(const float* from, std::int64_t stride, int count,
                             Vector (&numbers)[kPoints]) {
  for (int k = 0; k < count; ++k) numbers[k] = hn::LoadU(Tag(), from + k * stride);
}

HWY_INLINE void store_pairs(Vector first, Vector second, Bfloat16Pair* to) {
  const Bits bits;
  const auto pairs = hn::Or(hn::ShiftRight<16>(rounded(first)),
                            hn::And(rounded(second), hn::Set(bits, 0xFFFF0000u)));
  hn::StoreU(pairs, bits, reinterpret_cast<std::uint32_t*>(to));
}

HWY_INLINE void store_values(Vector value, Bfloat16* to) {
  hn::StoreU(rounded_in_halves(value), hn::Rebind<std::uint16_t, Tag>(), &to->bits);
}

void rows_to_pairs(std::int64_t rows, std::int64_t columns, std::int64_t stride, const float* from,
                   Bfloat16Pair* pairs) {
  const std::int64_t whole = columns / kLanes * kLanes;
  for (std::int64_t row = 0; row < rows; row += 2, from += 2 * stride, pairs += columns) {
    const float* second = row + 1 < rows ? from + stride : nullptr;
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      store_pairs(hn::LoadU(Tag(), from + i),
                  second != nullptr ? hn::LoadU(Tag(), second + i) : hn::Zero(Tag()), pairs + i);
    }
    for (std::int64_t i = whole; i < columns; ++i) {
      pairs[i] = {to_bfloat16(from[i]), to_bfloat16(second != nullptr ? second[i] : 0.0f)};
    }
  }
}

void inputs_to_pairs(const PlaneSizes& p, const float* numbers, Bfloat16Pair* pairs) {
  if (!p.tiles) {
    return HWY_NAMESPACE::rows_to_pairs(p.channels, p.plane, p.plane, numbers, pairs);
  }
  const std::int64_t stride = p.channels * p.plane;
  const std::int64_t all_pairs = (p.channels + 1) / 2;
  for (std::int64_t pair = 0; pair < all_pairs; ++pair) {
    const float* first = numbers + 2 * pair * p.plane;
    const bool two = 2 * pair + 1 < p.channels;
    for (std::int64_t i = 0; i < p.plane; i += kLanes) {
      Bfloat16Pair* to = pairs + pair * p.plane + i;
      Vector d[kPoints];
      load_numbers(first + i, stride, kPoints, d);
      const auto a = transformed_inputs(d);
      if (two) {
        load_numbers(first + p.plane + i, stride, kPoints, d);
        const auto b = transformed_inputs(d);
        for (int k = 0; k < kPoints; ++k) {
          store_pairs(a.at[k], b.at[k], to + k * all_pairs * p.plane);
        }
      } else {
        for (int k = 0; k < kPoints; ++k) {
          store_pairs(a.at[k], hn::Zero(Tag()), to + k * all_pairs * p.plane);
        }
      }
    }
  }
}

// transform(numbers) of every vector of tiles.
template <class Transform>
HWY_INLINE void to_values(const PlaneSizes& p, const float* numbers, Bfloat16* values,
                          const Transform& transform) {
  const std::int64_t stride = p.channels * p.plane;
  for (std::int64_t i = 0; i < stride; i += kLanes) {
    if (!p.tiles) {
      store_values(hn::LoadU(Tag(), numbers + i), values + i);
      continue;
    }
    const AtPoints<Vector> at_points = transform(numbers + i);
    for (int k = 0; k < kPoints; ++k) store_values(at_points.at[k], values + k * stride + i);
  }
}

void inputs_to_values(const PlaneSizes& p, const float* numbers, Bfloat16* values) {
  to_values(p, numbers, values, [&](const float* from) {
    Vector d[kPoints];
    load_numbers(from, p.channels * p.plane, kPoints, d);
    return transformed_inputs(d);
  });
}

void derivatives_to_values(const PlaneSizes& p, int outputs, const float* numbers,
                           Bfloat16* values) {
  to_values(p, numbers, values, [&](const float* from) {
    Vector dy[kPoints];
    load_numbers(from, p.channels * p.plane, outputs, dy);
    return transformed_derivatives(dy, outputs);
  });
}

void columns_to_pairs(std::int64_t rows, std::int64_t columns, const float* from,
                      Bfloat16Pair* pairs) {
  const std::int64_t whole = columns / kLanes * kLanes;
  for (std::int64_t row = 0; row < rows; ++row, from += columns, pairs += (columns + 1) / 2) {
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      store_values(hn::LoadU(Tag(), from + i), &pairs[i / 2].first);
    }
    for (std::int64_t i = whole; i < columns; i += 2) {
      pairs[i / 2] = {to_bfloat16(from[i]), to_bfloat16(i + 1 < columns ? from[i + 1] : 0.0f)};
    }
  }
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(inputs_to_pairs);
HWY_EXPORT(inputs_to_values);
HWY_EXPORT(derivatives_to_values);
HWY_EXPORT(rows_to_pairs);
HWY_EXPORT(columns_to_pairs);

void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16Pair* pairs) {
  HWY_DYNAMIC_DISPATCH(inputs_to_pairs)(sizes, numbers, pairs);
}

void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16* values) {
  HWY_DYNAMIC_DISPATCH(inputs_to_values)(sizes, numbers, values);
}

void derivatives_to(const PlaneSizes& sizes, int outputs, const float* numbers, Bfloat16* values) {
  HWY_DYNAMIC_DISPATCH(derivatives_to_values)(sizes, outputs, numbers, values);
}

void rows_to_pairs(std::int64_t rows, std::int64_t columns, std::int64_t stride, const float* from,
                   Bfloat16Pair* pairs) {
  HWY_DYNAMIC_DISPATCH(rows_to_pairs)(rows, columns, stride, from, pairs);
}

void columns_to_pairs(std::int64_t rows, std::int64_t columns, const float* from,
                      Bfloat16Pair* pairs) {
  HWY_DYNAMIC_DISPATCH(columns_to_pairs)(rows, columns, from, pairs);
}

}  // namespace troupe::model::cpu

#endif

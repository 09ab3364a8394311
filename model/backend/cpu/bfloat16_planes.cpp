#include "model/backend/cpu/bfloat16_planes.h"

#include "model/backend/cpu/plane_geometry.h"
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

// A vector of pairs to their place in a plane, or in the two planes of pairs, `plane` elements
// apart.
HWY_INLINE void store_pairs(Vector first, Vector second, std::int64_t, Bfloat16Pair* to) {
  const Bits bits;
  const auto pairs = hn::Or(hn::ShiftRight<16>(rounded(first)),
                            hn::And(rounded(second), hn::Set(bits, 0xFFFF0000u)));
  hn::StoreU(pairs, bits, reinterpret_cast<std::uint32_t*>(to));
}
HWY_INLINE void store_pairs(Vector first, Vector second, std::int64_t plane, RoundedFloat* to) {
  const auto store = [&](Vector value, RoundedFloat* at) {
    const Bits bits;
    hn::StoreU(hn::And(rounded(value), hn::Set(bits, 0xFFFF0000u)), bits,
               reinterpret_cast<std::uint32_t*>(at));
  };
  store(second, to);
  store(first, to + plane);
}
HWY_INLINE void store_pair(float first, float second, std::int64_t, Bfloat16Pair* to) {
  *to = {to_bfloat16(first), to_bfloat16(second)};
}
HWY_INLINE void store_pair(float first, float second, std::int64_t plane, RoundedFloat* to) {
  *to = to_rounded(second);
  to[plane] = to_rounded(first);
}

HWY_INLINE void store_values(Vector value, Bfloat16* to) {
  hn::StoreU(rounded_in_halves(value), hn::Rebind<std::uint16_t, Tag>(), &to->bits);
}

template <class Element>
void rows_to(std::int64_t rows, std::int64_t columns, std::int64_t stride, const float* from,
             Element* to) {
  const std::int64_t whole = columns / kLanes * kLanes;
  const std::int64_t of_pair = elements_of<Element>(2) * columns;
  for (std::int64_t row = 0; row < rows; row += 2, from += 2 * stride, to += of_pair) {
    const float* second = row + 1 < rows ? from + stride : nullptr;
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      store_pairs(hn::LoadU(Tag(), from + i),
                  second != nullptr ? hn::LoadU(Tag(), second + i) : hn::Zero(Tag()), columns,
                  to + i);
    }
    for (std::int64_t i = whole; i < columns; ++i) {
      store_pair(from[i], second != nullptr ? second[i] : 0.0f, columns, to + i);
    }
  }
}

template <class Element>
void inputs_to(const PlaneSizes& p, const float* numbers, Element* to) {
  if (!p.tiles) return HWY_NAMESPACE::rows_to(p.channels, p.plane, p.plane, numbers, to);
  const std::int64_t stride = p.channels * p.plane;
  const std::int64_t point_stride = elements_of<Element>(p.channels) * p.plane;
  const std::int64_t of_pair = elements_of<Element>(2) * p.plane;
  for (std::int64_t c = 0; c < p.channels; c += 2, numbers += 2 * p.plane, to += of_pair) {
    const bool two = c + 1 < p.channels;
    for (std::int64_t i = 0; i < p.plane; i += kLanes) {
      Vector d[kPoints];
      load_numbers(numbers + i, stride, kPoints, d);
      const auto first = transformed_inputs(d);
      AtPoints<Vector> second;
      for (Vector& value : second.at) value = hn::Zero(Tag());
      if (two) {
        load_numbers(numbers + p.plane + i, stride, kPoints, d);
        second = transformed_inputs(d);
      }
      for (int k = 0; k < kPoints; ++k) {
        store_pairs(first.at[k], second.at[k], p.plane, to + k * point_stride + i);
      }
    }
  }
}

void rows_to_pairs(std::int64_t rows, std::int64_t columns, std::int64_t stride, const float* from,
                   Bfloat16Pair* to) {
  HWY_NAMESPACE::rows_to(rows, columns, stride, from, to);
}

void rows_to_rounded(std::int64_t rows, std::int64_t columns, std::int64_t stride,
                     const float* from, RoundedFloat* to) {
  HWY_NAMESPACE::rows_to(rows, columns, stride, from, to);
}

void inputs_to_pairs(const PlaneSizes& p, const float* numbers, Bfloat16Pair* pairs) {
  HWY_NAMESPACE::inputs_to(p, numbers, pairs);
}

void inputs_to_rounded(const PlaneSizes& p, const float* numbers, RoundedFloat* planes) {
  HWY_NAMESPACE::inputs_to(p, numbers, planes);
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
HWY_EXPORT(inputs_to_rounded);
HWY_EXPORT(inputs_to_values);
HWY_EXPORT(derivatives_to_values);
HWY_EXPORT(rows_to_pairs);
HWY_EXPORT(rows_to_rounded);
HWY_EXPORT(columns_to_pairs);

void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16Pair* pairs) {
  HWY_DYNAMIC_DISPATCH(inputs_to_pairs)(sizes, numbers, pairs);
}

void inputs_to(const PlaneSizes& sizes, const float* numbers, RoundedFloat* planes) {
  HWY_DYNAMIC_DISPATCH(inputs_to_rounded)(sizes, numbers, planes);
}

void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16* values) {
  HWY_DYNAMIC_DISPATCH(inputs_to_values)(sizes, numbers, values);
}

void derivatives_to(const PlaneSizes& sizes, int outputs, const float* numbers, Bfloat16* values) {
  HWY_DYNAMIC_DISPATCH(derivatives_to_values)(sizes, outputs, numbers, values);
}

void rows_to(std::int64_t rows, std::int64_t columns, std::int64_t stride, const float* from,
             Bfloat16Pair* pairs) {
  HWY_DYNAMIC_DISPATCH(rows_to_pairs)(rows, columns, stride, from, pairs);
}

void rows_to(std::int64_t rows, std::int64_t columns, std::int64_t stride, const float* from,
             RoundedFloat* planes) {
  HWY_DYNAMIC_DISPATCH(rows_to_rounded)(rows, columns, stride, from, planes);
}

void columns_to_pairs(std::int64_t rows, std::int64_t columns, const float* from,
                      Bfloat16Pair* pairs) {
  HWY_DYNAMIC_DISPATCH(columns_to_pairs)(rows, columns, from, pairs);
}

}  // namespace troupe::model::cpu

#endif

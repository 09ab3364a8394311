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

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, kPositionLanes>;
using Vector = hn::Vec<Tag>;
using Bits = hn::RebindToUnsigned<Tag>;
constexpr std::int64_t kLanes = hn::MaxLanes(Tag());

constexpr int kFinitePairs = 3;
constexpr float kPlaces[kFinitePairs] = {0.25f, 0.875f, 1.75f};

HWY_INLINE Vector times(float factor, Vector value, Vector plus) {
  return hn::MulAdd(hn::Set(Tag(), factor), value, plus);
}

// The values at the points of a vector of tiles.
struct AtPoints {
  Vector at[kSevenPoints];
};

// With the squares p, q of the other places, (x^2 - p)(x^2 - q) is common to the rows of +-a, which
// are its products with x +- a.
HWY_INLINE AtPoints transformed_inputs(const float* from, std::int64_t stride) {
  Vector d[kSevenPoints];
  for (int k = 0; k < kSevenPoints; ++k) d[k] = hn::LoadU(Tag(), from + k * stride);
  AtPoints values;
  float squares[kFinitePairs];
  for (int i = 0; i < kFinitePairs; ++i) squares[i] = kPlaces[i] * kPlaces[i];
  for (int i = 0; i < kFinitePairs; ++i) {
    const float p = squares[(i + 1) % kFinitePairs], q = squares[(i + 2) % kFinitePairs];
    const auto common = [&](int first) {
      return times(p * q, d[first], times(-(p + q), d[first + 2], d[first + 4]));
    };
    const Vector even = common(0), odd = common(1);
    values.at[2 * i] = times(kPlaces[i], even, odd);
    values.at[2 * i + 1] = times(-kPlaces[i], even, odd);
  }
  const float p = squares[0], q = squares[1], r = squares[2];
  values.at[6] = times(p * q + q * r + p * r, d[2], times(-(p + q + r), d[4], d[6]));
  values.at[6] = times(-(p * q * r), d[0], values.at[6]);
  return values;
}

// Even powers add at +-a, odd ones differ; at infinity the last stands alone.
HWY_INLINE AtPoints transformed_derivatives(const float* from, std::int64_t stride, int outputs) {
  Vector dy[kSevenPoints];
  for (int j = 0; j < outputs; ++j) dy[j] = hn::LoadU(Tag(), from + j * stride);
  AtPoints values;
  for (int i = 0; i < kFinitePairs; ++i) {
    const float square = kPlaces[i] * kPlaces[i];
    Vector even = hn::Zero(Tag()), odd = hn::Zero(Tag());
    for (int j = (outputs - 1) / 2 * 2; j >= 0; j -= 2) {
      even = hn::MulAdd(even, hn::Set(Tag(), square), dy[j]);
    }
    for (int j = outputs / 2 * 2 - 1; j >= 1; j -= 2) {
      odd = hn::MulAdd(odd, hn::Set(Tag(), square), dy[j]);
    }
    values.at[2 * i] = times(kPlaces[i], odd, even);
    values.at[2 * i + 1] = times(-kPlaces[i], odd, even);
  }
  values.at[6] = dy[outputs - 1];
  return values;
}

// Bfloat16 in the upper half of each lane, as to_bfloat16() rounds; the lower half is anything.
HWY_INLINE hn::Vec<Bits> rounded(Vector value) {
  const Bits bits;
  const auto whole = hn::BitCast(bits, value);
  const auto odd = hn::And(hn::ShiftRight<16>(whole), hn::Set(bits, 1));
  const auto nearest = hn::Add(whole, hn::Add(odd, hn::Set(bits, 0x7FFF)));
  const auto quiet = hn::Or(whole, hn::Set(bits, 0x400000));
  return hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(value)), quiet, nearest);
}

HWY_INLINE void store_pairs(Vector first, Vector second, Bfloat16Pair* to) {
  const Bits bits;
  const auto pairs = hn::Or(hn::ShiftRight<16>(rounded(first)),
                            hn::And(rounded(second), hn::Set(bits, 0xFFFF0000u)));
  hn::StoreU(pairs, bits, reinterpret_cast<std::uint32_t*>(to));
}

HWY_INLINE void store_values(Vector value, Bfloat16* to) {
  const hn::RebindToSigned<Tag> integers;
  const hn::Rebind<std::uint16_t, Tag> halves;
  const auto upper = hn::BitCast(integers, hn::ShiftRight<16>(rounded(value)));
  hn::StoreU(hn::DemoteTo(halves, upper), halves, &to->bits);
}

void inputs_to_pairs(const PlaneSizes& p, const float* numbers, Bfloat16Pair* pairs) {
  const std::int64_t stride = p.channels * p.plane;
  const std::int64_t all_pairs = (p.channels + 1) / 2;
  for (std::int64_t pair = 0; pair < all_pairs; ++pair) {
    const float* first = numbers + 2 * pair * p.plane;
    const bool two = 2 * pair + 1 < p.channels;
    for (std::int64_t i = 0; i < p.plane; i += kLanes) {
      Bfloat16Pair* to = pairs + pair * p.plane + i;
      const float* second = first + p.plane;
      if (!p.tiles) {
        store_pairs(hn::LoadU(Tag(), first + i),
                    two ? hn::LoadU(Tag(), second + i) : hn::Zero(Tag()), to);
        continue;
      }
      const AtPoints a = transformed_inputs(first + i, stride);
      if (two) {
        const AtPoints b = transformed_inputs(second + i, stride);
        for (int k = 0; k < kSevenPoints; ++k) {
          store_pairs(a.at[k], b.at[k], to + k * all_pairs * p.plane);
        }
      } else {
        for (int k = 0; k < kSevenPoints; ++k) {
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
    const AtPoints at_points = transform(numbers + i);
    for (int k = 0; k < kSevenPoints; ++k) store_values(at_points.at[k], values + k * stride + i);
  }
}

void inputs_to_values(const PlaneSizes& p, const float* numbers, Bfloat16* values) {
  to_values(p, numbers, values,
            [&](const float* from) { return transformed_inputs(from, p.channels * p.plane); });
}

void derivatives_to_values(const PlaneSizes& p, int outputs, const float* numbers,
                           Bfloat16* values) {
  to_values(p, numbers, values, [&](const float* from) {
    return transformed_derivatives(from, p.channels * p.plane, outputs);
  });
}

// Row j of A^T weighs the products at +-a by (+-a)^j, so even rows take their sum and odd rows
// their difference. The product at infinity belongs to the last output alone.
void restore_outputs_of_seven(float* sums, std::int64_t stride, std::int64_t count, int outputs) {
  const Tag tag;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    float* at = sums + i;
    Vector even[kFinitePairs], odd[kFinitePairs];
    for (int k = 0; k < kFinitePairs; ++k) {
      const Vector plus = hn::LoadU(tag, at + 2 * k * stride);
      const Vector minus = hn::LoadU(tag, at + (2 * k + 1) * stride);
      even[k] = hn::Add(plus, minus);
      odd[k] = hn::Sub(plus, minus);
    }
    const Vector last = hn::LoadU(tag, at + 6 * stride);
    float powers[kFinitePairs] = {1.0f, 1.0f, 1.0f};
    for (int j = 0; j < outputs; ++j) {
      const Vector* of = j % 2 == 0 ? even : odd;
      Vector sum = j == outputs - 1 ? last : hn::Zero(tag);
      for (int k = 0; k < kFinitePairs; ++k) {
        sum = times(powers[k], of[k], sum);
        powers[k] *= kPlaces[k];
      }
      hn::StoreU(sum, tag, at + j * stride);
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
HWY_EXPORT(restore_outputs_of_seven);

void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16Pair* pairs) {
  HWY_DYNAMIC_DISPATCH(inputs_to_pairs)(sizes, numbers, pairs);
}

void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16* values) {
  HWY_DYNAMIC_DISPATCH(inputs_to_values)(sizes, numbers, values);
}

void derivatives_to(const PlaneSizes& sizes, int outputs, const float* numbers, Bfloat16* values) {
  HWY_DYNAMIC_DISPATCH(derivatives_to_values)(sizes, outputs, numbers, values);
}

void restore_outputs_of_seven(float* sums, std::int64_t stride, std::int64_t count, int outputs) {
  HWY_DYNAMIC_DISPATCH(restore_outputs_of_seven)(sums, stride, count, outputs);
}

}  // namespace troupe::model::cpu

#endif

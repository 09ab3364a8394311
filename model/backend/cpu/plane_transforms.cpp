#include "model/backend/cpu/plane_transforms.h"

#include <algorithm>

#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/winograd.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/plane_transforms.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, kPositionLanes>;
using Vector = hn::Vec<Tag>;
constexpr std::int64_t kLanes = hn::MaxLanes(Tag());

#include "model/backend/cpu/tile_transforms.inc"

// Numbers of a vector of tiles, `stride` floats apart.
HWY_INLINE void store_at_points(const AtPoints<Vector>& values, float* to, std::int64_t stride) {
  for (int k = 0; k < kPoints; ++k) hn::StoreU(values.at[k], Tag(), to + k * stride);
}

void transform_inputs(float* planes, std::int64_t stride, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    Vector d[kPoints];
    for (int k = 0; k < kPoints; ++k) d[k] = hn::LoadU(Tag(), planes + i + k * stride);
    store_at_points(transformed_inputs(d), planes + i, stride);
  }
}

void transform_derivatives(float* planes, std::int64_t stride, std::int64_t count, int outputs) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    Vector dy[kPoints];
    for (int j = 0; j < outputs; ++j) dy[j] = hn::LoadU(Tag(), planes + i + j * stride);
    store_at_points(transformed_derivatives(dy, outputs), planes + i, stride);
  }
}

void restore_outputs(float* planes, std::int64_t stride, std::int64_t count, int outputs) {
  const Tag tag;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    float* at = planes + i;
    const auto product = [&](int k) { return hn::LoadU(tag, at + k * stride); };
    // Row j of A^T weighs the product at +-a by (+-a)^j: even rows add the two products of a pair,
    // odd rows subtract them. `sizes` follow the same sums with absolute values, as the measure of
    // rounding.
    Vector even[3], odd[3], sizes[3];  // of the points +-1, +-2, +-1/2
    for (int k = 0; k < 3; ++k) {
      const Vector plus = product(2 * k + 1), minus = product(2 * k + 2);
      even[k] = hn::Add(plus, minus);
      odd[k] = hn::Sub(plus, minus);
      sizes[k] = hn::Add(hn::Abs(plus), hn::Abs(minus));
    }
    const auto combine = [&](float twos, float halves, const Vector* of) {
      return hn::MulAdd(hn::Set(tag, twos), of[1], hn::MulAdd(hn::Set(tag, halves), of[2], of[0]));
    };
    const Vector first = product(0), last = product(7);
    float twos = 1.0f, halves = 1.0f;
    for (int j = 0; j < outputs; ++j, twos *= 2.0f, halves *= 0.5f) {
      Vector sum = combine(twos, halves, j % 2 == 0 ? even : odd);
      Vector size = combine(twos, halves, sizes);
      if (j == 0) {
        sum = hn::Add(sum, first);
        size = hn::Add(size, hn::Abs(first));
      }
      if (j == outputs - 1) {
        sum = hn::Add(sum, last);
        size = hn::Add(size, hn::Abs(last));
      }
      // The comparison is false for NaN, which therefore passes.
      const auto rounding = hn::Lt(hn::Abs(sum), hn::Mul(size, hn::Set(tag, 0x1p-20f)));
      hn::StoreU(hn::IfThenElse(rounding, hn::Zero(tag), sum), tag, at + j * stride);
    }
  }
}

void add_weighed(const WeighedRows& rows, const float* from, float* to) {
  const hn::CappedTag<double, 8> tag;
  const hn::Rebind<float, decltype(tag)> floats;
  const auto weight = [&](std::int64_t k, std::int64_t j) {
    return rows.weights[static_cast<std::size_t>(k)][static_cast<std::size_t>(j)];
  };
  constexpr auto kDoubles = static_cast<std::int64_t>(hn::MaxLanes(tag));
  std::int64_t i = 0;
  for (; i + kDoubles <= rows.count; i += kDoubles) {
    hn::Vec<decltype(tag)> values[kPoints];
    for (std::int64_t j = 0; j < rows.from_rows; ++j) {
      values[j] = hn::PromoteTo(tag, hn::LoadU(floats, from + j * rows.from_stride + i));
    }
    for (std::int64_t k = 0; k < rows.to_rows; ++k) {
      auto sum = hn::Zero(tag);
      for (std::int64_t j = 0; j < rows.from_rows; ++j) {
        sum = hn::Add(sum, hn::Mul(hn::Set(tag, weight(k, j)), values[j]));
      }
      hn::StoreU(hn::DemoteTo(floats, sum), floats, to + k * rows.to_stride + i);
    }
  }
  for (; i < rows.count; ++i) {
    for (std::int64_t k = 0; k < rows.to_rows; ++k) {
      double sum = 0.0;
      for (std::int64_t j = 0; j < rows.from_rows; ++j) {
        sum += weight(k, j) * static_cast<double>(from[j * rows.from_stride + i]);
      }
      to[k * rows.to_stride + i] = static_cast<float>(sum);
    }
  }
}

// activation(value + bias)
template <class V>
HWY_INLINE V finished(V value, float bias, const Activation& activation) {
  const hn::DFromV<V> tag;
  value = hn::Add(value, hn::Set(tag, bias));
  // The comparison is false for NaN, which therefore passes.
  const auto negative = hn::Lt(value, hn::Zero(tag));
  if (activation.kind == ActivationKind::kRelu) {
    value = hn::IfThenElse(negative, hn::Zero(tag), value);
  }
  if (activation.kind == ActivationKind::kLeakyRelu) {
    const auto slope = hn::Set(tag, static_cast<float>(activation.slope));
    value = hn::IfThenElse(negative, hn::Mul(slope, value), value);
  }
  return value;
}

#if HWY_MAX_BYTES < 32

void cells_to_planes(const CellsAndPlanes&, const float*, float*) {}
void planes_to_cells(const CellsAndPlanes&, const float*, float*) {}
void finish_cells(const FinishedPlane&, const float*, float*) {}

#else

using Eight = hn::FixedTag<float, kTransposed>;
using EightDoubles = hn::Repartition<double, Eight>;

// rows[i][j] becomes rows[j][i].
HWY_INLINE void transpose(hn::Vec<Eight> (&rows)[kTransposed]) {
  const Eight eight;
  const EightDoubles pairs;
  const auto as_pairs = [&](hn::Vec<Eight> v) { return hn::BitCast(pairs, v); };
  const auto as_floats = [&](hn::Vec<EightDoubles> v) { return hn::BitCast(eight, v); };
  // Within each half of four lanes: two rows, then four, interleaved.
  hn::Vec<Eight> low[4], high[4];
  for (int i = 0; i < 4; ++i) {
    low[i] = hn::InterleaveLower(eight, rows[2 * i], rows[2 * i + 1]);
    high[i] = hn::InterleaveUpper(eight, rows[2 * i], rows[2 * i + 1]);
  }
  hn::Vec<Eight> quads[8];
  for (int i = 0; i < 2; ++i) {
    const auto a = as_pairs(low[2 * i]), b = as_pairs(low[2 * i + 1]);
    const auto c = as_pairs(high[2 * i]), d = as_pairs(high[2 * i + 1]);
    quads[4 * i] = as_floats(hn::InterleaveLower(pairs, a, b));
    quads[4 * i + 1] = as_floats(hn::InterleaveUpper(pairs, a, b));
    quads[4 * i + 2] = as_floats(hn::InterleaveLower(pairs, c, d));
    quads[4 * i + 3] = as_floats(hn::InterleaveUpper(pairs, c, d));
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = hn::ConcatLowerLower(eight, quads[i + 4], quads[i]);
    rows[i + 4] = hn::ConcatUpperUpper(eight, quads[i + 4], quads[i]);
  }
}

// As few as these are moved faster one by one.
constexpr std::int64_t kFewCells = 2;

// Eight cells with eight channels each are loaded as rows and stored as columns. Where there are
// fewer cells, zeros stand for the others; where there are fewer channels, they are not stored.
void cells_to_planes(const CellsAndPlanes& s, const float* cells, float* planes) {
  const Eight eight;
  for (std::int64_t c = 0; c < s.channels; c += kTransposed) {
    const auto channels = std::min(kTransposed, s.channels - c);
    const auto mask = hn::FirstN(eight, static_cast<std::size_t>(channels));
    for (std::int64_t t = 0; t < s.count; t += kTransposed) {
      if (s.count - t <= kFewCells) {
        for (std::int64_t i = t; i < s.count; ++i) {
          const float* cell = cells + i * s.cell_stride + c;
          for (std::int64_t k = 0; k < channels; ++k)
            planes[(c + k) * s.plane_stride + i] = cell[k];
        }
        break;
      }
      hn::Vec<Eight> rows[kTransposed];
#pragma GCC unroll 8
      for (std::int64_t i = 0; i < kTransposed; ++i) {
        rows[i] = t + i < s.count ? hn::MaskedLoad(mask, eight, cells + (t + i) * s.cell_stride + c)
                                  : hn::Zero(eight);
      }
      transpose(rows);
      for (std::int64_t i = 0; i < channels; ++i) {
        hn::StoreU(rows[i], eight, planes + (c + i) * s.plane_stride + t);
      }
    }
  }
}

void planes_to_cells(const CellsAndPlanes& s, const float* planes, float* cells) {
  const Eight eight;
  for (std::int64_t c = 0; c < s.channels; c += kTransposed) {
    const auto channels = std::min(kTransposed, s.channels - c);
    const auto mask = hn::FirstN(eight, static_cast<std::size_t>(channels));
    for (std::int64_t t = 0; t < s.count; t += kTransposed) {
      hn::Vec<Eight> rows[kTransposed];
#pragma GCC unroll 8
      for (std::int64_t i = 0; i < kTransposed; ++i) {
        rows[i] = i < channels ? hn::LoadU(eight, planes + (c + i) * s.plane_stride + t)
                               : hn::Zero(eight);
      }
      transpose(rows);
      const auto count = std::min(kTransposed, s.count - t);
      for (std::int64_t i = 0; i < count; ++i) {
        float* to = cells + (t + i) * s.cell_stride + c;
        if (channels == kTransposed) {
          hn::StoreU(rows[i], eight, to);
        } else {
          // Memory behind these channels may be another cell's.
          hn::BlendedStore(rows[i], mask, eight, to);
        }
      }
    }
  }
}

// The next positions of a plane, as many as change places together: where their cells stand in the
// image, or null.
class NextCells {
 public:
  NextCells(const FinishedPlane& p, float* image) : p_(p), image_(image), z_(p.first) {}

  void find(float* (&cells)[kTransposed]) {
    for (float*& cell : cells) {
      const bool inside = y_ < p_.rows && z_ < p_.row_cells;
      cell = inside ? image_ + (y_ * p_.row_cells + z_) * p_.channels : nullptr;
      z_ += p_.step;
      if (++t_ == p_.row) {
        t_ = 0;
        z_ = p_.first;
        ++y_;
      }
    }
  }

 private:
  const FinishedPlane& p_;
  float* image_;
  std::int64_t y_ = 0, z_, t_ = 0;
};

void finish_cells(const FinishedPlane& p, const float* planes, float* image) {
  const Eight eight;
  NextCells next(p, image);
  for (std::int64_t q = 0; q < p.rows * p.row; q += kTransposed, planes += kTransposed) {
    float* cells[kTransposed];
    next.find(cells);
    for (std::int64_t c = 0; c < p.channels; c += kTransposed) {
      const auto channels = std::min(kTransposed, p.channels - c);
      const auto mask = hn::FirstN(eight, static_cast<std::size_t>(channels));
      hn::Vec<Eight> rows[kTransposed];
#pragma GCC unroll 8
      for (std::int64_t i = 0; i < kTransposed; ++i) {
        rows[i] = hn::Zero(eight);
        if (i < channels) {
          rows[i] = finished(hn::LoadU(eight, planes + (c + i) * p.plane_stride),
                             p.biases == nullptr ? 0.0f : p.biases[c + i], p.activation);
        }
      }
      if (channels == 1) {
        alignas(32) float values[kTransposed];
        hn::Store(rows[0], eight, values);
        for (std::int64_t i = 0; i < kTransposed; ++i) {
          if (cells[i] != nullptr) cells[i][c] = values[i];
        }
        continue;
      }
      transpose(rows);
#pragma GCC unroll 8
      for (std::int64_t i = 0; i < kTransposed; ++i) {
        if (cells[i] == nullptr) continue;
        if (channels == kTransposed) {
          hn::StoreU(rows[i], eight, cells[i] + c);
        } else {
          // Memory behind these channels may be another cell's.
          hn::BlendedStore(rows[i], mask, eight, cells[i] + c);
        }
      }
    }
  }
}

#endif

void finish_plane(float* values, std::int64_t count, float bias, const Activation& activation) {
  const Tag tag;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    hn::StoreU(finished(hn::LoadU(tag, values + i), bias, activation), tag, values + i);
  }
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(transform_inputs);
HWY_EXPORT(transform_derivatives);
HWY_EXPORT(restore_outputs);
HWY_EXPORT(add_weighed);
HWY_EXPORT(finish_plane);
HWY_EXPORT(cells_to_planes);
HWY_EXPORT(planes_to_cells);
HWY_EXPORT(finish_cells);

void transform_inputs(float* planes, std::int64_t stride, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(transform_inputs)(planes, stride, count);
}

void transform_derivatives(float* planes, std::int64_t stride, std::int64_t count, int outputs) {
  HWY_DYNAMIC_DISPATCH(transform_derivatives)(planes, stride, count, outputs);
}

void restore_outputs(float* planes, std::int64_t stride, std::int64_t count, int outputs) {
  HWY_DYNAMIC_DISPATCH(restore_outputs)(planes, stride, count, outputs);
}

void add_weighed(const WeighedRows& rows, const float* from, float* to) {
  HWY_DYNAMIC_DISPATCH(add_weighed)(rows, from, to);
}

void cells_to_planes(const CellsAndPlanes& sizes, const float* cells, float* planes) {
  HWY_DYNAMIC_DISPATCH(cells_to_planes)(sizes, cells, planes);
}

void planes_to_cells(const CellsAndPlanes& sizes, const float* planes, float* cells) {
  HWY_DYNAMIC_DISPATCH(planes_to_cells)(sizes, planes, cells);
}

void finish_cells(const FinishedPlane& plane, const float* planes, float* image) {
  HWY_DYNAMIC_DISPATCH(finish_cells)(plane, planes, image);
}

void finish_plane(float* values, std::int64_t count, float bias, const Activation& activation) {
  HWY_DYNAMIC_DISPATCH(finish_plane)(values, count, bias, activation);
}

}  // namespace troupe::model::cpu

#endif

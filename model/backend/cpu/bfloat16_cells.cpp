#include "model/backend/cpu/bfloat16_cells.h"

#include <algorithm>

#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/winograd.h"
#include "runtime/base/error.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/bfloat16_cells.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

#if HWY_MAX_BYTES < 32

void cells_to_pairs(const Rearrangement&, const float*, std::int64_t, Bfloat16Pair*) {}
void cells_to_rounded(const Rearrangement&, const float*, std::int64_t, RoundedFloat*) {}
void cells_to_values(const Rearrangement&, const float*, std::int64_t, Bfloat16*) {}
void derivative_cells_to_values(const Rearrangement&, const float*, std::int64_t, Bfloat16*) {}

#else

#include "model/backend/cpu/bfloat16_arithmetic.inc"
#include "model/backend/cpu/tile_transforms.inc"

// Channels of one vector. Rounded, they fill a block of 16 bytes.
constexpr std::int64_t kChannels = 8;
using Eight = hn::FixedTag<float, kChannels>;
using EightVector = hn::Vec<Eight>;
using Numbers = EightVector[kPoints];

// The first number of a position.
struct Place {
  const float* cell = nullptr;  // null: all of them lie outside the image
  std::int64_t z = 0;           // may lie outside
};

// Goes from position to position of a plane.
class Places {
 public:
  Places(const Rearrangement& r, const float* image)
      : r_(r), image_(image), y_(-r.first_row), z_(-r.before) {}

  Place next() {
    Place place;
    const bool inside = y_ >= 0 && y_ < r_.rows && y_ + r_.first_row < r_.plane_rows;
    if (inside && z_ < r_.row_cells && z_ + r_.numbers > 0) {
      place = {image_ + y_ * r_.row_stride + z_ * r_.cell_stride, z_};
    }
    z_ += r_.step;
    if (++t_ == r_.row) {
      t_ = 0;
      z_ = -r_.before;
      ++y_;
    }
    return place;
  }

 private:
  const Rearrangement& r_;
  const float* image_;
  std::int64_t y_, z_, t_ = 0;
};

// Some neighbouring channels of an image: eight, or the last ones.
template <bool kWhole>
struct SomeChannels {
  std::int64_t first = 0, count = kChannels;

  HWY_INLINE EightVector load(const float* cell) const {
    if constexpr (kWhole) return hn::LoadU(Eight(), cell + first);
    return hn::MaskedLoad(hn::FirstN(Eight(), static_cast<std::size_t>(count)), Eight(),
                          cell + first);
  }
  template <int kNumbers>
  HWY_INLINE void load(const Rearrangement& r, const Place& place, Numbers& d) const {
    const float* cell = place.cell;
    if (place.z >= 0 && place.z + kNumbers <= r.row_cells) {
#pragma GCC unroll 8
      for (int k = 0; k < kNumbers; ++k, cell += r.cell_stride) d[k] = load(cell);
      return;
    }
#pragma GCC unroll 8
    for (int k = 0; k < kNumbers; ++k, cell += r.cell_stride) {
      const bool inside = place.z + k >= 0 && place.z + k < r.row_cells;
      d[k] = inside ? load(cell) : hn::Zero(Eight());
    }
  }
};

// What becomes of the numbers of a tile.
struct Inputs {
  static constexpr int kNumbers = kPoints;
  HWY_INLINE void at_points(const Numbers& d, Numbers& values) const {
    const auto transformed = transformed_inputs(d);
    for (int k = 0; k < kPoints; ++k) values[k] = transformed.at[k];
  }
};
template <int kOutputs>
struct Derivatives {
  static constexpr int kNumbers = kOutputs;
  HWY_INLINE void at_points(const Numbers& d, Numbers& values) const {
    const auto transformed = transformed_derivatives(d, kOutputs);
    for (int k = 0; k < kPoints; ++k) values[k] = transformed.at[k];
  }
};

// How the values of a position are rounded: `blocks` has the place of the first one, and those of
// the others follow kStride numbers apart.
struct RoundInSteps {
  template <std::int64_t kStride>
  static HWY_INLINE void round(const Numbers& values, std::uint16_t* blocks) {
    const hn::FixedTag<std::uint16_t, kChannels> halves;
#pragma GCC unroll 8
    for (int k = 0; k < kPoints; ++k) {
      hn::Store(rounded_in_halves(values[k]), halves, blocks + k * kStride);
    }
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

// The same by one instruction of AVX512-BF16, except that it takes subnormal numbers for zero.
struct RoundAtOnce {
  template <std::int64_t kStride>
  static HWY_INLINE void round(const Numbers& values, std::uint16_t* blocks) {
    constexpr int kSubnormal = 0x20;
    unsigned subnormal = 0;
#pragma GCC unroll 8
    for (int k = 0; k < kPoints; ++k) {
      subnormal |= _mm256_fpclass_ps_mask(values[k].raw, kSubnormal);
    }
    if (HWY_UNLIKELY(subnormal != 0)) {
      return RoundInSteps::round<kStride>(values, blocks);
    }
#pragma GCC unroll 8
    for (int k = 0; k < kPoints; ++k) {
      __m128i halves;
      __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(values[k].raw));
      _mm_store_si128(reinterpret_cast<__m128i*>(blocks + k * kStride), halves);
    }
  }
};

#endif

// Calls use(rounding).
template <class Use>
void with_rounding(const Use& use) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  if (cpu::has_bfloat16_instructions()) return use(RoundAtOnce());
#endif
  use(RoundInSteps());
}

// Blocks of 16 bytes that change places together: as many in a block as it has values or pairs,
// four times, so that position 4 b + i of pairs (8 b + i of values) stands in block b of row i.
constexpr std::int64_t kBlocks = 4;
template <class Element>
constexpr std::int64_t kRows = 8 / PlaneFormat<Element>::kInPair;
template <class Element>
constexpr std::int64_t kPlanes = PlaneFormat<Element>::kInPair / PlaneFormat<Element>::kChannels;

template <class Element>
struct alignas(64) RoundedBlocks {
  std::uint16_t at[kRows<Element>][kBlocks][kChannels];

  static constexpr std::int64_t kSize = kRows<Element> * kBlocks * kChannels;

  HWY_INLINE std::uint16_t* of_position(std::int64_t q) {
    return at[q % kRows<Element>][q / kRows<Element>];
  }
};

// Vectors of several blocks, each of which is handled alone.
using Words = hn::CappedTag<std::uint32_t, kPositionLanes>;
using Halves = hn::Repartition<std::uint16_t, Words>;
using Doubles = hn::Repartition<std::uint64_t, Words>;
using WordVector = hn::Vec<Words>;
constexpr std::int64_t kBlocksAtOnce = hn::MaxLanes(Words()) / 4;

template <class Tag>
HWY_INLINE WordVector low_of(Tag tag, WordVector a, WordVector b) {
  return hn::BitCast(Words(), hn::InterleaveLower(tag, hn::BitCast(tag, a), hn::BitCast(tag, b)));
}
template <class Tag>
HWY_INLINE WordVector high_of(Tag tag, WordVector a, WordVector b) {
  return hn::BitCast(Words(), hn::InterleaveUpper(tag, hn::BitCast(tag, a), hn::BitCast(tag, b)));
}

// Word j of row i becomes word i of row j.
HWY_INLINE void transpose_words(WordVector (&rows)[4]) {
  const auto a = low_of(Words(), rows[0], rows[1]), b = high_of(Words(), rows[0], rows[1]);
  const auto c = low_of(Words(), rows[2], rows[3]), d = high_of(Words(), rows[2], rows[3]);
  rows[0] = low_of(Doubles(), a, c);
  rows[1] = high_of(Doubles(), a, c);
  rows[2] = low_of(Doubles(), b, d);
  rows[3] = high_of(Doubles(), b, d);
}
HWY_INLINE void transpose(WordVector (&rows)[4]) { transpose_words(rows); }
// The same of halves and eight rows.
HWY_INLINE void transpose(WordVector (&rows)[8]) {
  WordVector low[4], high[4];
  for (int i = 0; i < 4; ++i) {
    low[i] = low_of(Halves(), rows[2 * i], rows[2 * i + 1]);
    high[i] = high_of(Halves(), rows[2 * i], rows[2 * i + 1]);
  }
  transpose_words(low);
  transpose_words(high);
  for (int i = 0; i < 4; ++i) {
    rows[i] = low[i];
    rows[4 + i] = high[i];
  }
}

// A vector of values or pairs to their place in a plane, or in the two planes of pairs.
template <class Element>
HWY_INLINE void store(WordVector values, std::int64_t, Element* to) {
  hn::StoreU(values, Words(), reinterpret_cast<std::uint32_t*>(to));
}
HWY_INLINE void store(WordVector pairs, std::int64_t plane, RoundedFloat* to) {
  store(hn::And(pairs, hn::Set(Words(), 0xFFFF0000u)), 0, reinterpret_cast<std::uint32_t*>(to));
  store(hn::ShiftLeft<16>(pairs), 0, reinterpret_cast<std::uint32_t*>(to + plane));
}

// The elements of some channels of one point to their planes, of which `rows` are wanted.
template <class Element>
HWY_INLINE void write_rows(const RoundedBlocks<Element>& blocks, std::int64_t rows,
                           std::int64_t plane, Element* to) {
  constexpr std::int64_t kAll = kRows<Element>;
  for (std::int64_t block = 0; block < kBlocks; block += kBlocksAtOnce) {
    WordVector vectors[kAll];
    for (std::int64_t i = 0; i < kAll; ++i) {
      vectors[i] = hn::Load(Words(), reinterpret_cast<const std::uint32_t*>(blocks.at[i][block]));
    }
    transpose(vectors);
    for (std::int64_t i = 0; i < rows; ++i) {
      store(vectors[i], plane, to + i * kPlanes<Element> * plane + block * kAll);
    }
  }
}

// The positions that are handled together, of all channels.
template <class Element, class Transform, class Rounding>
class Planes {
 public:
  static constexpr std::int64_t kPositions = kBlocks * kRows<Element>;

  Planes(const Rearrangement& r, std::int64_t point_stride) : r_(r), point_stride_(point_stride) {}

  void write(const float* image, Element* to) {
    Places places(r_, image);
    for (std::int64_t first = 0; first < r_.plane; first += kPositions, to += kPositions) {
      bool empty = true;
      for (Place& place : places_) {
        place = places.next();
        empty &= place.cell == nullptr;
      }
      std::int64_t c = 0;
      for (; c + kChannels <= r_.channels; c += kChannels) {
        write(SomeChannels<true>{.first = c}, empty, to);
      }
      if (c < r_.channels) {
        write(SomeChannels<false>{.first = c, .count = r_.channels - c}, empty, to);
      }
    }
  }

 private:
  template <bool kWhole>
  HWY_INLINE void write(const SomeChannels<kWhole>& some, bool empty, Element* to) {
    const std::int64_t planes = elements_of<Element>(some.count);
    to += elements_of<Element>(some.first) * r_.plane;
    if (empty) {
      for (std::int64_t i = 0; i < kPoints * planes; ++i) {
        std::fill_n(to + i / planes * point_stride_ + i % planes * r_.plane, kPositions, Element{});
      }
      return;
    }
    for (std::int64_t q = 0; q < kPositions; ++q) round(some, places_[q], q);
    for (int k = 0; k < kPoints; ++k) {
      write_rows(blocks_[k], planes / kPlanes<Element>, r_.plane, to + k * point_stride_);
    }
  }

  template <bool kWhole>
  HWY_INLINE void round(const SomeChannels<kWhole>& some, const Place& place, std::int64_t q) {
    Numbers d, values;
    std::uint16_t* const blocks = blocks_[0].of_position(q);
    if (place.cell == nullptr) {
#pragma GCC unroll 8
      for (int k = 0; k < kPoints; ++k) values[k] = hn::Zero(Eight());
    } else {
      some.template load<Transform::kNumbers>(r_, place, d);
      Transform().at_points(d, values);
    }
    Rounding::template round<RoundedBlocks<Element>::kSize>(values, blocks);
  }

  const Rearrangement& r_;
  const std::int64_t point_stride_;
  Place places_[kPositions];
  RoundedBlocks<Element> blocks_[kPoints];
};

template <class Transform, class Element>
void write_planes(const Rearrangement& r, const float* image, std::int64_t point_stride,
                  Element* to) {
  with_rounding([&](auto rounding) {
    Planes<Element, Transform, decltype(rounding)>(r, point_stride).write(image, to);
  });
}

void cells_to_pairs(const Rearrangement& r, const float* image, std::int64_t point_stride,
                    Bfloat16Pair* pairs) {
  write_planes<Inputs>(r, image, point_stride, pairs);
}

void cells_to_rounded(const Rearrangement& r, const float* image, std::int64_t point_stride,
                      RoundedFloat* planes) {
  write_planes<Inputs>(r, image, point_stride, planes);
}

void cells_to_values(const Rearrangement& r, const float* image, std::int64_t point_stride,
                     Bfloat16* values) {
  write_planes<Inputs>(r, image, point_stride, values);
}

void derivative_cells_to_values(const Rearrangement& r, const float* image,
                                std::int64_t point_stride, Bfloat16* values) {
  switch (r.numbers) {
    case 2:
      return write_planes<Derivatives<2> >(r, image, point_stride, values);
    case 3:
      return write_planes<Derivatives<3> >(r, image, point_stride, values);
    case 4:
      return write_planes<Derivatives<4> >(r, image, point_stride, values);
    case 5:
      return write_planes<Derivatives<5> >(r, image, point_stride, values);
    case 6:
      return write_planes<Derivatives<6> >(r, image, point_stride, values);
    default:
      CHECK(false, "a tile has two to six outputs");
  }
}

#endif

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(cells_to_pairs);
HWY_EXPORT(cells_to_rounded);
HWY_EXPORT(cells_to_values);
HWY_EXPORT(derivative_cells_to_values);

void cells_to(const Rearrangement& cells, const float* image, std::int64_t point_stride,
              Bfloat16Pair* pairs) {
  CHECK(cells.places == 1 && cells.numbers == kPoints, "tiles of one sample");
  HWY_DYNAMIC_DISPATCH(cells_to_pairs)(cells, image, point_stride, pairs);
}

void cells_to(const Rearrangement& cells, const float* image, std::int64_t point_stride,
              RoundedFloat* planes) {
  CHECK(cells.places == 1 && cells.numbers == kPoints, "tiles of one sample");
  HWY_DYNAMIC_DISPATCH(cells_to_rounded)(cells, image, point_stride, planes);
}

void cells_to(const Rearrangement& cells, const float* image, std::int64_t point_stride,
              Bfloat16* values) {
  CHECK(cells.places == 1 && cells.numbers == kPoints, "tiles of one sample");
  HWY_DYNAMIC_DISPATCH(cells_to_values)(cells, image, point_stride, values);
}

void derivative_cells_to(const Rearrangement& cells, const float* image, std::int64_t point_stride,
                         Bfloat16* values) {
  CHECK(cells.places == 1, "tiles of one sample");
  HWY_DYNAMIC_DISPATCH(derivative_cells_to_values)(cells, image, point_stride, values);
}

}  // namespace troupe::model::cpu

#endif

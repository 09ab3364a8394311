// Planes of bfloat16 made from cells at once, against those made by way of planes of floats.

#include "model/backend/cpu/bfloat16_cells.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "model/backend/cpu/bfloat16_planes.h"
#include "model/backend/cpu/winograd.h"
#include "tests/model/only_targets.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

using cpu::Bfloat16;
using cpu::Bfloat16Pair;
using cpu::kPoints;
using cpu::RoundedFloat;

// For hosts that have less than this one, and for this one.
constexpr std::int64_t kHosts[] = {HWY_AVX2, HWY_AVX3, 0};

// `numbers` of a tile stand `step` cells behind those of the tile before. Rows and cells may lie
// outside the plane, and the plane may reach beyond the image on every side.
cpu::Rearrangement random_tiles(Draw& draw, std::int64_t numbers, std::int64_t step) {
  cpu::Rearrangement r;
  r.rows = draw.between(1, 7);
  r.row_cells = draw.between(1, 40);
  r.channels = draw.between(3, 35);
  r.cell_stride = r.channels + draw.between(0, 2);
  r.row_stride = r.row_cells * r.cell_stride;
  r.first_row = draw.between(-2, 3);
  r.plane_rows = draw.between(1, 9);
  r.before = draw.between(-3, 8);
  r.numbers = numbers;
  r.step = step;
  r.row = draw.between(1, 10);
  r.plane = cpu::whole_lanes(r.plane_rows * r.row + draw.between(0, 40), 2);
  r.number_stride = r.channels * r.plane;
  return r;
}

enum class CellNumbers { kUsual, kSubnormal, kNone };

// Half of them zero, as in showers. Subnormal ones are mixed with those whose sums are subnormal.
std::vector<float> random_image(const cpu::Rearrangement& r, CellNumbers kind, Draw& draw) {
  std::vector<float> image(static_cast<std::size_t>(r.rows * r.row_stride));
  for (float& value : image) {
    if (draw.between(0, 1) == 0) continue;
    value = static_cast<float>(2.0 * draw.uniform() - 1.0);
    if (kind == CellNumbers::kSubnormal) {
      value *= std::ldexp(1.0f, -static_cast<int>(draw.between(120, 140)));
    }
    if (kind == CellNumbers::kNone && draw.between(0, 20) == 0) {
      const bool is_infinite = draw.between(0, 1) == 0;
      value = is_infinite ? std::numeric_limits<float>::infinity() : NAN;
    }
  }
  return image;
}

std::vector<float> planes_of_numbers(const cpu::Rearrangement& r, const std::vector<float>& image) {
  std::vector<float> numbers(static_cast<std::size_t>(r.numbers * r.number_stride), NAN);
  cpu::rearrange(r, image.data(), numbers.data());
  return numbers;
}

// NaN has any payload.
std::uint16_t without_payload(Bfloat16 value) {
  return std::isnan(to_float(value)) ? std::uint16_t{0x7FC0} : value.bits;
}

void expect_equal_planes(const std::vector<Bfloat16>& found, const std::vector<Bfloat16>& judge) {
  ASSERT_EQ(found.size(), judge.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(without_payload(found[i]), without_payload(judge[i])) << "element " << i;
  }
}

// Elements of all points; those that nobody writes are a pattern.
std::size_t size_of_points(const cpu::Rearrangement& r, std::int64_t channels) {
  return static_cast<std::size_t>(kPoints * channels * r.plane);
}

void expect_pairs(const cpu::Rearrangement& r, const std::vector<float>& image) {
  const std::int64_t pairs = (r.channels + 1) / 2;
  const std::size_t size = size_of_points(r, pairs);
  std::vector<Bfloat16Pair> judge(size), found(size, {{0x1234}, {0x1234}});
  cpu::inputs_to({true, r.channels, r.plane}, planes_of_numbers(r, image).data(), judge.data());
  cpu::cells_to(r, image.data(), pairs * r.plane, found.data());
  std::vector<Bfloat16> all_found, all_judged;
  for (std::size_t i = 0; i < size; ++i) {
    all_found.insert(all_found.end(), {found[i].first, found[i].second});
    all_judged.insert(all_judged.end(), {judge[i].first, judge[i].second});
  }
  expect_equal_planes(all_found, all_judged);
}

void expect_planes_of_pairs(const cpu::Rearrangement& r, const std::vector<float>& image) {
  const std::int64_t pairs = (r.channels + 1) / 2;
  std::vector<Bfloat16Pair> judge(size_of_points(r, pairs));
  std::vector<RoundedFloat> found(2 * judge.size(), {1.0f});
  cpu::inputs_to({true, r.channels, r.plane}, planes_of_numbers(r, image).data(), judge.data());
  cpu::cells_to(r, image.data(), 2 * pairs * r.plane, found.data());
  const auto expect = [&](RoundedFloat value, Bfloat16 judged) {
    if (std::isnan(value.value) && std::isnan(to_float(judged))) return;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(value.value),
              std::bit_cast<std::uint32_t>(to_float(judged)));
  };
  const auto plane = static_cast<std::size_t>(r.plane);
  for (std::size_t i = 0; i < judge.size(); ++i) {
    const std::size_t at = i / plane * 2 * plane + i % plane;
    expect(found[at], judge[i].second);
    expect(found[at + plane], judge[i].first);
    if (testing::Test::HasFailure()) FAIL() << "pair " << i;
  }
}

void expect_values(const cpu::Rearrangement& r, const std::vector<float>& image) {
  std::vector<Bfloat16> judge(size_of_points(r, r.channels)), found(judge.size(), {0x1234});
  cpu::inputs_to({true, r.channels, r.plane}, planes_of_numbers(r, image).data(), judge.data());
  cpu::cells_to(r, image.data(), r.channels * r.plane, found.data());
  expect_equal_planes(found, judge);
}

void expect_derivatives(const cpu::Rearrangement& r, const std::vector<float>& image) {
  std::vector<Bfloat16> judge(size_of_points(r, r.channels)), found(judge.size(), {0x1234});
  cpu::derivatives_to({true, r.channels, r.plane}, static_cast<int>(r.numbers),
                      planes_of_numbers(r, image).data(), judge.data());
  cpu::derivative_cells_to(r, image.data(), r.channels * r.plane, found.data());
  expect_equal_planes(found, judge);
}

class CellsOfEveryVector : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
    if (GetParam() != 0 && (hwy::SupportedTargets() & GetParam()) == 0) {
      GTEST_SKIP() << "this host has no vectors for it";
    }
  }

  static void expect_all(CellNumbers kind) {
    const OnlyTargets only(GetParam());
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      SCOPED_TRACE(seed);
      Draw draw(seed);
      const auto tiles = random_tiles(draw, kPoints, draw.between(2, 6));
      const auto image = random_image(tiles, kind, draw);
      expect_pairs(tiles, image);
      expect_planes_of_pairs(tiles, image);
      expect_values(tiles, image);
      const std::int64_t outputs = draw.between(2, 6);
      const auto derivatives = random_tiles(draw, outputs, outputs);
      expect_derivatives(derivatives, random_image(derivatives, kind, draw));
    }
  }
};

TEST_P(CellsOfEveryVector, BecomeThePlanesThatFloatsInBetweenWouldGive) {
  expect_all(CellNumbers::kUsual);
}

// The instruction that rounds takes them for zero.
TEST_P(CellsOfEveryVector, KeepSubnormalNumbers) { expect_all(CellNumbers::kSubnormal); }

TEST_P(CellsOfEveryVector, KeepInfinitiesAndNotANumber) { expect_all(CellNumbers::kNone); }

TEST_P(CellsOfEveryVector, ReadNothingBehindTheLastCell) {
  const OnlyTargets only(GetParam());
  cpu::Rearrangement r{.rows = 1, .row_cells = 7, .channels = 5, .row_stride = 35};
  r.cell_stride = 5;
  r.plane_rows = 1;
  r.numbers = r.step = kPoints;
  r.row = 1;
  r.plane = 32;
  r.number_stride = r.channels * r.plane;
  // Behind the last channel of the last cell there is NaN, which no element may have.
  std::vector<float> image(35 + 8, NAN);
  for (std::size_t i = 0; i < 35; ++i) image[i] = static_cast<float>(i);
  std::vector<Bfloat16> found(size_of_points(r, r.channels));
  cpu::cells_to(r, image.data(), r.channels * r.plane, found.data());
  for (const Bfloat16 value : found) EXPECT_FALSE(std::isnan(to_float(value)));
  std::vector<Bfloat16Pair> pairs(size_of_points(r, 3));
  cpu::cells_to(r, image.data(), 3 * r.plane, pairs.data());
  for (const Bfloat16Pair& pair : pairs) {
    EXPECT_FALSE(std::isnan(to_float(pair.first)) || std::isnan(to_float(pair.second)));
  }
}

INSTANTIATE_TEST_SUITE_P(Bfloat16Cells, CellsOfEveryVector, testing::ValuesIn(kHosts),
                         [](const auto& test) {
                           return test.param == 0          ? "All"
                                  : test.param == HWY_AVX2 ? "Avx2"
                                                           : "Avx512";
                         });

}  // namespace
}  // namespace troupe::model

// Sums of products with lanes over outputs against those with lanes over positions.

#include "model/backend/cpu/channel_dots.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "model/backend/cpu/plane_dots.h"
#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/rearrange.h"
#include "tests/model/only_targets.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

using cpu::Bfloat16;
using cpu::kPositionLanes;

// Numbers around one, and now and then zeros of both signs and numbers whose products are subnormal
// or nothing.
template <class Element>
std::vector<Element> some_numbers(Draw& draw, std::int64_t count) {
  std::vector<Element> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    double value = 2.0 * draw.uniform() - 1.0;
    const std::int64_t kind = draw.between(0, 7);
    if (kind == 0) value = std::copysign(0.0, value);
    if (kind == 1) value = std::ldexp(value, static_cast<int>(draw.between(-80, -60)));
    if constexpr (std::is_same_v<Element, float>) {
      numbers.push_back(static_cast<float>(value));
    } else {
      numbers.push_back(cpu::to_bfloat16(static_cast<float>(value)));
    }
  }
  return numbers;
}

// Groups of pairs of planes with few positions, and the gradient that their sums are added to, in
// which rows stand backwards. Positions may be rows that end with zeros.
template <class Element>
struct Problem {
  static constexpr std::int64_t kInLane = cpu::PlaneFormat<Element>::kInLane;

  explicit Problem(Draw& draw)
      : used(draw.between(1, 40)),
        positions(cpu::whole_lanes(used, kInLane)),
        outputs(draw.between(1, 40)),
        row(kInLane == 1 && draw.between(0, 1) == 1 ? draw.between(1, 9) : 1),
        used_of_row(draw.between(1, row)) {
    const std::int64_t plane = positions + 3, channels = draw.between(1, 7);
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t tap = 0; tap < 3; ++tap) {
        rows.push_back({c * plane + tap, (3 * (channels - c) - 1 - tap) * outputs});
      }
    }
    for (std::int64_t group = draw.between(1, 4); group > 0; --group) {
      for (std::int64_t pair = draw.between(0, 3); pair > 0; --pair) {
        left.push_back(some_numbers<Element>(draw, channels * plane));
        right.push_back(some_numbers<Element>(draw, outputs * positions));
        for (std::int64_t i = 0; i < outputs * positions; ++i) {
          const std::int64_t position = i % positions;
          if (position < used && position % row < used_of_row) continue;
          right.back()[static_cast<std::size_t>(i)] = Element{};
        }
      }
      ends.push_back(left.size());
    }
    for (std::size_t i = 0; i < rows.size() * static_cast<std::size_t>(outputs); ++i) {
      gradient.push_back(static_cast<float>(draw.uniform()));
    }
  }

  std::vector<float> over_positions() const {
    std::vector<float> sums = gradient;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      std::vector<const Element*> lefts, rights;
      for (std::size_t i = begin; i < end; ++i) {
        lefts.push_back(left[i].data());
        rights.push_back(right[i].data());
      }
      cpu::add_plane_dots(cpu::PlaneDots<Element>{.left = lefts,
                                                  .right = rights,
                                                  .rows = rows,
                                                  .outputs = outputs,
                                                  .right_stride = positions,
                                                  .positions = positions,
                                                  .sums = sums.data()});
      begin = end;
    }
    return sums;
  }

  std::vector<float> over_outputs() const {
    const std::int64_t words = (used + kInLane - 1) / kInLane, lanes = cpu::whole_lanes(outputs);
    std::vector<std::vector<float>> turned;
    std::vector<const Element*> lefts;
    std::vector<const float*> rights;
    for (std::size_t i = 0; i < left.size(); ++i) {
      auto& to = turned.emplace_back(static_cast<std::size_t>(words * lanes));
      for (std::int64_t w = 0; w < words; ++w) {
        for (std::int64_t o = 0; o < outputs; ++o) {
          std::memcpy(&to[static_cast<std::size_t>(w * lanes + o)],
                      right[i].data() + o * positions + w * kInLane, sizeof(float));
        }
      }
      lefts.push_back(left[i].data());
    }
    for (const auto& words_of_plane : turned) rights.push_back(words_of_plane.data());
    std::vector<float> sums = gradient;
    std::vector<cpu::DotWord<Element>> memory(left.size() * static_cast<std::size_t>(words));
    cpu::add_channel_dots(cpu::ChannelDots<Element>{.left = lefts,
                                                    .right = rights,
                                                    .ends = ends,
                                                    .rows = rows,
                                                    .outputs = outputs,
                                                    .right_stride = lanes,
                                                    .words = words,
                                                    .row_words = row,
                                                    .used_words = used_of_row,
                                                    .memory = memory.data(),
                                                    .sums = sums.data()});
    return sums;
  }

  std::int64_t used, positions, outputs;  // `used` positions of each plane
  std::int64_t row, used_of_row;
  std::vector<cpu::DotRow> rows;
  std::vector<std::vector<Element>> left, right;
  std::vector<std::size_t> ends;
  std::vector<float> gradient;
};

template <class Element>
void expect_same_sums() {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Draw draw(seed);
    const Problem<Element> problem(draw);
    ASSERT_TRUE(same_bits({problem.over_outputs()}, {problem.over_positions()}))
        << seed << ": " << problem.used << " positions, " << problem.outputs << " outputs";
  }
}

// 0: the best vectors of this host.
class ChannelDotsOf : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    if (!cpu::plane_vectors_supported() || (hwy::SupportedTargets() & GetParam()) != GetParam()) {
      GTEST_SKIP() << "not on this host";
    }
  }
};

TEST_P(ChannelDotsOf, FloatsAreTheBitsOfLanesOverPositions) {
  const OnlyTargets only(GetParam());
  expect_same_sums<float>();
}

TEST_P(ChannelDotsOf, Bfloat16AreTheBitsOfLanesOverPositions) {
  const OnlyTargets only(GetParam());
  expect_same_sums<Bfloat16>();
}

INSTANTIATE_TEST_SUITE_P(Vectors, ChannelDotsOf, testing::Values(0, HWY_AVX2, HWY_AVX3));

}  // namespace
}  // namespace troupe::model

// The transforms of winograd.h against what they stand for, in double, and how much rounding they
// cost in float.

#include "model/backend/cpu/winograd.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "model/backend/cpu/bfloat16_planes.h"
#include "model/backend/cpu/plane_transforms.h"
#include "model/backend/cpu/plane_vectors.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

constexpr int kSets[] = {cpu::kSevenPoints, cpu::kEightPoints};

int most_taps(int points) { return std::min(points - 1, cpu::kMostTaps); }

// One tile in T, values at the points rounded by `at_point`: taps and inputs to outputs.
template <class T, class Round>
std::vector<T> filtered(int points, const std::vector<double>& filter,
                        const std::vector<double>& inputs, const Round& at_point) {
  const auto taps = static_cast<int>(filter.size());
  const auto of_taps = cpu::tap_transform(points, taps);
  const auto of_outputs = cpu::output_transform(points, taps);
  const auto of_inputs = cpu::input_transform(points);
  std::vector<T> outputs(static_cast<std::size_t>(cpu::tile_outputs(points, taps)));
  for (std::size_t point = 0; point < static_cast<std::size_t>(points); ++point) {
    double weight = 0.0;  // as the kernels do: rounded once
    for (std::size_t tap = 0; tap < filter.size(); ++tap) {
      weight += of_taps[tap][point] * filter[tap];
    }
    T value{0};
    for (std::size_t d = 0; d < inputs.size(); ++d) {
      value += static_cast<T>(of_inputs[point][d]) * static_cast<T>(inputs[d]);
    }
    const T product = at_point(static_cast<T>(weight)) * at_point(value);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      outputs[j] += static_cast<T>(of_outputs[j][point]) * product;
    }
  }
  return outputs;
}

template <class T>
T as_it_is(T value) {
  return value;
}
float to_eight_bits(float value) { return cpu::to_float(cpu::to_bfloat16(value)); }

std::vector<double> plainly(const std::vector<double>& filter, const std::vector<double>& inputs) {
  std::vector<double> outputs(inputs.size() + 1 - filter.size());
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    for (std::size_t tap = 0; tap < filter.size(); ++tap)
      outputs[j] += filter[tap] * inputs[j + tap];
  }
  return outputs;
}

TEST(Winograd, TilesAreTheFilterForEveryNumberOfTaps) {
  Draw draw(1);
  for (const int points : kSets) {
    for (int taps = 2; taps <= most_taps(points); ++taps) {
      const auto filter = draw.contents({"taps", taps});
      const auto inputs = draw.contents({"inputs", points});
      const auto found = filtered<double>(points, filter, inputs, as_it_is<double>);
      const auto expected = plainly(filter, inputs);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t j = 0; j < found.size(); ++j)
        EXPECT_NEAR(found[j], expected[j], 1e-13) << points << " " << taps;
    }
  }
}

TEST(Winograd, TransformsOfInputsAndOutputsAreExactInFloat) {
  const auto expect_exact = [](const auto& rows) {
    for (const auto& row : rows) {
      for (const double entry : row)
        EXPECT_EQ(static_cast<double>(static_cast<float>(entry)), entry);
    }
  };
  for (const int points : kSets) {
    expect_exact(cpu::input_transform(points));
    for (int taps = 2; taps <= most_taps(points); ++taps) {
      expect_exact(cpu::output_transform(points, taps));
    }
  }
}

// For the outputs of random tiles, relative to the root of their mean square.
template <class Round>
double rounding(int points, int taps, const Round& at_point) {
  Draw draw(2);
  double errors = 0.0, squares = 0.0;
  for (int i = 0; i < 2000; ++i) {
    const auto filter = draw.contents({"taps", taps});
    const auto inputs = draw.contents({"inputs", points});
    const auto found = filtered<float>(points, filter, inputs, at_point);
    const auto expected = plainly(filter, inputs);
    for (std::size_t j = 0; j < found.size(); ++j) {
      errors += std::pow(static_cast<double>(found[j]) - expected[j], 2);
      squares += expected[j] * expected[j];
    }
  }
  return std::sqrt(errors / squares);
}

TEST(Winograd, RoundingInFloatStaysBelowAMillionthForTheTapsThatAreUsed) {
  for (int taps = cpu::kFewestTaps; taps <= 7; ++taps) {
    EXPECT_LT(rounding(cpu::kEightPoints, taps, as_it_is<float>), 1e-6) << taps << " taps";
  }
}

// A plain sum of such products of bfloat16 is off by 0.0021.
TEST(Winograd, RoundingToEightBitsStaysBelowAHundredthWithSevenPoints) {
  for (int taps = cpu::kFewestTaps; taps <= 6; ++taps) {
    const double seven = rounding(cpu::kSevenPoints, taps, to_eight_bits);
    EXPECT_LT(seven, 0.009) << taps << " taps";
    EXPECT_LT(1.2 * seven, rounding(cpu::kEightPoints, taps, to_eight_bits)) << taps << " taps";
  }
}

// What the kernels run is written out by hand; it must be these matrices.
TEST(Winograd, VectorsComputeTheMatrices) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  constexpr std::int64_t kLanes = cpu::kPositionLanes;
  Draw draw(3);
  // found[row][lane] is the sum over k of entry(row, k) given[k][lane].
  const auto expect_product = [&](const std::vector<float>& found, int rows,
                                  const std::vector<float>& given, const auto& entry, int of,
                                  double tolerance) {
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        double sum = 0.0;
        for (std::size_t k = 0; k < static_cast<std::size_t>(of); ++k) {
          sum += entry(row, k) * static_cast<double>(given[k * kLanes + lane]);
        }
        ASSERT_NEAR(static_cast<double>(found[row * kLanes + lane]), sum,
                    tolerance * (1.0 + std::abs(sum)))
            << row << " " << lane;
      }
    }
  };
  for (const int points : kSets) {
    const bool eight = points == cpu::kEightPoints;
    const double rounded = eight ? 2e-6 : 0x1p-8;
    for (int taps = 2; taps <= most_taps(points); ++taps) {
      const int outputs = cpu::tile_outputs(points, taps);
      const auto a = cpu::output_transform(points, taps);
      const auto b = cpu::input_transform(points);
      const std::vector<float> given = converted<float>({draw.contents({"v", points * kLanes})})[0];
      std::vector<float> inputs = given, derivatives = given, sums = given;
      if (eight) {
        cpu::transform_inputs(inputs.data(), kLanes, kLanes);
        cpu::transform_derivatives(derivatives.data(), kLanes, kLanes, outputs);
        cpu::restore_outputs(sums.data(), kLanes, kLanes, outputs);
      } else {
        std::vector<cpu::Bfloat16> values(given.size());
        const auto as_floats = [&](std::vector<float>& to) {
          for (std::size_t i = 0; i < to.size(); ++i) to[i] = cpu::to_float(values[i]);
        };
        cpu::inputs_to({true, 1, kLanes}, given.data(), values.data());
        as_floats(inputs);
        cpu::derivatives_to({true, 1, kLanes}, outputs, given.data(), values.data());
        as_floats(derivatives);
        cpu::restore_outputs_of_seven(sums.data(), kLanes, kLanes, outputs);
      }
      const auto transposed = [&](std::size_t r, std::size_t k) { return a[k][r]; };
      const auto of_inputs = [&](std::size_t r, std::size_t k) { return b[r][k]; };
      const auto of_outputs = [&](std::size_t r, std::size_t k) { return a[r][k]; };
      expect_product(inputs, points, given, of_inputs, points, rounded);
      expect_product(derivatives, points, given, transposed, outputs, rounded);
      expect_product(sums, outputs, given, of_outputs, points, 2e-6);
    }
  }
}

}  // namespace
}  // namespace troupe::model

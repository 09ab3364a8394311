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

// One tile in T, values at the points rounded by `at_point`: taps and inputs to outputs.
template <class T, class Round>
std::vector<T> filtered(const std::vector<double>& filter, const std::vector<double>& inputs,
                        const Round& at_point) {
  const auto taps = static_cast<int>(filter.size());
  const auto of_taps = cpu::tap_transform(taps);
  const auto of_outputs = cpu::output_transform(taps);
  const auto of_inputs = cpu::input_transform();
  std::vector<T> outputs(static_cast<std::size_t>(cpu::tile_outputs(taps)));
  for (std::size_t point = 0; point < of_inputs.size(); ++point) {
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
  for (int taps = 2; taps <= cpu::kMostTaps; ++taps) {
    const auto filter = draw.contents({"taps", taps});
    const auto inputs = draw.contents({"inputs", cpu::kPoints});
    const auto found = filtered<double>(filter, inputs, as_it_is<double>);
    const auto expected = plainly(filter, inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t j = 0; j < found.size(); ++j)
      EXPECT_NEAR(found[j], expected[j], 1e-13) << taps;
  }
}

TEST(Winograd, TransformsOfInputsAndOutputsAreExactInFloat) {
  const auto expect_exact = [](const auto& rows) {
    for (const auto& row : rows) {
      for (const double entry : row)
        EXPECT_EQ(static_cast<double>(static_cast<float>(entry)), entry);
    }
  };
  expect_exact(cpu::input_transform());
  for (int taps = 2; taps <= cpu::kMostTaps; ++taps) expect_exact(cpu::output_transform(taps));
}

// For the outputs of random tiles, relative to the root of their mean square.
template <class Round>
double rounding(int taps, const Round& at_point) {
  Draw draw(2);
  double errors = 0.0, squares = 0.0;
  for (int i = 0; i < 2000; ++i) {
    const auto filter = draw.contents({"taps", taps});
    const auto inputs = draw.contents({"inputs", cpu::kPoints});
    const auto found = filtered<float>(filter, inputs, at_point);
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
    EXPECT_LT(rounding(taps, as_it_is<float>), 1e-6) << taps << " taps";
  }
}

// A plain sum of such products of bfloat16 is off by 0.0021.
TEST(Winograd, RoundingToEightBitsStaysNearAHundredth) {
  for (int taps = cpu::kFewestTaps; taps <= cpu::kMostTaps; ++taps) {
    EXPECT_LT(rounding(taps, to_eight_bits), 0.0125) << taps << " taps";
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
  constexpr double kFloat = 2e-6, kRounded = 0x1p-8;
  const auto b = cpu::input_transform();
  for (int taps = 2; taps <= cpu::kMostTaps; ++taps) {
    const int outputs = cpu::tile_outputs(taps);
    const auto a = cpu::output_transform(taps);
    const std::vector<float> given =
        converted<float>({draw.contents({"v", cpu::kPoints * kLanes})})[0];
    const auto of_inputs = [&](std::size_t r, std::size_t k) { return b[r][k]; };
    const auto transposed = [&](std::size_t r, std::size_t k) { return a[k][r]; };
    const auto of_outputs = [&](std::size_t r, std::size_t k) { return a[r][k]; };
    std::vector<float> found = given;
    cpu::transform_inputs(found.data(), kLanes, kLanes);
    expect_product(found, cpu::kPoints, given, of_inputs, cpu::kPoints, kFloat);
    found = given;
    cpu::transform_derivatives(found.data(), kLanes, kLanes, outputs);
    expect_product(found, cpu::kPoints, given, transposed, outputs, kFloat);
    found = given;
    cpu::restore_outputs(found.data(), kLanes, kLanes, outputs);
    expect_product(found, outputs, given, of_outputs, cpu::kPoints, kFloat);
    std::vector<cpu::Bfloat16> values(given.size());
    cpu::inputs_to({true, 1, kLanes}, given.data(), values.data());
    std::ranges::transform(values, found.begin(), cpu::to_float);
    expect_product(found, cpu::kPoints, given, of_inputs, cpu::kPoints, kRounded);
    cpu::derivatives_to({true, 1, kLanes}, outputs, given.data(), values.data());
    std::ranges::transform(values, found.begin(), cpu::to_float);
    expect_product(found, cpu::kPoints, given, transposed, outputs, kRounded);
  }
}

}  // namespace
}  // namespace troupe::model

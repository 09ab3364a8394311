// The transforms of winograd.h against what they stand for, in double, and how much rounding they
// cost in float.

#include "model/backend/cpu/winograd.h"

#include <cmath>

#include <gtest/gtest.h>

#include "model/backend/cpu/plane_transforms.h"
#include "model/backend/cpu/plane_vectors.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

using cpu::kPoints;

// One tile in T: taps and inputs to outputs.
template <class T>
std::vector<T> filtered(int taps, const std::vector<double>& filter,
                        const std::vector<double>& inputs) {
  const auto of_taps = cpu::tap_transform(taps);
  const auto of_outputs = cpu::output_transform(taps);
  const auto of_inputs = cpu::input_transform();
  std::vector<T> outputs(static_cast<std::size_t>(cpu::tile_outputs(taps)));
  for (std::size_t point = 0; point < kPoints; ++point) {
    double weight = 0.0;  // as the kernels do: rounded once
    for (std::size_t tap = 0; tap < filter.size(); ++tap) {
      weight += of_taps[tap][point] * filter[tap];
    }
    T value{0};
    for (std::size_t d = 0; d < kPoints; ++d) {
      value += static_cast<T>(of_inputs[point][d]) * static_cast<T>(inputs[d]);
    }
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      outputs[j] += static_cast<T>(of_outputs[j][point]) * (static_cast<T>(weight) * value);
    }
  }
  return outputs;
}

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
    const auto inputs = draw.contents({"inputs", kPoints});
    const auto found = filtered<double>(taps, filter, inputs);
    const auto expected = plainly(filter, inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t j = 0; j < found.size(); ++j)
      EXPECT_NEAR(found[j], expected[j], 1e-13) << taps;
  }
}

TEST(Winograd, TransformsOfInputsAndOutputsAreExactInFloat) {
  for (const auto& row : cpu::input_transform()) {
    for (const double entry : row) EXPECT_EQ(static_cast<double>(static_cast<float>(entry)), entry);
  }
  for (int taps = 2; taps <= cpu::kMostTaps; ++taps) {
    for (const auto& row : cpu::output_transform(taps)) {
      for (const double entry : row)
        EXPECT_EQ(static_cast<double>(static_cast<float>(entry)), entry);
    }
  }
}

// Relative to the root of the mean square of the outputs.
TEST(Winograd, RoundingInFloatStaysBelowAMillionthForTheTapsThatAreUsed) {
  Draw draw(2);
  for (int taps = 3; taps <= 7; ++taps) {
    double errors = 0.0, squares = 0.0;
    for (int i = 0; i < 2000; ++i) {
      const auto filter = draw.contents({"taps", taps});
      const auto inputs = draw.contents({"inputs", kPoints});
      const auto found = filtered<float>(taps, filter, inputs);
      const auto expected = plainly(filter, inputs);
      for (std::size_t j = 0; j < found.size(); ++j) {
        errors += std::pow(static_cast<double>(found[j]) - expected[j], 2);
        squares += expected[j] * expected[j];
      }
    }
    EXPECT_LT(std::sqrt(errors / squares), 1e-6) << taps << " taps";
  }
}

// What the kernels run is written out by hand; it must be these matrices.
TEST(Winograd, VectorsComputeTheMatrices) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  constexpr std::int64_t kLanes = cpu::kPositionLanes;
  Draw draw(3);
  const auto columns = [&] {
    return converted<float>({draw.contents({"v", kPoints * kLanes})})[0];
  };
  const auto expect_product = [&](const std::vector<float>& found, std::size_t row,
                                  const std::vector<float>& given, const auto& entry, int of) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      double sum = 0.0;
      for (std::size_t k = 0; k < static_cast<std::size_t>(of); ++k) {
        sum += entry(row, k) * static_cast<double>(given[k * kLanes + lane]);
      }
      ASSERT_NEAR(static_cast<double>(found[row * kLanes + lane]), sum, 2e-5);
    }
  };
  for (int taps = 2; taps <= cpu::kMostTaps; ++taps) {
    const int outputs = cpu::tile_outputs(taps);
    const auto a = cpu::output_transform(taps);
    const auto b = cpu::input_transform();
    const std::vector<float> given = columns();
    std::vector<float> inputs = given, derivatives = given, sums = given;
    cpu::transform_inputs(inputs.data(), kLanes, kLanes);
    cpu::transform_derivatives(derivatives.data(), kLanes, kLanes, outputs);
    cpu::restore_outputs(sums.data(), kLanes, kLanes, outputs);
    for (std::size_t row = 0; row < kPoints; ++row) {
      expect_product(
          inputs, row, given, [&](std::size_t r, std::size_t k) { return b[r][k]; }, kPoints);
      expect_product(
          derivatives, row, given, [&](std::size_t r, std::size_t k) { return a[k][r]; }, outputs);
    }
    for (std::size_t row = 0; row < static_cast<std::size_t>(outputs); ++row) {
      expect_product(
          sums, row, given, [&](std::size_t r, std::size_t k) { return a[r][k]; }, kPoints);
    }
  }
}

}  // namespace
}  // namespace troupe::model

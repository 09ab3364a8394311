// The transforms of winograd.h against what they stand for, in double, and how much rounding they
// cost in float.

#include "model/backend/cpu/winograd.h"

#include <cmath>

#include <gtest/gtest.h>

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
  for (int taps = cpu::kFewestTaps; taps <= cpu::kMostTaps; ++taps) {
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
  for (int taps = cpu::kFewestTaps; taps <= cpu::kMostTaps; ++taps) {
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

}  // namespace
}  // namespace troupe::model

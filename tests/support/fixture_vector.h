#pragma once

// A vector as the fixtures of tests/oracle keep it: its L2 norm and 8 projections on random signs,
// which are those of tests/oracle/philox.py.

#include <array>
#include <cmath>
#include <cstdint>
#include <istream>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "runtime/base/random.h"

namespace troupe {

struct FixtureVector {
  std::size_t size = 0;
  double norm = 0.0;
  std::array<double, 8> projections{};
};

inline std::istream& operator>>(std::istream& words, FixtureVector& vector) {
  words >> vector.size >> vector.norm;
  for (double& projection : vector.projections) words >> projection;
  return words;
}

// `number` is that of the vector's signs. The norm is off by at most `error`. The error of a
// projection is about that of the vector, so that five times as much is far out.
inline void expect_vector(const FixtureVector& want, std::span<const double> values,
                          std::uint32_t number, double error, const std::string& where) {
  ASSERT_EQ(values.size(), want.size) << where;
  double squares = 0.0;
  for (const double value : values) squares += value * value;
  EXPECT_NEAR(std::sqrt(squares), want.norm, error) << where;
  for (std::uint32_t j = 0; j < want.projections.size(); ++j) {
    const runtime::RandomPosition signs{99, j, 0, 0, number};
    double sum = 0.0;
    for (std::uint32_t i = 0; i < values.size(); i += 4) {
      const runtime::PhiloxBlock block = runtime::random_block(signs, i / 4);
      for (std::uint32_t k = 0; k < 4 && i + k < values.size(); ++k) {
        sum += (block[k] & 1) == 1 ? values[i + k] : -values[i + k];
      }
    }
    EXPECT_NEAR(sum, want.projections[j], 5.0 * error) << where << " projection " << j;
  }
}

}  // namespace troupe

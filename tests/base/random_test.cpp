#include "runtime/base/random.h"

#include <array>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/hash.h"

namespace troupe::runtime {
namespace {

// Known answers of the authors' Random123 distribution (kat_vectors, philox4x32 10).
TEST(Random, PhiloxGivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, EveryPartOfThePositionChangesTheNumber) {
  const RandomPosition base{1, 2, 3, 1, 5};
  std::vector<std::uint32_t> words{random_word(base, 0), random_word(base, 1),
                                   random_word(base, 4)};
  for (int part = 0; part < 5; ++part) {
    RandomPosition other = base;
    if (part == 0) other.seed = 9;
    if (part == 1) other.micro_batch = 9;
    if (part == 2) other.iteration = 9;
    if (part == 3) other.slot = 2;
    if (part == 4) other.stream = 9;
    words.push_back(random_word(other, 0));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(words[i], words[j]) << i << " " << j;
  }
}

TEST(Random, FilledNormalsAreTheSingleOnesAndHaveUnitMoments) {
  const RandomPosition position{7, 0, 0, 0, 3};
  std::vector<double> values(100003);
  fill_normal(position, values.data(), static_cast<std::uint32_t>(values.size()));
  double sum = 0.0, squares = 0.0;
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    if (i < 50) {
      EXPECT_EQ(values[i], random_normal(position, i));
    }
    sum += values[i];
    squares += values[i] * values[i];
  }
  EXPECT_NEAR(sum / values.size(), 0.0, 0.02);
  EXPECT_NEAR(squares / values.size(), 1.0, 0.02);
}

// Every bit of the noise is ours: the library's log, sin or cos, which differ from host to host,
// give some other last bits.
TEST(Random, NormalsHaveTheirBitsOnEveryMachine) {
  std::vector<double> values(100'000);
  fill_normal({7, 0, 0, 0, 3}, values.data(), static_cast<std::uint32_t>(values.size()));
  EXPECT_EQ(hash_of(std::as_bytes(std::span(values))).text(), "1a5bd56b812d2a0b9baf771879f2e848");
}

}  // namespace
}  // namespace troupe::runtime

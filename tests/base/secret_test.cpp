#include "runtime/base/secret.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace troupe::runtime {
namespace {

TEST(Secret, NumbersAreNeverDrawnTwice) {
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(numbers.insert(secret_number()).second);
  EXPECT_FALSE(numbers.contains(0));
}

TEST(Secret, EveryByteIsFilled) {
  std::array<bool, 64> changed{};
  for (int i = 0; i < 8; ++i) {
    std::array<std::byte, 64> bytes{};
    fill_secret(bytes);
    for (std::size_t at = 0; at < bytes.size(); ++at) changed[at] |= bytes[at] != std::byte{0};
  }
  for (const bool was : changed) EXPECT_TRUE(was);
}

}  // namespace
}  // namespace troupe::runtime

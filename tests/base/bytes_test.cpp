#include "runtime/base/bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe::runtime {
namespace {

TEST(Bytes, NumbersHaveOneOrderOnEveryMachine) {
  const std::array little = to_little_endian(std::uint32_t{0x01020304});
  EXPECT_EQ(little[0], std::byte{4});
  EXPECT_EQ(little[3], std::byte{1});
  const std::array big = to_big_endian(std::uint32_t{0x01020304});
  EXPECT_EQ(big[0], std::byte{1});
  EXPECT_EQ(big[3], std::byte{4});
}

TEST(Bytes, NumbersOfEverySizeComeBack) {
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{255}, UINT64_MAX, std::uint64_t{0x0123456789abcdef}}) {
    EXPECT_EQ(from_little_endian(to_little_endian(value)), value);
    EXPECT_EQ(from_big_endian(to_big_endian(value)), value);
    const auto low = static_cast<std::uint16_t>(value);
    EXPECT_EQ(from_little_endian(to_little_endian(low)), low);
    EXPECT_EQ(from_big_endian(to_big_endian(low)), low);
  }
}

TEST(Bytes, VarintHasSevenBitsAByte) {
  std::string bytes;
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{300}}) {
    append_varint(bytes, value);
  }
  EXPECT_EQ(bytes, std::string("\0\x7f\xac\x02", 4));
  std::vector<std::byte> longest;
  append_varint(longest, UINT64_MAX);
  EXPECT_EQ(longest.size(), 10u);
}

}  // namespace
}  // namespace troupe::runtime

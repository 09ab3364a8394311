#include "pipeline/data/chunk_codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

std::vector<std::byte> noise(std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    result[i] = static_cast<std::byte>(runtime::mix64(i) % 7);
  }
  return result;
}

TEST(ChunkCodec, UnshufflePutsTheBytesOfAnElementTogether) {
  for (const std::size_t element : {1u, 2u, 4u, 8u}) {
    constexpr std::size_t kCount = 37;
    const std::vector<std::byte> planes = noise(element * kCount);
    std::vector<std::byte> out(planes.size());
    unshuffle_bytes(planes, element, out);
    for (std::size_t i = 0; i < kCount; ++i) {
      for (std::size_t byte = 0; byte < element; ++byte) {
        ASSERT_EQ(out[i * element + byte], planes[byte * kCount + i]) << element;
      }
    }
  }
}

TEST(ChunkCodec, InflateUndoesDeflateAndRefusesEverythingElse) {
  const std::vector<std::byte> in = noise(10000);
  Deflater deflater(4);
  std::vector<std::byte> packed(deflater.bound(in.size()));
  packed.resize(deflater.deflate(in, packed));
  EXPECT_LT(packed.size(), in.size());

  Inflater inflater;
  std::vector<std::byte> out(in.size());
  ASSERT_TRUE(inflater.inflate(packed, out));
  EXPECT_EQ(out, in);

  std::vector<std::byte> shorter(in.size() - 1), longer(in.size() + 1);
  EXPECT_FALSE(inflater.inflate(packed, shorter));
  EXPECT_FALSE(inflater.inflate(packed, longer));
  EXPECT_FALSE(inflater.inflate(std::span(packed).first(packed.size() - 1), out));
  packed.back() ^= std::byte{1};  // the checksum
  EXPECT_FALSE(inflater.inflate(packed, out));
}

}  // namespace
}  // namespace troupe::pipeline

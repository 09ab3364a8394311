#include "pipeline/data/chunk_codec.h"

#include <libdeflate.h>

#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

// One pass over the four planes, which the compiler turns into vector code.
void unshuffle_four(const std::byte* in, std::size_t count, std::byte* out) {
  const auto* first = reinterpret_cast<const unsigned char*>(in);
  const unsigned char* second = first + count;
  const unsigned char* third = second + count;
  const unsigned char* fourth = third + count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t word = first[i] | std::uint32_t{second[i]} << 8 |
                               std::uint32_t{third[i]} << 16 | std::uint32_t{fourth[i]} << 24;
    std::memcpy(out + 4 * i, &word, 4);
  }
}

}  // namespace

void unshuffle_bytes(std::span<const std::byte> in, std::size_t element_bytes,
                     std::span<std::byte> out) {
  CHECK(in.size() == out.size() && in.size() % element_bytes == 0);
  const std::size_t count = in.size() / element_bytes;
  if (element_bytes == 4) {
    unshuffle_four(in.data(), count, out.data());
    return;
  }
  for (std::size_t plane = 0; plane < element_bytes; ++plane) {
    const std::byte* from = in.data() + plane * count;
    std::byte* to = out.data() + plane;
    for (std::size_t i = 0; i < count; ++i) to[i * element_bytes] = from[i];
  }
}

Inflater::Inflater() : codec_(libdeflate_alloc_decompressor(), libdeflate_free_decompressor) {
  CHECK(codec_ != nullptr, "out of memory");
}

bool Inflater::inflate(std::span<const std::byte> in, std::span<std::byte> out) {
  // Without a place for the true size, the library accepts exactly out.size() bytes.
  return libdeflate_zlib_decompress(codec_.get(), in.data(), in.size(), out.data(), out.size(),
                                    nullptr) == LIBDEFLATE_SUCCESS;
}

Deflater::Deflater(int level)
    : codec_(libdeflate_alloc_compressor(level), libdeflate_free_compressor) {
  CHECK(codec_ != nullptr, "out of memory, or no such level");
}

std::size_t Deflater::bound(std::size_t bytes) const {
  return libdeflate_zlib_compress_bound(codec_.get(), bytes);
}

std::size_t Deflater::deflate(std::span<const std::byte> in, std::span<std::byte> out) {
  const std::size_t bytes =
      libdeflate_zlib_compress(codec_.get(), in.data(), in.size(), out.data(), out.size());
  CHECK(bytes > 0, "the output is shorter than bound()");
  return bytes;
}

}  // namespace troupe::pipeline

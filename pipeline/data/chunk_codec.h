#pragma once

// The two filters that HDF5 chunks of showers come with: gzip (a zlib stream) and the byte shuffle,
// which puts the first bytes of all elements first, then the second ones, and so on.

#include <cstddef>
#include <memory>
#include <span>

struct libdeflate_compressor;
struct libdeflate_decompressor;

namespace troupe::pipeline {

// `in` and `out` have the same size, a multiple of `element_bytes`, and do not overlap.
void unshuffle_bytes(std::span<const std::byte> in, std::size_t element_bytes,
                     std::span<std::byte> out);

// Reusable state of libdeflate; one thread at a time.
class Inflater {
 public:
  Inflater();
  // False unless `in` is a whole zlib stream, checksum included, of exactly out.size() bytes.
  bool inflate(std::span<const std::byte> in, std::span<std::byte> out);

 private:
  std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> codec_;
};

class Deflater {
 public:
  explicit Deflater(int level);  // 1 to 9
  // Room that deflate() needs for so many bytes.
  std::size_t bound(std::size_t bytes) const;
  // Bytes written to `out`, which has at least bound(in.size()).
  std::size_t deflate(std::span<const std::byte> in, std::span<std::byte> out);

 private:
  std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> codec_;
};

}  // namespace troupe::pipeline

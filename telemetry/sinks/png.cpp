#include "telemetry/sinks/png.h"

#include <cstddef>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <libdeflate.h>

namespace troupe::telemetry {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::uint32_t kMostPixels = 16384;
constexpr int kCompressionLevel = 6;  // zlib's own choice

void append_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

void append_chunk(std::string& out, std::string_view kind, std::string_view content) {
  append_big_endian(out, static_cast<std::uint32_t>(content.size()));
  const std::size_t summed_from = out.size();
  out += kind;
  out += content;
  append_big_endian(out,
                    libdeflate_crc32(0, out.data() + summed_from, kind.size() + content.size()));
}

bool is_sound(const Image& image) {
  return image.width >= 1 && image.width <= kMostPixels && image.height >= 1 &&
         image.height <= kMostPixels && (image.channels == 1 || image.channels == 3) &&
         image.samples.size() == std::size_t{image.width} * image.height * image.channels;
}

// Every row behind a byte that tells its filter: 0, none.
std::string rows_of(const Image& image) {
  const std::size_t row = std::size_t{image.width} * image.channels;
  std::string rows;
  rows.reserve((row + 1) * image.height);
  for (std::uint32_t y = 0; y < image.height; ++y) {
    rows += '\0';
    rows.append(reinterpret_cast<const char*>(image.samples.data()) + y * row, row);
  }
  return rows;
}

Result<std::string> compressed(std::string_view bytes) {
  struct Free {
    void operator()(libdeflate_compressor* it) const { libdeflate_free_compressor(it); }
  };
  const std::unique_ptr<libdeflate_compressor, Free> compressor(
      libdeflate_alloc_compressor(kCompressionLevel));
  if (!compressor) return Error{ErrorKind::kInternal, "no memory to compress a picture"};
  std::string out(libdeflate_zlib_compress_bound(compressor.get(), bytes.size()), '\0');
  out.resize(libdeflate_zlib_compress(compressor.get(), bytes.data(), bytes.size(), out.data(),
                                      out.size()));
  return out;
}

}  // namespace

Result<std::string> png(const Image& image) {
  if (!is_sound(image)) {
    return Error{ErrorKind::kInternal,
                 fmt::format("no picture: {} x {} pixels of {} channels in {} samples", image.width,
                             image.height, image.channels, image.samples.size())};
  }
  ASSIGN_OR_RETURN(const std::string data, compressed(rows_of(image)));
  std::string header;
  append_big_endian(header, image.width);
  append_big_endian(header, image.height);
  header += '\x08';                               // bits of a sample
  header += image.channels == 3 ? '\x02' : '\0';  // colour type
  header.append(3, '\0');                         // deflate, the usual filters, not interlaced
  std::string out("\x89PNG\r\n\x1a\n", 8);
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", data);
  append_chunk(out, "IEND", "");
  return out;
}

}  // namespace troupe::telemetry

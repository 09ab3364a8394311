#include "telemetry/sinks/png.h"

#include <cstddef>
#include <string_view>

#include <libdeflate.h>

#include "runtime/base/bytes.h"
#include "telemetry/deflate.h"

namespace troupe::telemetry {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

void append_big_endian(std::string& out, std::uint32_t value) {
  for (const std::byte byte : runtime::to_big_endian(value)) out += static_cast<char>(byte);
}

void append_chunk(std::string& out, std::string_view kind, std::string_view content) {
  append_big_endian(out, static_cast<std::uint32_t>(content.size()));
  const std::size_t summed_from = out.size();
  out += kind;
  out += content;
  append_big_endian(out,
                    libdeflate_crc32(0, out.data() + summed_from, kind.size() + content.size()));
}

// Every row follows a byte that tells its filter: 0 for none.
std::string rows_of(const Image& image) {
  const std::size_t row = image.width;
  std::string rows;
  rows.reserve((row + 1) * image.height);
  for (std::uint32_t y = 0; y < image.height; ++y) {
    rows += '\0';
    rows.append(reinterpret_cast<const char*>(image.samples.data()) + y * row, row);
  }
  return rows;
}

}  // namespace

Result<std::string> png(const Image& image) {
  CHECK(!image.samples.empty() && image.samples.size() == std::size_t{image.width} * image.height,
        "a picture of another size");
  const auto data = zlib(rows_of(image));
  if (!data) return Error{ErrorKind::kInternal, "no memory to compress a picture"};
  std::string header;
  append_big_endian(header, image.width);
  append_big_endian(header, image.height);
  header += '\x08';        // bits of a sample
  header += '\0';          // grey
  header.append(3, '\0');  // deflate, the usual filters, not interlaced
  std::string out("\x89PNG\r\n\x1a\n", 8);
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", *data);
  append_chunk(out, "IEND", "");
  return out;
}

}  // namespace troupe::telemetry

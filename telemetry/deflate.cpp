#include "telemetry/deflate.h"

#include <libdeflate.h>

#include <span>

#include "runtime/base/bytes.h"

namespace troupe::telemetry {
namespace {

// The quickest: those who watch are near, and the processor trains.
constexpr int kQuickest = 1;
constexpr int kUsual = 6;  // zlib's own choice

template <class Bound, class Compress>
std::optional<std::string> compressed(std::string_view text, int level, Bound bound,
                                      Compress compress) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(level), &libdeflate_free_compressor);
  if (compressor == nullptr) return std::nullopt;
  std::string out(bound(compressor.get(), text.size()), '\0');
  const std::size_t size =
      compress(compressor.get(), text.data(), text.size(), out.data(), out.size());
  if (size == 0) return std::nullopt;
  out.resize(size);
  out.shrink_to_fit();
  return out;
}

}  // namespace

std::optional<std::string> gzip(std::string_view text) {
  return compressed(text, kQuickest, libdeflate_gzip_compress_bound, libdeflate_gzip_compress);
}

std::optional<std::string> zlib(std::string_view bytes) {
  return compressed(bytes, kUsual, libdeflate_zlib_compress_bound, libdeflate_zlib_compress);
}

std::optional<std::string> gunzip(std::string_view compressed, std::size_t most_bytes) {
  // The last four bytes say how long the text is, as far as that fits.
  if (compressed.size() < 18) return std::nullopt;
  const std::size_t size = runtime::from_little_endian(
      std::as_bytes(std::span(compressed.substr(compressed.size() - 4))));
  if (size > most_bytes) return std::nullopt;
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
      decompressor(libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (decompressor == nullptr) return std::nullopt;
  std::string text(size, '\0');
  const libdeflate_result result = libdeflate_gzip_decompress(
      decompressor.get(), compressed.data(), compressed.size(), text.data(), size, nullptr);
  if (result != LIBDEFLATE_SUCCESS) return std::nullopt;
  return text;
}

std::shared_ptr<const std::string> GzipCache::of(const std::shared_ptr<const std::string>& text) {
  if (auto known = compressed_.lock(); known != nullptr && text_.lock() == text) return known;
  auto made = gzip(*text);
  if (!made) return nullptr;
  auto compressed = std::make_shared<const std::string>(std::move(*made));
  text_ = text;
  compressed_ = compressed;
  return compressed;
}

}  // namespace troupe::telemetry

#include "telemetry/page/gzip.h"

#include <libdeflate.h>

#include <span>

#include "runtime/base/bytes.h"

namespace troupe::telemetry {
namespace {

// The quickest: whoever watches is near, and the processor trains.
constexpr int kLevel = 1;

}  // namespace

std::optional<std::string> gzip(std::string_view text) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(kLevel), &libdeflate_free_compressor);
  if (compressor == nullptr) return std::nullopt;
  std::string compressed(libdeflate_gzip_compress_bound(compressor.get(), text.size()), '\0');
  const std::size_t size = libdeflate_gzip_compress(compressor.get(), text.data(), text.size(),
                                                    compressed.data(), compressed.size());
  if (size == 0) return std::nullopt;
  compressed.resize(size);
  compressed.shrink_to_fit();
  return compressed;
}

std::optional<std::string> gunzip(std::string_view compressed, std::size_t most_bytes) {
  // Its last four bytes: how long the text is, as far as that fits.
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

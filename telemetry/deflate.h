#pragma once

// Texts made smaller, by libdeflate.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::telemetry {

// As HTTP's Content-Encoding: gzip has it, in little time. Nothing: there is no memory for it.
std::optional<std::string> gzip(std::string_view text);
// As PNG has it. Nothing: there is no memory for it.
std::optional<std::string> zlib(std::string_view bytes);
// Nothing: this is no gzip, or it is longer than `most_bytes`.
std::optional<std::string> gunzip(std::string_view compressed, std::size_t most_bytes);

// Remembers the last text it compressed, since many may ask for the same one. One thread.
class GzipCache {
 public:
  // Null: no memory for it.
  std::shared_ptr<const std::string> of(const std::shared_ptr<const std::string>& text);

 private:
  std::weak_ptr<const std::string> text_;
  std::weak_ptr<const std::string> compressed_;
};

}  // namespace troupe::telemetry

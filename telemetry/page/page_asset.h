#pragma once

// The page as the program holds it: files that the build made of web/, packed.

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe::telemetry {

// All views hold as long as the program runs.
struct PageAsset {
  std::string_view path;          // as it is asked for: "/", "/main-MZ3CKTQA.js"
  std::string_view content_type;  // "text/html; charset=utf-8"
  std::string_view etag;          // with its quotes; of the content before it was packed
  // As gzip has it, which goes out as it is to who accepts that; libdeflate unpacks it for others.
  std::span<const std::byte> gzip;
};

// In order of their paths, "/" first. What is not "/" has a name made of its content, but for
// "/licences.txt", and may be kept for ever. Empty: the program was built without its page, as it
// is where there is no npm. Any thread.
std::span<const PageAsset> page_assets();

}  // namespace troupe::telemetry

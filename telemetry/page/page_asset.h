#pragma once

// The files of the page, which the build made of web/ and put into the program.

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe::telemetry {

// All views hold as long as the program runs.
struct PageAsset {
  std::string_view path;          // as it is asked for: "/", "/main-MZ3CKTQA.js"
  std::string_view content_type;  // "text/html; charset=utf-8"
  std::string_view etag;          // with its quotes; of the content before it was packed
  // The content as gzip has it. It is sent so to clients that accept gzip, and unpacked for others.
  std::span<const std::byte> gzip;
};

// Any thread. In the order of their paths, "/" first. All but "/" and "/licences.txt" have names
// made of their content, and may be kept for ever. Empty: the program was built without its page,
// as it is where there is no npm.
std::span<const PageAsset> page_assets();

}  // namespace troupe::telemetry

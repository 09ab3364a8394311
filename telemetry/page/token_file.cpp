#include "telemetry/page/token_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"

namespace troupe::telemetry {
namespace {

constexpr std::size_t kMostCharacters = 256;
constexpr std::size_t kMostBytes = 4096;  // with the white space
constexpr std::string_view kSpace = " \t\r\n\v\f";

}  // namespace

runtime::Result<std::string> read_token_file(const std::string& path, std::string_view what) {
  const auto refused = [&](std::string_view why) {
    return runtime::Error{runtime::ErrorKind::kUsage, fmt::format("{}: {} {}", what, path, why)};
  };
  const runtime::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    return refused("cannot be read: " + std::generic_category().message(errno));
  }
  // One byte more than is allowed tells that the file is too long.
  const auto read = runtime::read_text(file, kMostBytes + 1);
  if (!read.ok()) return refused("cannot be read: " + read.error().message);
  const std::string& text = *read;
  const std::size_t first = text.find_first_not_of(kSpace);
  const std::size_t last = text.find_last_not_of(kSpace);
  if (first == std::string::npos || text.size() > kMostBytes || last - first >= kMostCharacters) {
    return refused(
        fmt::format("is to hold a word of 1 to {} characters, and does not", kMostCharacters));
  }
  std::string word = text.substr(first, last + 1 - first);
  if (word.find_first_of(kSpace) != std::string::npos) return refused("holds more than one word");
  const bool prints = std::all_of(word.begin(), word.end(),
                                  [](char letter) { return letter > ' ' && letter < '\x7f'; });
  if (!prints) return refused("holds characters that are not printing ASCII");
  return word;
}

}  // namespace troupe::telemetry

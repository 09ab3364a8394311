#include "launch/processes/line_splitter.h"

#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

namespace troupe::launch {
namespace {

void write_whole(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

// Looks for the line break only as far as the longest line has room. A line that is longer is
// handed on when it fills that room, and goes on as another line.
void LineSplitter::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t room = kLongestLine - rest_.size();
    const std::size_t end = bytes.substr(0, room).find('\n');
    if (end != std::string_view::npos) {
      rest_ += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
    } else {
      rest_ += bytes.substr(0, room);
      bytes.remove_prefix(std::min(room, bytes.size()));
      if (rest_.size() < kLongestLine) return;
    }
    sink_(rest_);
    rest_.clear();
  }
}

void LineSplitter::finish() {
  if (!rest_.empty()) sink_(rest_);
  rest_.clear();
}

LineSink prefixed_lines(const std::string& name, int descriptor) {
  return [name, descriptor](std::string_view line) {
    write_whole(descriptor, fmt::format("{} | {}\n", name, line));
  };
}

}  // namespace troupe::launch

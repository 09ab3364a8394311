#pragma once

// Bytes as they come out of a pipe, as whole lines; and lines of several processes in one stream.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace troupe::launch {

// Takes a line without its newline. Called by one thread at a time.
using LineSink = std::function<void(std::string_view)>;

// One thread.
class LineSplitter {
 public:
  // A longer line reaches the sink in pieces of this many bytes, so that a stream without newlines
  // needs no more memory.
  static constexpr std::size_t kLongestLine = std::size_t{64} << 10;

  explicit LineSplitter(LineSink sink) : sink_(std::move(sink)) {}

  // Hands every line that ends within `bytes` to the sink, and keeps the rest.
  void add(std::string_view bytes);
  // The stream has ended: a last line without newline goes to the sink too.
  void finish();

 private:
  LineSink sink_;
  std::string rest_;
};

// A sink that writes "NAME | line\n" to the descriptor, which must stay open as long as the sink
// lives: each line in one piece, so that those of several sinks do not mix. Blocks while the
// reader of the descriptor does; a line that cannot be written is given up.
LineSink prefixed_lines(const std::string& name, int descriptor);

}  // namespace troupe::launch

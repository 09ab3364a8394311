#include "launch/processes/parent_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "launch/processes/line_splitter.h"
#include "runtime/base/error.h"
#include "runtime/base/start_thread.h"

namespace troupe::launch {
namespace {

void read_lines(int line, int stop, LineSplitter lines) {
  std::array<char, 4096> bytes;
  while (true) {
    pollfd events[2] = {{line, POLLIN, 0}, {stop, POLLIN, 0}};
    if (::poll(events, 2, -1) < 0) continue;
    if (events[1].revents != 0) return;
    const ssize_t got = ::read(line, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    lines.add({bytes.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace

ParentLine::ParentLine(int descriptor, std::function<void(const std::string& line)> on_line)
    : line_(descriptor), stop_(::eventfd(0, EFD_CLOEXEC)) {
  CHECK(stop_.is_open(), "no eventfd");
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  thread_ = runtime::need_thread("the parent's line", [this, sink = std::move(on_line)] {
    read_lines(line_.number(), stop_.number(),
               LineSplitter([&sink](std::string_view text) { sink(std::string(text)); }));
  });
}

ParentLine::~ParentLine() {
  const std::uint64_t one = 1;
  CHECK(::write(stop_.number(), &one, sizeof one) == sizeof one);
  thread_.join();
}

}  // namespace troupe::launch

#include "main/watch_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/clock.h"
#include "telemetry/watch/watch_screen.h"

namespace troupe {
namespace {

constexpr auto kDrawEvery = std::chrono::milliseconds(250);
constexpr auto kLineEvery = std::chrono::seconds(5);
constexpr const char* kHideCursor = "\x1b[?25l";
constexpr const char* kShowCursor = "\x1b[?25h";
constexpr const char* kClearLine = "\x1b[K";
constexpr const char* kClearBelow = "\x1b[J";
// Where nothing says how wide lines may be.
constexpr std::size_t kScreenColumns = 200, kRows = 60;

}  // namespace

WatchTerminal::WatchTerminal(std::FILE* out) : out_(out), in_place_(::isatty(::fileno(out)) == 1) {
  if (in_place_) std::fputs(kHideCursor, out_);
}

WatchTerminal::~WatchTerminal() {
  if (in_place_) std::fputs(kShowCursor, out_);
  std::fflush(out_);
}

void WatchTerminal::show(const telemetry::HistoryNews& run) {
  if (run.version == shown_version_ && !(in_place_ && said_anew_)) return;
  const auto now = runtime::steady_now();
  if (shown_version_ > 0 && now - shown_at_ < (in_place_ ? std::chrono::milliseconds(kDrawEvery)
                                                         : std::chrono::milliseconds(kLineEvery))) {
    return;
  }
  shown_at_ = now;
  shown_version_ = run.version;
  said_anew_ = false;
  if (in_place_) return draw(run);
  if (run.version > 0) std::fputs((telemetry::watch_line(run) + "\n").c_str(), out_);
  std::fflush(out_);
}

// Goes up to the first line of the frame before and writes over it, which flickers less than a
// cleared screen. The terminal may have become smaller since: it goes up no further than that has
// rows.
void WatchTerminal::draw(const telemetry::HistoryNews& run) {
  winsize size{};
  const bool known = ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const std::size_t columns = known ? size.ws_col : kScreenColumns;
  const std::size_t rows = known && size.ws_row > 3 ? size.ws_row - 2u : kRows;
  auto lines =
      run.version > 0 ? telemetry::watch_screen(run, columns, rows) : std::vector<std::string>{};
  if (!said_.empty()) lines.push_back(telemetry::fit(said_, columns));
  std::string frame;
  if (drawn_lines_ > 0) frame += fmt::format("\x1b[{}A", std::min(drawn_lines_, rows + 1));
  for (const std::string& line : lines) frame += fmt::format("\r{}{}\n", line, kClearLine);
  frame += kClearBelow;
  drawn_lines_ = lines.size();
  std::fputs(frame.c_str(), out_);
  std::fflush(out_);
}

void WatchTerminal::finish(const telemetry::HistoryNews& run) {
  if (in_place_) return draw(run);
  for (const std::string& line : telemetry::watch_screen(run, kScreenColumns, kRows)) {
    std::fputs((line + "\n").c_str(), out_);
  }
  std::fflush(out_);
}

void WatchTerminal::say(const std::string& what) {
  said_ = what;
  said_anew_ = true;
  if (in_place_ || what.empty()) return;
  std::fputs((telemetry::fit(what, kScreenColumns) + "\n").c_str(), stderr);
}

}  // namespace troupe

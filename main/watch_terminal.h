#pragma once

// Where a watched run is shown: redrawn in place on a terminal, a line now and then elsewhere.

#include <cstdint>
#include <cstdio>
#include <string>

#include "runtime/base/clock.h"
#include "telemetry/history_news.h"

namespace troupe {

// One thread.
class WatchTerminal {
 public:
  // `out` must outlive this.
  explicit WatchTerminal(std::FILE* out);
  // Leaves what was drawn last.
  ~WatchTerminal();
  WatchTerminal(const WatchTerminal&) = delete;
  WatchTerminal& operator=(const WatchTerminal&) = delete;

  // Shows what has changed, if it is time to.
  void show(const telemetry::HistoryNews& run);
  // All of it, for the last time.
  void finish(const telemetry::HistoryNews& run);
  // Shows a line that is no part of the run: that its address does not answer, say. Stays until the
  // next one on a terminal; "": nothing.
  void say(const std::string& what);
  // Whether nobody reads it any more, as `head` after its lines.
  bool is_gone() const { return std::ferror(out_) != 0; }

 private:
  void draw(const telemetry::HistoryNews& run);

  std::FILE* out_;
  bool in_place_;
  std::string said_;
  std::size_t drawn_lines_ = 0;
  std::uint64_t shown_version_ = 0;
  bool said_anew_ = false;
  runtime::TimePoint shown_at_{};
};

}  // namespace troupe

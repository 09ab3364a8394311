#pragma once

// The processes that a study starts for its runs, and how they end.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "actors/leave_text.h"
#include "launch/processes/child_process.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "study/run_address.h"
#include "study/shared_pools.h"
#include "study/trial_run.h"

namespace troupe::study {

// A process for a run, and what it has said.
struct Watched {
  enum class Kind : std::uint8_t {
    kRun,     // itself
    kMember,  // besides the first one
    kWish,    // tells its head how many nodes of a pool it shall have
  };

  RunNumber run;
  Kind kind = Kind::kRun;
  bool is_leaving = false;     // of a member or wish: it was told to end
  bool was_let_go = false;     // of a member: its run has let it go before the end (`troupe drain`)
  bool is_over = false;        // of a run: it trains no more, and its head may wait for its nodes
  NodeWish wish;               // of that kind
  RunAddress address;          // of a run: where members join; empty: none do
  std::uint32_t turns = 1;     // of a run: addresses that it was given
  std::uint32_t failures = 0;  // of a run: members that ended soon and by themselves, in a row
  std::string folder;
  runtime::TimePoint began{0};
  std::string last_line;  // of its standard output
  bool goes_on = false;   // the last piece of it was no end of a line
  std::string last_error;

  void hear(std::string_view piece) {
    if (!std::exchange(goes_on, piece.size() == launch::LineSplitter::kLongestLine)) {
      last_line.clear();
    }
    if (last_line.size() + piece.size() <= kMostSummary) last_line += piece;
  }
  void hear_error(std::string_view line) {
    was_let_go = was_let_go || line.find(actors::kLeavesRun) != std::string_view::npos;
    last_error = line;
  }
};

bool is_end_of(runtime::ErrorKind kind, const launch::ChildEnd& end);
// Why the run begins again or goes on in place of having ended, with what it does; "": it has
// ended.
std::string why_again(const Watched& run, const launch::ChildEnd& end);

}  // namespace troupe::study

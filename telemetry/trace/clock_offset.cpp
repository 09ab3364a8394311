#include "telemetry/trace/clock_offset.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace troupe::telemetry {
namespace {

using runtime::Duration;
using runtime::TimePoint;

// Sums and differences of a few such times stay within 64 bits.
constexpr TimePoint kFarthest{std::int64_t{1} << 59};

bool is_near(TimePoint time) { return time > -kFarthest && time < kFarthest; }

}  // namespace

ClockOffset::ClockOffset(std::size_t keep) : keep_(keep) {
  CHECK(keep > 0, "an offset is told from one echo or more");
}

void ClockOffset::add(TimePoint asked, TimePoint answered, TimePoint heard) {
  if (!is_near(asked) || !is_near(answered) || !is_near(heard) || heard < asked) return;
  const Duration half = (heard - asked) / 2;
  echoes_.push_back({{answered - (asked + half), half}, heard});
  while (echoes_.size() > keep_ || echoes_.front().heard < heard - kLongest) echoes_.pop_front();
}

std::optional<ClockOffset::Estimate> ClockOffset::best() const {
  const auto shorter = [](const Estimate& a, const Estimate& b) { return a.error < b.error; };
  const auto best = std::min_element(echoes_.begin(), echoes_.end(), shorter);
  if (best == echoes_.end()) return std::nullopt;
  return *best;
}

}  // namespace troupe::telemetry

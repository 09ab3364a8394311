#include "runtime/base/trace.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace troupe::runtime {

TraceRing::TraceRing(int records) : mask_(0) {
  CHECK(records == 0 || (records > 1 && (records & (records - 1)) == 0),
        "the size of a trace ring is 0 or a power of two above 1");
  if (records == 0) return;
  mask_ = static_cast<std::uint64_t>(records) - 1;
  slots_ = std::make_unique<Slot[]>(static_cast<std::size_t>(records));
}

std::uint32_t TraceRing::name(std::string_view text) {
  const std::scoped_lock lock(names_mutex_);
  const auto found = std::find(names_.begin(), names_.end(), text);
  const auto index = static_cast<std::uint32_t>(found - names_.begin());
  if (found == names_.end()) names_.emplace_back(text);
  return index;
}

TraceSnapshot TraceRing::snapshot() const {
  TraceSnapshot result;
  result.written = written_.load(std::memory_order_acquire);
  if (enabled()) {
    result.records.reserve(std::min(result.written, mask_));
    // Copies first and judges afterwards: the owner goes on writing, so records at the old end may
    // be overwritten during the copy, and are thrown away then.
    const std::uint64_t first = result.written > mask_ ? result.written - mask_ : 0;
    for (std::uint64_t number = first; number < result.written; ++number) {
      const Slot& slot = slots_[number & mask_];
      std::uint64_t words[kWords];
      for (std::size_t i = 0; i < kWords; ++i) {
        words[i] = slot.words[i].load(std::memory_order_acquire);
      }
      const auto name = static_cast<std::uint32_t>(words[0]);
      result.records.push_back({.name = name & ~kSent,
                                .start = TimePoint{static_cast<std::int64_t>(words[1])},
                                .end = TimePoint{static_cast<std::int64_t>(words[2])},
                                .argument = static_cast<std::int64_t>(words[3]),
                                .flow = {static_cast<std::uint32_t>(words[0] >> 32), words[4]},
                                .sent = (name & kSent) != 0});
    }
    // Record n may be half overwritten once record n + mask_ + 1 has been begun.
    const std::uint64_t now_written = written_.load(std::memory_order_acquire);
    const std::uint64_t oldest_whole = now_written > mask_ ? now_written - mask_ : 0;
    const std::uint64_t stale = std::min<std::uint64_t>(
        oldest_whole > first ? oldest_whole - first : 0, result.records.size());
    result.records.erase(result.records.begin(),
                         result.records.begin() + static_cast<std::ptrdiff_t>(stale));
  }
  const std::scoped_lock lock(names_mutex_);
  result.names = names_;
  return result;
}

}  // namespace troupe::runtime

#pragma once

// What an actor did lately: a ring of fixed-size binary records in memory, written by the actor's
// thread, read by anyone at any time. Writing one costs a few stores and takes no lock.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"

namespace troupe::runtime {

// One span of time. Four 64-bit words in the ring.
struct TraceRecord {
  std::uint32_t name = 0;  // index into the names of its ring
  TimePoint start{0};      // on the clock of the node
  TimePoint end{0};
  std::int64_t argument = 0;  // a number of the writer's choice: bytes, a step, a micro-batch
};

// A copy of a ring at one moment, complete in itself.

struct TraceSnapshot {
  std::vector<std::string> names;
  std::vector<TraceRecord> records;  // oldest first; every name is within names
  std::uint64_t written = 0;         // ever; written - records.size() were overwritten
};

class TraceRing {
 public:
  // Keeps the last `records` - 1 records (one place may always be half written); a power of two
  // above 1, or 0 to keep none.
  explicit TraceRing(int records);
  TraceRing(const TraceRing&) = delete;
  TraceRing& operator=(const TraceRing&) = delete;

  bool enabled() const { return mask_ != 0; }

  // The index of a name, the same for the same name. Takes a lock: resolve before the hot path. Any
  // thread.
  std::uint32_t name(std::string_view text);

  // Owner thread only: the one that runs the actor. `name` is from name() of this ring. Nothing
  // when the ring is not enabled.
  void write(const TraceRecord& record);

  // Any thread, also while the owner writes. Records that were overwritten meanwhile are left out.
  TraceSnapshot snapshot() const;

 private:
  // Atomic so that a reader may race with the owner; it throws away what it may have seen half of.
  static constexpr std::size_t kWords = 4;
  struct Slot {
    std::atomic<std::uint64_t> words[kWords];
  };

  std::uint64_t mask_;
  std::unique_ptr<Slot[]> slots_;
  std::atomic<std::uint64_t> written_{0};
  mutable std::mutex names_mutex_;
  std::vector<std::string> names_;
};

}  // namespace troupe::runtime

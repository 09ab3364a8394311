#pragma once

// An actor's recent work: a ring of fixed-size binary records in memory. The actor's thread writes
// them and any thread reads them at any time. Writing a record costs a few stores and takes no
// lock.
//
// Two kinds: spans of time, and the sending of messages. The span in which a message is handled and
// the record of its sending, in another actor's ring, name the same TraceFlow.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"

namespace troupe::runtime {

// Identifies a message. No two messages that are traced at the same time have the same flow.
struct TraceFlow {
  // This bit of `link` marks a message that was sent past all links. Both its ends are on this
  // node; other nodes give the same two numbers to other messages. Without the bit, link - 1 is the
  // link's position in the plan.
  static constexpr std::uint32_t kWithinNode = std::uint32_t{1} << 31;

  std::uint32_t link = 0;    // 0: no message, or one whose other end is not known
  std::uint64_t number = 0;  // from 1, in the order of sending

  bool known() const { return link != 0; }
  bool within_node() const { return (link & kWithinNode) != 0; }
  auto operator<=>(const TraceFlow&) const = default;
};

// Five 64-bit words in the ring.
struct TraceRecord {
  std::uint32_t name = 0;  // of a span: index into the names of its ring, below 2^31
  TimePoint start{0};      // on the clock of the node
  TimePoint end{0};
  std::int64_t argument = 0;  // a number of the writer's choice: bytes, a step, a micro-batch
  TraceFlow flow{};           // of a span: the message that was handled in it
  // True: the record is no span, but says that the message `flow` of `argument` bytes was sent, at
  // `start` or later in the handler that began then.
  bool sent = false;
};

// A copy of a ring at one moment, complete in itself.
struct TraceSnapshot {
  std::vector<std::string> names;
  std::vector<TraceRecord> records;  // oldest first; every name is within names
  std::uint64_t written = 0;         // ever; written - records.size() were overwritten
};

struct ActorTrace {
  std::string name;
  TraceSnapshot trace;
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

  // Owner thread only: the one that runs the actor. A span; `name` is from name() of this ring.
  // Nothing when the ring is not enabled.
  void write(const TraceRecord& span);
  // Owner thread only: a message was sent.
  void write_sent(TraceFlow flow, TimePoint when, std::int64_t bytes);

  // Any thread, also while the owner writes. Records that were overwritten meanwhile are left out.
  TraceSnapshot snapshot() const;

 private:
  // Atomic so that a reader may race with the owner; it throws away what it may have seen half of.
  static constexpr std::size_t kWords = 5;
  static constexpr std::uint32_t kSent = std::uint32_t{1} << 31;  // in the place of the name
  struct Slot {
    std::atomic<std::uint64_t> words[kWords];
  };

  void write(std::uint32_t name, TraceFlow flow, TimePoint start, TimePoint end,
             std::int64_t argument);

  std::uint64_t mask_;
  std::unique_ptr<Slot[]> slots_;
  std::atomic<std::uint64_t> written_{0};
  mutable std::mutex names_mutex_;
  std::vector<std::string> names_;
};

inline void TraceRing::write(const TraceRecord& span) {
  if (enabled()) write(span.name, span.flow, span.start, span.end, span.argument);
}

inline void TraceRing::write_sent(TraceFlow flow, TimePoint when, std::int64_t bytes) {
  if (enabled()) write(kSent, flow, when, when, bytes);
}

// The count goes up after the words of its record and, by their release stores, before those of the
// next one: a reader that sees any word of record n also sees written_ >= n.
inline void TraceRing::write(std::uint32_t name, TraceFlow flow, TimePoint start, TimePoint end,
                             std::int64_t argument) {
  const std::uint64_t number = written_.load(std::memory_order_relaxed);
  Slot& slot = slots_[number & mask_];
  slot.words[0].store(name | std::uint64_t{flow.link} << 32, std::memory_order_release);
  slot.words[1].store(static_cast<std::uint64_t>(start.count()), std::memory_order_release);
  slot.words[2].store(static_cast<std::uint64_t>(end.count()), std::memory_order_release);
  slot.words[3].store(static_cast<std::uint64_t>(argument), std::memory_order_release);
  slot.words[4].store(flow.number, std::memory_order_release);
  written_.store(number + 1, std::memory_order_release);
}

}  // namespace troupe::runtime

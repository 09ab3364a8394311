#pragma once

// What the nodes of each pool have cost, how long they take to start, and how often they are lost.
// A node costs something from the moment that it is asked for until it is gone, but not while it
// waits for a machine.

#include <cstdint>
#include <map>
#include <string>

#include "actors/pool_book.h"
#include "runtime/base/clock.h"

namespace troupe::actors {

// Whether a node in this state costs something, or may do so.
bool is_costing(PoolNodeState state);

struct PoolAccount {
  double node_seconds = 0.0;   // that were paid for
  std::uint32_t costing = 0;   // nodes that cost something now
  std::uint32_t running = 0;   // nodes that train now
  std::uint32_t started = 0;   // nodes that came to train,
  double start_seconds = 0.0;  // and how long they took for it, all together
  std::uint32_t losses = 0;    // nodes that trained and went although nobody asked them to
  double longest_start = 0.0;  // seconds that the node takes that has been on its way longest
};

// One thread.
class CostBook {
 public:
  // The node is new, or has changed its state. What one that is new here says of its payment was
  // spent before. Returns the seconds for which it was paid so far.
  double note(const PoolNode& node, runtime::TimePoint now);
  PoolAccount account(const std::string& pool, runtime::TimePoint now) const;

 private:
  struct Entry {
    std::string pool;
    PoolNodeState state = PoolNodeState::kAsked;
    runtime::TimePoint asked{0};
    double paid = 0.0;            // seconds, until `since`
    runtime::TimePoint since{0};  // of the last change
    double paid_at(runtime::TimePoint now) const;
  };
  std::map<std::string, Entry> nodes_;       // by name
  std::map<std::string, PoolAccount> past_;  // by pool: nodes that are gone, starts and losses
};

}  // namespace troupe::actors

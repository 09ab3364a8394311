#pragma once

// What the nodes of each pool have cost, how long they take to start, and how often they are lost.
// A node costs something from the moment that it is asked for until it is gone, but not while it
// waits for a machine. Prices may change meanwhile.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/pool_node.h"
#include "runtime/base/clock.h"

namespace troupe::actors {

// Whether a node in this state costs something, or may do so.
bool is_costing(PoolNodeState state);

struct PoolAccount {
  Payment paid{};
  double price = 0.0;             // of a node for an hour, now
  std::uint32_t costing = 0;      // nodes that cost something now and are not being given back
  std::vector<double> leaving{};  // of each that is: for how many seconds
  std::uint32_t running = 0;      // nodes that train now
  std::uint32_t started = 0;      // nodes that came to train,
  double start_seconds = 0.0;     // and how long they took for it, all together
  std::uint32_t losses = 0;       // nodes that trained and went although nobody asked them to
  double longest_start = 0.0;     // seconds that the node takes that has been on its way longest
};

// One thread.
class CostBook {
 public:
  // What a node of the pool costs for an hour from now on; 0 before.
  void set_price(const std::string& pool, double price, runtime::TimePoint now);
  // The node is new, or has changed its state. What one that is new here says of its payment was
  // spent before. Returns what was paid for it so far.
  Payment note(const PoolNode& node, runtime::TimePoint now);
  PoolAccount account(const std::string& pool, runtime::TimePoint now) const;

 private:
  struct Entry {
    std::string pool;
    PoolNodeState state = PoolNodeState::kAsked;
    runtime::TimePoint asked{0};
    Payment paid{};                            // until `since`
    runtime::TimePoint since{0};               // of the last change, of its price too
    std::optional<runtime::TimePoint> leaves;  // it was given back then
  };
  Payment paid_at(const Entry& entry, runtime::TimePoint now) const;

  std::map<std::string, Entry> nodes_;       // by name
  std::map<std::string, PoolAccount> past_;  // by pool: nodes that are gone, starts and losses
};

}  // namespace troupe::actors

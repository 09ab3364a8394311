#pragma once

// A node that a run has asked a pool for, as the journal, the accounts and the book have it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::actors {

enum class PoolNodeState : std::uint8_t {
  kAsked,     // its start was decided, and may have been carried out
  kQueued,    // it waits for a machine
  kStarting,  // it has one
  kLearning,  // members have come, and learn the state
  kRunning,   // members train
  kDraining,  // they were asked to leave
  kStopping,  // its launcher was told to stop it
  kGone,
};
// "asked", "queued", ..., "ended" for one that is gone; and back.
const char* word_of(PoolNodeState state);
std::optional<PoolNodeState> pool_node_state(std::string_view word);

// For a node, until some moment.
struct Payment {
  double seconds = 0.0;
  double cost = 0.0;
};

struct PoolNode {
  std::string name;  // "hpc.3"
  std::string pool;
  PoolNodeState state = PoolNodeState::kAsked;
  std::string id{};     // the launcher's; "": not known yet
  std::string where{};  // the machine, for people
  std::string cause{};  // why it is stopped or gone, where nobody asked for it
  // CostBook's; of an adopted one: until it was adopted.
  Payment paid{};
  double price_per_node_hour = 0.0;
  bool was_there = true;  // false of one that is gone, and whose start has failed: it cost nothing

  bool is_gone() const { return state == PoolNodeState::kGone; }
  // Neither gone nor on its way out.
  bool is_present() const { return state < PoolNodeState::kDraining; }
};

// "hpc.3 (4711)", or that no id is known.
std::string text_of(const PoolNode& node);

}  // namespace troupe::actors

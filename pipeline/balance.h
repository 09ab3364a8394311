#pragma once

// Whether micro-batches should be shared out anew, by how fast replicas turned out to be. A pure
// function of what was measured; nothing that is trained depends on it.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe::pipeline {

// Micro-batches of an iteration a replica gets through per second; 0: it was not measured.
using Speeds = std::vector<double>;

// An iteration lasts as long as the replica that takes longest; another assignment is worth its
// change of View when it makes that shorter by this share.
inline constexpr double kWorthwhileGain = 0.1;

struct Balance {
  std::vector<std::uint64_t> weights;  // in proportion to the speeds, 1 at least; see below
  std::vector<std::uint32_t> owners;   // what comes of them
  double seconds_now = 0.0;            // of an iteration, by these speeds
  double seconds_then = 0.0;
};

// What assign_micro_batches() would make of the speeds of those that have owned micro-batches.
// `weights` are those so far, per replica: one of 0 keeps it, and one that was not measured counts
// as fast as the mean. `present`, per replica, may own something. None: an owner was not measured,
// or it would not be worthwhile.
std::optional<Balance> balance(std::span<const std::uint32_t> owners,
                               std::span<const std::uint64_t> weights, const Speeds& speeds,
                               const std::vector<bool>& present);

}  // namespace troupe::pipeline

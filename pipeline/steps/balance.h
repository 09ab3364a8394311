#pragma once

// Decides whether micro-batches should be shared out anew, by the measured speeds of replicas.
// Measured times decide here; no trained bit depends on the result.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe::pipeline {

// Micro-batches of an iteration a replica gets through per second; 0: it was not measured.
using Speeds = std::vector<double>;

// The part of an iteration that another assignment must save. An iteration lasts as long as its
// slowest replica.
struct WorthwhileGain {
  double share = 0.1;
  // Shorter iterations are left alone: a change of View halts all members for some milliseconds,
  // and the times of such iterations vary by as much anyway.
  double seconds = 0.005;
};

struct Balance {
  std::vector<std::uint64_t> weights;  // in proportion to the speeds, 1 at least; see below
  std::vector<std::uint32_t> owners;   // what comes of them
  double seconds_now = 0.0;            // of an iteration, by these speeds
  double seconds_then = 0.0;
};

// The weights for assign_micro_batches(), from the speeds of the replicas that have owned
// micro-batches. `weights` are the present ones, per replica. A weight of 0 stays, and a replica
// without a measurement counts as fast as the mean. `present` may own something, in this order by
// site (assign_micro_batches()).
// None: an owner was not measured, or the gain is too small.
std::optional<Balance> balance(std::span<const std::uint32_t> owners,
                               std::span<const std::uint64_t> weights, const Speeds& speeds,
                               const std::vector<std::uint32_t>& present,
                               const WorthwhileGain& gain = {}, std::uint32_t parts = 1);

// Gathers evidence until a change is justified. A round is over when all owners have told what they
// took for some iterations. A change has to be worthwhile by the speeds of each of some rounds in a
// row. By their mean it has to be worthwhile even if it takes longer by as much as the mean may be
// off, which is known by how far rounds differ. The next change has to gain twice as much, so that
// work does not wander to and fro; this lasts until other replicas are present. One thread.
class Balancer {
 public:
  static constexpr int kRounds = 3;  // at least

  // `parts`: see assign_micro_batches().
  explicit Balancer(std::size_t replicas, std::uint32_t parts = 1)
      : parts_(parts), told_(replicas), sums_(replicas) {}

  // The replica computed so many micro-batches in so many seconds, both over 0.
  void measure(std::uint32_t replica, double micro_batches, double seconds);

  // Drops all that was measured of the replica, which is in another process now.
  void forget(std::uint32_t replica);

  // Judges what was measured once a round is over. Arguments as for balance().
  std::optional<Balance> judge(std::span<const std::uint32_t> owners,
                               std::span<const std::uint64_t> weights,
                               const std::vector<std::uint32_t>& present);

 private:
  struct Pace {
    double micro_batches = 0.0, seconds = 0.0;
    double of_one = 0.0, of_one_squared = 0.0;  // seconds of a micro-batch, summed over rounds
    double speed() const { return seconds > 0.0 ? micro_batches / seconds : 0.0; }
  };
  static Speeds speeds(const std::vector<Pace>& paces);
  void add_round();
  // The standard error of the owners' mean times, relative to these.
  double error(std::span<const std::uint32_t> owners) const;

  std::uint32_t parts_;
  // `told_` belongs to the round under way, `sums_` to the rounds that count as evidence. A replica
  // that owns nothing any more keeps its last measured pace.
  std::vector<Pace> told_, sums_;
  std::vector<bool> fresh_ = std::vector<bool>(told_.size(), false);  // told since judged
  std::vector<std::uint32_t> present_;
  int rounds_ = 0;  // in a row whose speeds speak for a change
  bool has_shared_ = false;
};

}  // namespace troupe::pipeline

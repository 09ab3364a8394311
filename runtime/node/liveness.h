#pragma once

// How long a gate waits for signs of life. A busy host delays its processes, so the patience with
// silence grows from dead_after on with what is measured (patience.h). A process of this machine is
// known to live while its connection is open: it is only given up for the longest silence.
//
// A process that was stopped, or whose machine slept, has heard of nobody meanwhile. That is
// nobody's fault, and so it forgives the others the time it slept.

#include <optional>

#include "runtime/base/clock.h"
#include "runtime/node/gate_options.h"
#include "runtime/node/patience.h"
#include "runtime/node/peer.h"

namespace troupe::runtime {

// The gate's thread, which wakes at least once a heartbeat whenever it watches somebody.
class Liveness {
 public:
  // The options outlive it.
  Liveness(const GateOptions& options, TimePoint now) : options_(options), last_turn_(now) {}

  // A turn begins that waits until then at most.
  void begin_turn(TimePoint until) { turn_until_ = until; }
  // The turn's wait is over. How long this process slept, if it did. Measures the host's load.
  std::optional<Duration> end_turn(TimePoint now);
  TimePoint last_turn() const { return last_turn_; }
  // This process slept until a moment ago. Others may still have to come back and say that they
  // have gone on. What was waiting when it woke is heard before end_turn().
  bool just_woken(TimePoint now) const;

  // The peer has given a sign of life.
  void hear(Peer& peer, TimePoint now) const;
  // With a peer that is up or down. `closing`: this node ends.
  Duration patience_with(const Peer& peer, bool closing, TimePoint now) const;
  // With a peer that is up: this node asks others after it when it has been silent for so long.
  Duration patience_until_asked(const Peer& peer, TimePoint now) const;
  Duration patience_with_visitors(TimePoint now) const;
  // Threads of this host that run or want to, per processor: the largest mean over some seconds.
  double load(TimePoint now) const { return load_.value(now); }

 private:
  bool overslept(TimePoint now) const;

  const GateOptions& options_;
  TimePoint last_turn_;
  TimePoint turn_until_ = TimePoint::max();
  std::optional<TimePoint> woke_at_;  // from the newest sleep
  std::optional<double> mean_load_;
  FadingMaximum load_;
  TimePoint next_measure_{0};
};

}  // namespace troupe::runtime

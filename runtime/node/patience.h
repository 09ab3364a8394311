#pragma once

// How long a peer may be silent before it is given up. A busy host delays its processes, and a slow
// process must not be taken for a dead one; so the patience grows with what is measured, from
// dead_after up to kMost times as much.

#include "runtime/base/clock.h"

namespace troupe::runtime {

// The largest of the values that were added, each counting half as much after every minute. Values
// are not negative.
class FadingMaximum {
 public:
  void add(double value, TimePoint now);
  double value(TimePoint now) const;

 private:
  double value_ = 0.0;
  TimePoint at_{0};
};

// What a topology says of it, in cluster.failure.
struct SilenceOptions {
  // How often nodes tell each other that they live (rhythm.h), from 1 ms; default 500 ms.
  Duration heartbeat = std::chrono::milliseconds(500);
  // How long a peer may be silent, or its connection away, before it is lost, where nothing speaks
  // for more patience; more than twice the heartbeat; default 2 s.
  Duration dead_after = std::chrono::seconds(2);
};

class Patience {
 public:
  static constexpr int kMost = 10;

  explicit Patience(Duration dead_after) : dead_after_(dead_after) {}

  // The peer gave a sign of life so long after the one before; with a rhythm that is longer than a
  // heartbeat (rhythm.h), less that difference. Not below 0.
  void add_gap(Duration gap, TimePoint now) { gap_.add(static_cast<double>(gap.count()), now); }
  // Threads that run or want to, per processor of the peer's host.
  void add_load(double load, TimePoint now) { load_.add(load, now); }

  // With silence: at least three times the longest gap, and as many times dead_after as threads
  // wait for each processor. `own_load` is this host's load, which delays what it hears.
  Duration with_silence(TimePoint now, double own_load) const;
  // With a closed connection, which most often means that the process is dead: the load counts
  // alone.
  Duration with_absence(TimePoint now, double own_load) const;
  Duration most() const { return kMost * dead_after_; }

 private:
  Duration limited(double wanted) const;

  Duration dead_after_;
  FadingMaximum gap_, load_;
};

}  // namespace troupe::runtime

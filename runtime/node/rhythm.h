#pragma once

// How often this node and a peer tell each other that they live, and since when the peer is silent.
// The rhythm of two nodes is cluster.failure.heartbeat. The plan's first node, which is connected
// to all others, has a longer one with each when they are many, and says so in its signs of life;
// the other node follows. Silence counts from when a sign of life was due, less one heartbeat: with
// the shortest rhythm, from the last one.

#include <algorithm>
#include <cstddef>

#include "runtime/base/clock.h"

namespace troupe::runtime {

// So many peers give the plan's first node signs of life in a heartbeat, and as many hear it. Other
// things that all of them tell it regularly are told less often likewise.
inline constexpr std::size_t kPeersABeat = 32;

// The length of the first node's rhythm with each of so many peers; the shortest with few.
inline Duration rhythm_among(std::size_t peers, Duration shortest,
                             std::size_t peers_a_beat = kPeersABeat) {
  const std::size_t times = (peers + peers_a_beat - 1) / peers_a_beat;
  return static_cast<Duration::rep>(std::max<std::size_t>(1, times)) * shortest;
}

// The one with a peer that is up. Arithmetic.
class Rhythm {
 public:
  explicit Rhythm(Duration shortest) : shortest_(shortest), length_(shortest) {}

  // The two are connected: at the shortest rhythm, and this node is to speak now.
  void begin(TimePoint now) {
    length_ = shortest_;
    heard_ = counted_ = next_ = now;
    missed = was_longer_ = false;
  }
  Duration length() const { return length_; }
  bool is_longer() const { return length_ > shortest_; }
  // Since the two are connected.
  bool was_ever_longer() const { return was_longer_; }
  // From now on. Where it is the shortest, and was longer, both are to speak at once.
  void change(Duration length, TimePoint now) {
    if (length < length_) {
      counted_ = std::min(counted_, now + (length - shortest_));
      next_ = std::min(next_, now + (length - shortest_));
    } else {
      counted_ += length - length_;
    }
    length_ = length;
    was_longer_ = was_longer_ || is_longer();
  }
  void hear(TimePoint now) {
    heard_ = now;
    counted_ = now + (length_ - shortest_);
    missed = false;
  }
  // The peer's silence began then; in the future while nothing is due.
  TimePoint silent_from() const { return counted_; }
  TimePoint last_heard() const { return heard_; }
  // This node gives a sign of life.
  void speak(TimePoint now) { next_ = now + length_; }
  TimePoint next() const { return next_; }
  // This node slept for so long: nobody could be heard.
  void excuse(Duration pause, TimePoint now) {
    heard_ = std::min(heard_ + pause, now);
    counted_ = std::max(counted_, std::min(counted_ + pause, now));
  }

  // The plan's first node was told of this silence (Unheard in packets.h).
  bool missed = false;

 private:
  Duration shortest_, length_;
  TimePoint heard_{0}, counted_{0}, next_{0};
  bool was_longer_ = false;
};

}  // namespace troupe::runtime

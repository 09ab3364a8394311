#include "runtime/node/liveness.h"

#include <algorithm>
#include <utility>

namespace troupe::runtime {
namespace {

// What a sample weighs in the mean of those before it. With a heartbeat of 500 ms it is a mean over
// some 4 s: many threads that wake up together for a moment delay nobody for seconds.
constexpr double kSampleWeight = 1.0 / 8.0;

}  // namespace

// A turn that nothing bounds may take as long as nobody comes, and is no sleep.
bool Liveness::overslept(TimePoint now) const {
  const Duration least = options_.dead_after / 2;
  return now - last_turn_ >= least && turn_until_ <= now - (least - options_.heartbeat);
}

std::optional<Duration> Liveness::end_turn(TimePoint now) {
  if (options_.host_load && now >= next_measure_) {
    const double sample = options_.host_load();
    mean_load_ = mean_load_ ? *mean_load_ + kSampleWeight * (sample - *mean_load_) : sample;
    load_.add(*mean_load_, now);
    next_measure_ = now + options_.heartbeat;
  }
  const bool slept = overslept(now);
  const Duration pause = now - std::exchange(last_turn_, now);
  if (!slept) return std::nullopt;
  woke_at_ = now;
  return pause;
}

bool Liveness::just_woken(TimePoint now) const {
  return overslept(now) || (woke_at_ && now - *woke_at_ < 2 * options_.dead_after);
}

// A gap in which this process slept tells nothing of the peer.
void Liveness::hear(Peer& peer, TimePoint now) const {
  if (peer.state() == Peer::State::kUp && !overslept(now)) {
    peer.patience.add_gap(std::max(Duration(0), now - peer.rhythm.silent_from()), now);
  }
  peer.rhythm.hear(now);
}

Duration Liveness::patience_with(const Peer& peer, bool closing, TimePoint now) const {
  if (peer.state() != Peer::State::kUp) {
    // A node that ends goes without a peer whose connection is gone, however busy the hosts are.
    return closing ? options_.dead_after : peer.patience.with_absence(now, load(now));
  }
  const Duration own =
      peer.on_this_machine ? peer.patience.most() : peer.patience.with_silence(now, load(now));
  if (peer.rhythm.missed) return own + 2 * patience_until_asked(peer, now);
  return now < peer.watched_until ? std::max(own, peer.patience_of_others) : own;
}

Duration Liveness::patience_until_asked(const Peer& peer, TimePoint now) const {
  return peer.patience.with_silence(now, load(now)) / 2;
}

Duration Liveness::patience_with_visitors(TimePoint now) const {
  return Patience(options_.dead_after).with_absence(now, load(now));
}

}  // namespace troupe::runtime

#include "runtime/node/peer.h"

#include <algorithm>
#include <utility>

namespace troupe::runtime {

void Peer::enter(State state, TimePoint now) {
  state_ = state;
  since_ = now;
}

void Peer::found_at(std::string address, TimePoint now) {
  address_ = std::move(address);
  since_ = next_dial = now;
}

void Peer::come_up(ConnectionId by, std::uint64_t incarnation, TimePoint now) {
  connection = by;
  connected = true;
  incarnation_ = incarnation;
  rhythm.begin(now);
  watched_until = TimePoint(0);
  patience_of_others = Duration(0);
  ++connections_;
  enter(State::kUp, now);
}

// The packets that are kept are the last that were sent. A total below the first of them was told
// before and changes nothing; one above all that were sent is a fault.
bool Peer::acknowledged(const LaneCounts& received) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (received[lane] > sent_[lane]) return false;
    const std::uint64_t first = sent_[lane] - kept_[lane].size() + 1;
    for (std::uint64_t i = first; i <= received[lane]; ++i) {
      // Its credit is the receiver's now.
      kept_[lane].front().message.holds_credit_ = false;
      kept_[lane].pop_front();
    }
  }
  return true;
}

void Peer::go_down(const std::string& why, TimePoint now) {
  connection.reset();
  connected = ready = false;
  if (state_ != State::kUp) return;
  end_ = {ErrorKind::kLostPeers, why};
  enter(State::kDown, now);
}

void Peer::finish(State state, Error why, TimePoint now) {
  connection.reset();
  connected = ready = false;
  end_ = std::move(why);
  enter(state, now);
}

void Peer::meet_another() {
  incarnation_ = 0;
  met = false;
  sent_ = received_ = {};
}

void Peer::renew(std::string node, TimePoint now) {
  CHECK(over() ? all_acknowledged() : state_ == State::kAwaited, "nobody is there");
  if (over()) meet_another();
  node_ = std::move(node);
  address_.clear();
  end_ = {};
  connection.reset();
  connected = ready = false;
  patience = Patience(silence_.dead_after);
  rhythm = Rhythm(silence_.heartbeat);
  machine.clear();
  on_this_machine = is_done_with = invited = false;
  progress = 0;
  process.clear();
  graph.reset();
  connections_ = bytes_sent_ = bytes_received_ = 0;
  enter(State::kAwaited, now);
}

const Packet& Peer::keep(Lane lane, Kept kept) {
  ++sent_[index_of(lane)];
  bytes_sent_ += static_cast<std::int64_t>(kept.packet.bytes());
  kept_[index_of(lane)].push_back(std::move(kept));
  return kept_[index_of(lane)].back().packet;
}

bool Peer::all_acknowledged() const {
  return std::all_of(kept_.begin(), kept_.end(), [](const auto& lane) { return lane.empty(); });
}

Peer::Arrival Peer::arrival(Lane lane, std::uint64_t sequence, std::size_t bytes) {
  std::uint64_t& received = received_[index_of(lane)];
  if (sequence <= received) return Arrival::kAgain;
  if (sequence != received + 1) return Arrival::kGap;
  received = sequence;
  bytes_received_ += static_cast<std::int64_t>(bytes);
  return Arrival::kNext;
}

// Things that have happened since it woke up are not put off.
void Peer::excuse(Duration pause, TimePoint now) {
  rhythm.excuse(pause, now);
  since_ = std::min(since_ + pause, now);
}

PeerStats Peer::stats() const {
  static constexpr std::array<const char*, 6> kWords = {"awaited", "up",   "down",
                                                        "away",    "gone", "lost"};
  PeerStats stats;
  stats.node = node_;
  stats.state = kWords[static_cast<std::size_t>(state_)];
  stats.connections = connections_;
  stats.bytes_sent = bytes_sent_;
  stats.bytes_received = bytes_received_;
  return stats;
}

}  // namespace troupe::runtime

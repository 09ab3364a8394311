#pragma once

// What a node knows of one other node: the state of their connection, what has been sent and not
// yet acknowledged, what has arrived. Arithmetic without sockets; the Gate's thread.
//
//   awaited --hello/welcome--> up <--> down --patience--> lost
//                              up --bye--> gone
//
// Nobody is patient with a peer that the others go on without.
//
// And of the plan's first node, where another process may take its place:
//
//   up, down --patience--> away --hello/welcome of another process--> up
//                          away --head_returns_within--> lost
//
// And where another process may come in the place of one that is over, under a name of its own:
//
//   lost, gone --renew--> awaited
//
// The patience (runtime/node/patience.h) is dead_after or more.
//
// Every packet with a sequence number is kept until the peer has acknowledged it, so that a broken
// connection costs nothing: when there is a new one, both sides say what has arrived and send the
// rest again. Only a peer that stays away is lost, and what was kept for it goes back to its
// senders.

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/message.h"
#include "runtime/node/patience.h"
#include "runtime/node/rhythm.h"
#include "runtime/transport/packets.h"

namespace troupe::runtime {

struct PeerStats {
  std::string node;
  std::string state;  // "awaited", "up", "down", "away", "gone", "lost"
  std::int64_t connections = 0;
  // Bytes of packets with sequence numbers: headers and payloads.
  std::int64_t bytes_sent = 0, bytes_received = 0;
};

class Peer {
 public:
  enum class State : std::uint8_t { kAwaited, kUp, kDown, kAway, kGone, kLost };
  enum class Arrival : std::uint8_t {
    kNext,
    kAgain,  // known from an earlier connection
    kGap,    // something before it is missing
  };
  // A packet with a sequence number, and the message in it (empty: it was on its way back).
  struct Kept {
    Packet packet;
    Message message;
  };

  // `address`: where this node dials it; "" for one that dials this node, or of which nobody has
  // told yet.
  Peer(std::string node, std::string address, TimePoint now, const SilenceOptions& options)
      : patience(options.dead_after),
        rhythm(options.heartbeat),
        silence_(options),
        node_(std::move(node)),
        address_(std::move(address)),
        since_(now) {}

  // The name of its process (process_name() in plan.h).
  const std::string& node() const { return node_; }
  const std::string& address() const { return address_; }
  // By this node, and not the other way round.
  bool dialed() const { return !address_.empty(); }
  // This node is to dial it there. How long it is tried counts from now on.
  void found_at(std::string address, TimePoint now);
  State state() const { return state_; }
  bool over() const { return state_ == State::kGone || state_ == State::kLost; }
  // When the state was entered, and why it is over.
  TimePoint since() const { return since_; }
  const Error& end() const { return end_; }
  std::uint64_t incarnation() const { return incarnation_; }

  // The peer has introduced itself over this connection.
  void come_up(ConnectionId connection, std::uint64_t incarnation, TimePoint now);
  // What the other end says has arrived; false: more than was sent.
  bool acknowledged(const LaneCounts& received);
  void go_down(const std::string& why, TimePoint now);
  // Gone or lost: this process is. Away: and another process may come in its place.
  void finish(State state, Error why, TimePoint now);
  // It has come, and has neither sent nor heard anything.
  void meet_another();
  // Another process is awaited in its place, under that name. CHECKs that this one is over or never
  // came. Messages for one that never came are kept for the next.
  void renew(std::string node, TimePoint now);

  // The connection in use, or being made.
  std::optional<ConnectionId> connection;
  // Whether it was made, so that its end says nothing about the next one.
  bool connected = false;
  // Whether the other end is known to have taken notice of our introduction, so that packets with
  // sequence numbers will not overtake it.
  bool ready = false;
  // Whether that was ever so: it has met this process, and will say so.
  bool met = false;

  std::uint64_t next_sequence(Lane lane) const { return sent_[index_of(lane)] + 1; }
  // The packet has the next sequence number of the lane.
  const Packet& keep(Lane lane, Kept kept);
  std::deque<Kept>& kept(Lane lane) { return kept_[index_of(lane)]; }
  bool all_acknowledged() const;

  Arrival arrival(Lane lane, std::uint64_t sequence, std::size_t bytes);
  const LaneCounts& received() const { return received_; }

  // Signs of life.
  Patience patience;
  Rhythm rhythm;
  // At the plan's first node, since another one has missed it: until then the rhythm is the
  // shortest, however many peers there are, and it is given as much patience as those have who hear
  // it often.
  TimePoint watched_until{0};
  Duration patience_of_others{0};
  // As its Introduction has it.
  std::string machine;
  // It runs on the same machine: while its connection is open, its process is not dead.
  bool on_this_machine = false;
  // This node itself was asleep for so long: nobody could be heard.
  void excuse(Duration pause, TimePoint now);
  std::uint64_t progress = 0;

  std::string process;  // for people: "process 17 on node-a"; "" before it has introduced itself
  TimePoint next_dial{0};
  // The others go on without it, as the head knows: no new connection is waited for.
  bool is_done_with = false;
  // A process was asked to come as this node.
  bool invited = false;
  std::optional<WaitGraph> graph;  // the newest answer
  PeerStats stats() const;

 private:
  void enter(State state, TimePoint now);

  SilenceOptions silence_;
  std::string node_;
  std::string address_;
  State state_ = State::kAwaited;
  TimePoint since_;
  Error end_;
  std::uint64_t incarnation_ = 0;
  LaneCounts sent_{}, received_{};
  std::array<std::deque<Kept>, kLanes> kept_;
  std::int64_t connections_ = 0, bytes_sent_ = 0, bytes_received_ = 0;
};

}  // namespace troupe::runtime

#pragma once

// The ends here of all links that cross to other nodes, and the messages on them. Actors' threads
// post messages; the gate's thread makes envelopes of these, and delivers the envelopes that come.
//
// A peer is meant by its position among the gate's peers, a link by its position in the plan.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/trace.h"
#include "runtime/message.h"
#include "runtime/node/remote_link.h"
#include "runtime/plan.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

class NodeCore;

// A message that waits for the gate's thread.
struct Outgoing {
  std::size_t peer = 0;
  RemoteOutlet* link = nullptr;  // none: past all links, or on the way back
  std::string target;            // actor, of what is sent past all links
  std::optional<Error> cause;    // on the way back
  Message message;
};

// Something else that waits for it.
struct PeerWish {
  enum class Kind : std::uint8_t { kMeet, kGoOnWithout, kRenew };
  Kind kind = Kind::kMeet;
  std::size_t peer = 0;
  std::string renewed_as;  // another process may come in its place, called so
};

// All that waits for it, in order of posting; messages are posted before wishes of the other
// kinds, as far as one actor does both.
struct Posted {
  std::vector<Outgoing> messages;
  std::vector<PeerWish> wishes;
  std::vector<std::size_t> accounts;  // peers that are to be told what was given back
};

// A message that is ready to leave.
struct Sealed {
  Lane lane = Lane::kControl;
  Envelope envelope;
};

class RemoteLinks {
 public:
  // `node`: the own one's name. The references outlive it.
  RemoteLinks(std::string node, NodeCore& core, Wire& wire, const Log& log)
      : node_(std::move(node)), core_(core), wire_(wire), log_(log) {}

  // Before the gate's first turn.
  void add_peer();
  Outlet& add_outlet(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port,
                     std::size_t peer);
  void add_inlet(std::uint32_t link, const LinkPlan& plan, std::size_t peer, Cell& to);
  // An actor elsewhere.
  void add_actor(const std::string& actor, std::size_t peer);

  // Any thread. A message on a link holds its credit. It leaves with the gate's next turn, in the
  // order of posting per link; one that cannot comes back through Actor::undeliverable().
  void post(Outgoing outgoing);
  // Any thread. To an actor elsewhere, past all links; false: no such actor (untouched).
  bool post_control(const std::string& actor, Message& message);
  // Any thread.
  void wish(PeerWish wish);
  // Any thread. A message from elsewhere could not be delivered here.
  void send_back(Message&& message, const Error& cause);
  // Any thread. Credits were given back.
  void account_due(std::size_t peer);

  // Any thread. Adds what the links tell to the node's own graph. Nobody waits for a node that has
  // not come up, or has ended.
  void add_to(WaitGraph& graph) const;
  // Any thread: of each link, the end that is here.
  std::vector<LinkStats> stats() const;
  // Any thread. The same message has one flow at both of its ends from then on, or none.
  void settle_flows(TraceSnapshot& trace) const;

  // The gate's thread from here on.
  // The peer is connected, maybe again: it may not have heard of the credits that it was told of.
  void came_up(std::size_t peer);
  void ended(std::size_t peer) { *here_[peer] = false; }
  Posted take_posted();
  // Makes an envelope of it. Nothing: the process that sent a message that goes back is gone.
  std::optional<Sealed> seal(Outgoing& outgoing, const LaneCounts& received);
  // It cannot leave, since its peer is over or away: it goes back to its sender.
  void bounce(Outgoing& outgoing, const std::string& node, const Error& cause);
  // A message that the peer never acknowledged goes back to its sender.
  void return_kept(Message message, const Error& cause);
  // Delivers an envelope of that peer. Returns what rule it breaks, "" if none.
  std::string deliver(std::size_t peer, Lane lane, Envelope& envelope);
  // Credits that the peer has not been told of. Nothing: no account is due to it.
  std::optional<std::vector<LinkCredit>> account_for(std::size_t peer);
  // The peer has given them back. False: it never had them.
  bool heard(std::size_t peer, const std::vector<LinkCredit>& credits);
  // The peer is over: what it held gives its credit back.
  void forget(std::size_t peer);
  // Another process may come in the peer's place, and all its links begin anew.
  void begin_anew(std::size_t peer);

 private:
  std::string deliver_back(std::size_t peer, Envelope& envelope);
  // True: none was due to it yet.
  bool make_account_due(std::size_t peer);

  const std::string node_;
  NodeCore& core_;
  Wire& wire_;
  const Log& log_;

  // Fixed before the first turn.
  std::map<std::string, std::size_t> actors_;  // peers, by actor elsewhere
  std::map<std::uint32_t, std::unique_ptr<RemoteInlet>> inlets_;
  std::vector<std::vector<RemoteInlet*>> inlets_from_;  // by peer
  std::map<std::uint32_t, std::unique_ptr<RemoteOutlet>> outlets_;
  std::map<std::string, std::unique_ptr<RemoteOrigin>> senders_;  // by actor elsewhere
  std::vector<std::unique_ptr<RemoteOrigin>> outsiders_;          // by peer: no actor there
  std::vector<std::unique_ptr<std::atomic<bool>>> accounts_due_;  // by peer
  std::vector<std::unique_ptr<std::atomic<bool>>> here_;          // by peer: has come, is not over

  std::mutex posted_mutex_;
  Posted posted_;

  std::map<std::uint32_t, std::uint64_t> credits_told_;  // messages, by link; the gate's thread
};

}  // namespace troupe::runtime

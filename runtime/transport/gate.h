#pragma once

// Where a node's messages leave for other nodes and theirs come in: introductions, sequence numbers
// and acknowledgements, credits across the wire, signs of life. Actors cannot tell a link that goes
// through here from one that does not.
//
// One thread drives it (turn()); actors' threads post to it. It is the node's own; see node.h.
//
// Who meets whom. Every node dials the plan's first one. Of two others that share links, one dials
// the other when the first node has told both of each other: where they are, and which process of
// which key they are (Directory in packets.h). It is told in turns: whoever is dialed has said
// before that it knows the dialer. Which of them dials, the first node says: the one that cannot be
// dialed, or else can less well (Reach in whereabouts.h); of equals the one that the plan names
// later. So a node need not listen at all, as long as the others do.
//
// Failure is noticed by three signals: a closed connection that does not come back, silence, and a
// peer's own word. A busy host delays its processes, so the patience with silence grows from
// dead_after on with what is measured (patience.h). A process of this machine is known to live
// while its connection is open: it is only given up for the longest silence. A lost peer is lost
// for good: what was kept for it comes back undeliverable, what it held gives its credit back, and
// the node's root actor is told PeerLost.
//
// Only in the place of the plan's first node another process may come, which says that it knows
// whom the one before it knew (predecessors). Until it does the first node is away: what is said to
// it comes back; nodes that have met go on without it, and others cannot meet.
//
// The end. A Bye is said when everything that was sent is acknowledged, and is not acknowledged
// itself, for nothing hangs on it: if the connection breaks under it, the other end has all that
// this one ever sent, and what it still sends comes back to its senders either way. It only learns
// dead_after later that this node is gone, as PeerLost in place of PeerLeft.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/trace.h"
#include "runtime/message.h"
#include "runtime/plan.h"
#include "runtime/transport/drain.h"
#include "runtime/transport/fellowship.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/peer.h"
#include "runtime/transport/remote_link.h"
#include "runtime/transport/whereabouts.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/wire_types.h"

namespace troupe::runtime {

class NodeCore;

// What the Gate tells the node's root actor, on the control lane from outside. Of each peer
// PeerJoined once, and then one of the others once; those also of one that never came. Of the
// plan's first node PeerAway may come in between, and PeerJoined once more after each. And, at the
// plan's first node, what a process that is no node asks of it (DrainAsked in drain.h).
struct PeerJoined {
  static constexpr std::string_view kName = "peer-joined";
  std::string node, host, address;
  std::uint64_t pid = 0;
};
struct PeerLost {
  static constexpr std::string_view kName = "peer-lost";
  std::string node;
  // kLostPeers for what happens to processes and networks; as a refusal says, or kUsage where the
  // two cannot be meant to work together.
  Error error;
  bool unheard = false;  // nothing was heard of it any more, nor did it refuse this node
};
// It said that it has nothing more to do here; or it had not come yet, and the plan's first node,
// which alone could have told of it, said that it has ended, or is gone itself.
struct PeerLeft {
  static constexpr std::string_view kName = "peer-left";
  std::string node;
};

// The plan's first node is given up, and another process may take its place. None of what it had
// not acknowledged will arrive.
struct PeerAway {
  static constexpr std::string_view kName = "peer-away";
  std::string node;
  Error error;
};

struct GateOptions {
  // This node's name in the plan.
  std::string node;
  // Where the plan's first node is dialed; "" on that node itself.
  std::string first_address;
  // Of this process, drawn at its start; not 0. Whoever has the same key and knows it can pose as
  // this process towards the plan's first node, so nobody else is told.
  std::uint64_t incarnation = 1;
  // At the plan's first node: by which number, not 0, two others that share links know each other;
  // nobody can guess it, and for the same two it is the same in the process that takes this one's
  // place. The driving thread, once for every two, in either order. Default: drawn by the system.
  std::function<std::uint64_t(const std::string& one, const std::string& other)> draw;
  // At the plan's first node: incarnations of the processes whose place this one takes. Default
  // none: nodes that have met another one are refused.
  std::vector<std::uint64_t> predecessors;
  // At the plan's first node: a node has given this process up, which stood still, and waits for
  // another in its place. Whoever can starts one, and ends this. Not asked when it has not stood
  // still: one node's trouble is that node's. On the driving thread; calls nothing of the gate.
  // Null: never; the node is answered, and ends.
  std::function<void(const std::string& node)> given_up_by;
  // At all others: how long the plan's first node may be away before it is lost. Default 0: it is
  // lost at once.
  Duration first_returns_within{0};
  // For people.
  std::string host;
  std::uint64_t pid = 0;
  // See Introduction. Default: every peer counts as one of another machine.
  std::string machine;
  // Threads of this host that run or want to, per processor; asked once a heartbeat, on the driving
  // thread. Null: 0.
  std::function<double()> host_load;
  // What all nodes must have in common. Another value at the other end is refused, naming both.
  std::vector<Term> terms;
  // How often a sign of life is given.
  Duration heartbeat = std::chrono::milliseconds(500);
  // How long a peer may be silent, or its connection away, before it is lost, where nothing speaks
  // for more patience; over 2 heartbeats.
  Duration dead_after = std::chrono::seconds(2);
  // How long a node that it dials may take to answer for the first time.
  Duration dial_within = std::chrono::seconds(60);
  // How long acknowledgements are waited for when the node has ended.
  Duration close_within = std::chrono::seconds(5);
  // At the plan's first node: whether a host, as a number, is this machine, so that whoever comes
  // from there is on it; the driving thread. Default: only loopback is.
  std::function<bool(const std::string& host)> is_this_machine;
  // What a process that asks to be a node is answered; `awaited` are the nodes that have not come
  // yet, in the plan's order. Default: it is refused.
  std::function<Result<EnrolmentAnswer>(const Enrolment& enrolment,
                                        const std::vector<std::string>& awaited)>
      invite;
  // Told of the nodes that share links with this one and have not ended, whenever the plan's first
  // node tells of them, and before any of them is told to dial: from then on they are to be let in.
  // On the driving thread; calls nothing of the gate. May be null.
  std::function<void(const std::vector<DirectoryEntry>& fellows)> on_directory;
};

// What peers send is not trusted: whatever breaks a rule costs its sender the connection, or its
// place in the run, and nothing else. Nothing here throws.
class Gate final : public WireEvents {
 public:
  // `plan` is that of all nodes. The others outlive the gate; nothing is dialed before the first
  // turn(). CHECKs an incarnation, that dead_after is over two heartbeats, and that it is known
  // where to dial the plan's first node.
  Gate(NodeCore& core, const Plan& plan, GateOptions options, Wire& wire, const WireTypes& types,
       const Clock& clock, const Log& log);
  ~Gate() override;

  // Before the first turn(), for each link that has one end here; positions are those of the whole
  // plan. The peer is added when it is new.
  Outlet& add_outlet(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port,
                     const std::string& to_node);
  void add_inlet(std::uint32_t link, const LinkPlan& plan, const std::string& from_node, Cell& to);
  // An actor elsewhere, and the node it lives on.
  void add_actor(const std::string& actor, const std::string& node);
  void add_peer(const std::string& node);

  // Any thread. The message holds its credit. It leaves with the next turn(), in the order of
  // posting per link; one that cannot comes back through Actor::undeliverable().
  void post(RemoteOutlet& link, Message&& message);
  // Any thread. To an actor elsewhere, past all links; false: no such actor (untouched).
  bool post_control(const std::string& actor, Message& message);
  // Any thread. A message from elsewhere could not be delivered here.
  void send_back(Message&& message, const Error& cause);
  // Any thread. Credits were given back.
  void account_due(std::size_t peer);
  // Any thread. The next turn() does not wait.
  void wake() { wire_.wake(); }

  // The driving thread, until closed(): one round of what has come and what is to go, waiting for
  // it until `until` at most. Dialing a name for the first time may take as long as the system's
  // resolver likes: other threads do not wait for that, but heartbeats do. Only the plan's first
  // node may be given as a name, and nobody else has been met when it is dialed.
  void turn(TimePoint until);
  // Any thread. When turn() has something to do at the latest; max() when it is closed.
  TimePoint next_due() const;
  // Any thread. The node has ended: says the rest, waits for its acknowledgement, says goodbye.
  void begin_close();
  bool closed() const { return closed_.load(); }

  // Any thread. What peers have last told of their progress, all together.
  std::int64_t peers_progress() const { return peers_progress_.load(); }
  // Any thread. Asks all peers for their wait-for graphs anew.
  void request_graphs() { graphs_asked_.store(true), wake(); }
  // Any thread. Those that have come since; `complete`: from every peer that is up.
  struct Graphs {
    std::vector<WaitGraph> graphs;
    bool complete = false;
  };
  Graphs graphs() const;
  // Any thread, also after the end.
  std::vector<PeerStats> peer_stats() const;
  // Any thread. Adds what links to and from other nodes tell to the node's own graph. Nobody waits
  // for a node that has not come, or has ended.
  void add_to(WaitGraph& graph) const;
  // Any thread, also after the end: of each link, the end that is here.
  std::vector<LinkStats> link_stats() const;
  // Any thread, also after the end. The same message has one flow at both of its ends from then on,
  // or none.
  void settle_flows(TraceSnapshot& trace) const;

  // See WireEvents; called by the wire within turn().
  void connected(ConnectionId connection, const ConnectionInfo& info) override;
  void arrived(ConnectionId connection, Lane lane, Packet packet) override;
  void arriving(ConnectionId connection) override;
  void disconnected(ConnectionId connection, const Error& why) override;

 private:
  // What actors' threads leave for the driving thread.
  struct Outgoing {
    std::size_t peer = 0;
    RemoteOutlet* link = nullptr;  // none: past all links, or on the way back
    std::string target;            // actor, of what is sent past all links
    std::optional<Error> cause;    // on the way back
    Message message;
  };
  // A connection that has not introduced itself.
  struct Stranger {
    ConnectionInfo info;
    TimePoint since;
  };
  // One that has asked for a node to leave, and waits for the answer.
  struct Drain {
    std::string who;
    std::string node;
  };

  // A peer is meant by its position in peers_, which it keeps.
  std::size_t peer_of(const std::string& node);
  std::optional<std::size_t> find_peer(ConnectionId connection) const;
  void push(Outgoing outgoing);

  // All from here on is the driving thread's, which holds peers_mutex_ but while it dials.
  //
  // gate_sending.cpp: what was posted goes out as parcels, which are kept until they are
  // acknowledged; what cannot go out bounces.
  void take_outgoing();
  void send_out(Outgoing& outgoing);
  void send_parcel(Peer& peer, Lane lane, Parcel parcel, bool returned);
  void send_account(std::size_t position);
  void bounce(Outgoing& outgoing);
  void return_kept(std::size_t position);

  // gate_arrivals.cpp: parcels are delivered, or go back to actors here who could not be heard.
  void take_parcel(std::size_t position, Lane lane, Parcel& parcel);
  void deliver(std::size_t position, Lane lane, Parcel& parcel);
  void take_back(std::size_t position, Parcel& parcel);
  void take_account(std::size_t position, const Account& account);
  void take_packet(std::size_t position, Lane lane, AnyPacket& packet);
  Origin* origin_of(std::size_t position, const Parcel& parcel);

  // gate_peers.cpp. objection(): why whoever introduces itself so cannot work with this node.
  void introduce(ConnectionId connection, AnyPacket& packet);
  void answer_hello(ConnectionId connection, const Stranger& stranger, const Hello& hello);
  void answer_enrolment(ConnectionId connection, const Stranger& stranger,
                        const Enrolment& enrolment);
  void refuse(ConnectionId connection, const std::string& who, Error error);
  std::optional<Error> objection(const Introduction& other) const;
  void take_welcome(std::size_t position, ConnectionId connection, const Welcome& welcome);
  // By which `peer` knows this process.
  std::uint64_t own_incarnation(const Peer& peer) const;
  Introduction introduction_for(const Peer& peer) const;
  void come_up(std::size_t position, ConnectionId connection, const ConnectionInfo& info,
               const Introduction& other);
  void become_ready(Peer& peer);
  // The connection goes; the peer may come back over another one.
  void cut(std::size_t position, const std::string& why);
  // The peer is over: for good, with an error or as it should be.
  void lose(std::size_t position, Error error, bool unheard = false);
  // Nothing is heard of the peer any more: it is lost, or away if another process may come.
  void give_up(std::size_t position, Error error);
  bool may_return(const Peer& peer) const;
  // Forgets all that was between the process that was the peer and this one.
  void let_go(std::size_t position, Error error);
  void part_from(Peer& peer);
  void leave(std::size_t position);
  void tell_root(Message message);

  // gate_drain.cpp: who is no node asks that one leave, and waits until the root actor answers.
  std::optional<Error> objection_to_drain(const Stranger& stranger,
                                          const DrainRequest& request) const;
  void answer_drain_request(ConnectionId connection, const Stranger& stranger,
                            const DrainRequest& request);
  void tell_drained();
  void refuse_drains();

  // gate_directory.cpp: nodes that share links get to know each other through the first one.
  bool is_first() const { return options_.node == fellowship_.first(); }
  void tend_directory();
  void make_directory_due(const std::string& node);
  void send_directory(Peer& peer);
  // Of two that have come: what is so between them, once and for all.
  struct Pair {
    std::uint64_t incarnation = 0;  // by which they know each other
    std::string dialer;
  };
  const Pair& pair_of(const Peer& one, const Peer& other);
  std::string dialer_of(const Peer& one, const Peer& other) const;
  void take_directory(std::size_t position, const Directory& directory);
  void take_directory_heard(std::size_t position, const DirectoryHeard& heard);
  std::string fault_of(const Peer& sender, const Directory& directory) const;
  // Why whoever introduces itself so with that key is not the node that was told of.
  std::optional<Error> not_as_told(const Peer& peer, const Introduction& other,
                                   const std::string& key) const;
  void dial_fellow(std::size_t position);
  // At the first node: why whoever comes from there as `peer` could not meet its fellows.
  std::optional<Error> cannot_be_met(const Peer& peer, const ConnectionInfo& info,
                                     const std::string& address) const;
  Whereabouts whereabouts(const std::string& node, const std::string& address,
                          const std::string& from) const;
  // Whom else it concerns that a peer has come, or is over.
  void tell_of_coming(Peer& peer, const ConnectionInfo& info, const Introduction& other);
  void tell_of_end(const Peer& peer);

  // gate.cpp: what is due because time has passed.
  void tend(TimePoint now);
  void tend_peer(std::size_t position, TimePoint now);
  void dial_due();
  void hear(Peer& peer);
  Duration patience_with(const Peer& peer, TimePoint now) const;
  Duration patience_with_strangers(TimePoint now) const;
  void measure_load(TimePoint now);
  bool has_overslept(TimePoint now) const;
  void excuse_own_sleep(TimePoint now);
  bool has_just_woken() const;
  void tend_closing(TimePoint now);
  // The node ends: false if there is still something to wait for.
  bool say_goodbye(std::size_t position);
  bool say_goodbyes();

  NodeCore& core_;
  const GateOptions options_;
  Wire& wire_;
  const WireTypes& types_;
  const Clock& clock_;
  Log log_;
  const Fellowship fellowship_;
  const std::shared_ptr<DrainAnswers> drain_answers_;

  // Fixed before the first turn().
  std::map<std::string, std::size_t> positions_;  // of peers, by node
  std::map<std::string, std::size_t> actors_;     // peers, by actor
  std::map<std::uint32_t, std::unique_ptr<RemoteInlet>> inlets_;
  std::map<std::uint32_t, std::unique_ptr<RemoteOutlet>> outlets_;
  std::map<std::string, std::unique_ptr<RemoteOrigin>> senders_;  // by actor elsewhere
  std::vector<std::unique_ptr<RemoteOrigin>> outsiders_;          // by peer: no actor there
  std::vector<std::unique_ptr<std::atomic<bool>>> accounts_due_;  // by peer
  std::vector<std::unique_ptr<std::atomic<bool>>> here_;          // by peer: has come, is not over

  std::mutex outgoing_mutex_;
  std::vector<Outgoing> outgoing_;

  // The driving thread's; read by others under peers_mutex_, which it holds while it changes them.
  mutable std::mutex peers_mutex_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<ConnectionId, Stranger> strangers_;
  std::map<ConnectionId, Drain> drains_;
  std::map<ConnectionId, std::size_t> by_connection_;
  std::map<std::uint32_t, std::uint64_t> credits_told_;  // messages, by link
  TimePoint last_turn_{0};
  TimePoint turn_until_ = TimePoint::max();  // the newest turn was to wait no longer
  FadingMaximum load_;                       // of this host
  TimePoint next_measure_{0};
  std::optional<TimePoint> woke_at_;  // from the newest own sleep; none: there was none
  std::vector<std::size_t> to_dial_;  // peers
  std::vector<Outgoing> taken_;
  // At the plan's first node: of the directory, and of every two others by their names in order.
  std::uint64_t edition_ = 0;
  std::map<std::pair<std::string, std::string>, Pair> pairs_;

  std::atomic<std::int64_t> peers_progress_{0};
  std::atomic<bool> graphs_asked_{false};
  std::atomic<bool> closing_{false};
  std::atomic<bool> closed_{false};
  TimePoint close_by_ = TimePoint::max();
};

}  // namespace troupe::runtime

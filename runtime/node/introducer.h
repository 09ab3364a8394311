#pragma once

// Nodes that share links find and trust each other through the head, which is the plan's first
// node.
//
// Nodes are connected when one of them wants it: it has something to say to the other. It tells
// the head (Wanted in packets.h). When the head has met both, it tells each of the other (Directory
// in packets.h): where it is, which key it has proven, and by which incarnation the two know each
// other. The node that is to be dialed answers that it has heard; then the other one is told to
// dial. When a node ends, those that are to be connected to it hear that too, so that nobody waits
// for a node that cannot come. So a node's connections and what it is told grow with those that it
// talks to, and not with the nodes of the plan.
//
// One of the two dials: the one that cannot be dialed, or can less well (Reach in whereabouts.h);
// of equals the one that the plan names later. So a node need not listen at all, as long as the
// others do.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/node/gate_options.h"
#include "runtime/plan.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/whereabouts.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

// Which nodes of a plan have to do with each other: every one with the plan's first node, and
// besides with its neighbours, those that it shares links with. Fixed when it is made; any thread.
class Neighbours {
 public:
  // The plan passes check().
  explicit Neighbours(const Plan& plan);

  const std::string& first() const { return first_; }
  // Whether the node dials the other when both can be dialed equally well: the plan names it later.
  // CHECKs that the plan has both.
  bool dials(const std::string& node, const std::string& other) const;
  // None of the first node, and of nodes that share links with no other.
  std::set<std::string> neighbours_of(const std::string& node) const;
  bool are_neighbours(const std::string& one, const std::string& other) const;
  bool has_neighbours(const std::string& node) const;

 private:
  std::string first_;
  std::map<std::string, std::size_t> ranks_;
  std::map<std::string, std::set<std::string>> neighbours_;  // by single links
  std::vector<std::set<std::string>> meshes_;  // two nodes or more, all neighbours of each other
};

// A peer is meant by its position among the gate's peers. The gate's thread.
class Introducer {
 public:
  // The plan passes check(). `node`: this one's name. The keeper outlives it.
  Introducer(const Plan& plan, std::string node, Gatekeeper& keeper)
      : node_(std::move(node)), keeper_(keeper), neighbours_(plan) {}

  bool is_head() const { return node_ == neighbours_.first(); }
  const std::string& head() const { return neighbours_.first(); }
  // In the order of the positions.
  void add_peer(const std::string& node);
  // At other nodes than the head: the peer is a neighbour, which only the head can tell of.
  bool is_neighbour(std::size_t peer) const { return !is_head() && known_[peer].shares_links; }

  // The head's part.
  // Why a new process that gives that address could not meet its neighbours. `own_address`: the
  // head's.
  std::optional<Error> objection(std::size_t peer, const ConnectionInfo& info,
                                 const std::string& address, const std::string& own_address) const;
  // The peer wants these nodes to be introduced to it, or whoever is in their place by now. The
  // rule that it breaks; "": none.
  std::string introduce(std::size_t peer, const Wanted& wanted);
  // The peer has come for the first time.
  void came(std::size_t peer, const ConnectionInfo& info, const std::string& address);
  // The peer is connected, maybe again: it may not have heard what it was told before.
  void connected(std::size_t peer) {
    if (is_head()) due_.insert(peer);
  }
  // Peers for which something is new since the last call, ascending. One that is not connected is
  // told when it is.
  std::set<std::size_t> take_due() { return std::exchange(due_, {}); }
  // All that a peer is to be told, if anything.
  std::optional<Directory> directory_for(std::size_t peer);
  // The peer asks for something about these nodes: the rule that it breaks; "": none.
  std::string fault_of_asking(std::size_t peer, const std::vector<std::string>& nodes) const;
  // The peer has heard an edition. False: it was not told of it.
  bool heard(std::size_t peer, std::uint64_t edition);

  // The others' part.
  // This node has something to say to the peer. True: the head is to be told of it.
  bool want(std::size_t peer);
  // All that the head is to introduce. One that has ended may have another process in its place,
  // which this node has not heard of.
  Wanted wanted() const;
  // The rule that a directory from `sender` breaks; "": none.
  std::string fault_of(std::size_t sender, const Directory& directory) const;
  // Neighbours that it calls otherwise than before, because another process comes in their place:
  // renew() is called for each before learn(). `introduced`: it has come, and the two are to meet.
  struct Renamed {
    std::size_t peer = 0;
    std::string name;
    bool introduced = false;
  };
  std::vector<Renamed> renamed_in(const Directory& directory) const;
  struct Learned {
    std::vector<std::size_t> to_dial;
    std::vector<std::size_t> ended;
  };
  // Takes over what it says. CHECKs that it has no fault.
  Learned learn(const Directory& directory);
  // Those that the head has told of and that are not over.
  std::vector<DirectoryEntry> neighbours() const;
  // Where the neighbour is dialed, with its key; "" when it does not listen.
  std::string address_of(std::size_t peer) const;
  // By which number the two know each other; 0: the head has not told of it yet.
  std::uint64_t incarnation_with(std::size_t peer) const { return known_[peer].entry.incarnation; }
  // Why the process that introduces itself so is not the neighbour that the head has told of.
  std::optional<Error> objection_to(std::size_t peer, const Introduction& other,
                                    const std::string& key) const;

  // The key that the peer has proven.
  const std::string& key_of(std::size_t peer) const { return known_[peer].entry.key; }
  // The peer is over.
  void ended(std::size_t peer);
  // Another process may come in the peer's place, under that name. Those that were to meet the one
  // before it are told the name, and meet the new one when one of the two wants it.
  void renew(std::size_t peer, const std::string& name);
  // The peer of that name, or in whose place the process of that name was or will be.
  std::optional<std::size_t> find(std::string_view name) const;

 private:
  struct Known {
    std::string node;           // as its process is called
    std::string place;          // as the plan calls it
    bool shares_links = false;  // with another node than the head
    bool over = false;
    // At the head without an incarnation, since there is one for each node that is told.
    DirectoryEntry entry;
    bool wanted = false;  // by this node; not at the head
    // At the head.
    Whereabouts whereabouts;
    bool here = false;  // it has come
    std::uint64_t edition_told = 0, edition_heard = 0;
    std::set<std::size_t> meets;    // peers that want it, or that it wants
    std::set<std::size_t> renamed;  // peers it may know by the name of an earlier process
  };
  // Facts about two nodes that have come and are to meet, settled once and for all.
  struct Pair {
    std::uint64_t incarnation = 0;
    std::string dialer;
    std::uint64_t edition = 0;  // the first that tells each of them of the other
  };

  // Those that are to meet the peer are told what is new of it.
  void make_due(std::size_t peer);
  const Pair& pair_of(const Known& one, const Known& other);
  std::string dialer_of(const Known& one, const Known& other) const;
  Whereabouts whereabouts(const std::string& node, const std::string& address,
                          const std::string& from) const;

  const std::string node_;
  Gatekeeper& keeper_;
  const Neighbours neighbours_;
  std::map<std::string, std::size_t, std::less<>> positions_;  // by the names of the plan
  std::vector<Known> known_;
  std::set<std::size_t> due_;
  std::uint64_t edition_ = 0;
  std::map<std::pair<std::string, std::string>, Pair> pairs_;  // by names in order
};

}  // namespace troupe::runtime

#pragma once

// The words between a gate and its process: its options, the questions that it asks, and the
// messages for its node's root actor.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/secret.h"
#include "runtime/node/patience.h"
#include "runtime/node/rhythm.h"
#include "runtime/transport/packets.h"

namespace troupe::runtime {

// The Gate tells these to the node's root actor, on the control lane from outside. For each process
// that is a peer it tells PeerJoined once, and then one of the others once; these also for one that
// never came. `node` is what the process is called.
// A neighbour that neither of the two wanted is told of when the head is gone. For the head
// PeerAway may come in between, and PeerJoined once more after each. The head's gate also passes on
// the requests of processes that are no nodes (RequestAsked in head_request.h).
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
  bool fell_silent = false;  // nothing was heard of it any more, nor did it refuse this node
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

// A gate asks this of the process it belongs to when others come. The gate calls it on its driving
// thread. No method calls the gate. The head is asked all but neighbours_are(), which the members
// are told.
class Gatekeeper {
 public:
  virtual ~Gatekeeper() = default;

  // A process asks to be a node. `awaited` are the nodes that have not come yet, in the plan's
  // order. Default: it is refused.
  virtual Result<EnrolmentAnswer> invite(const Enrolment& enrolment,
                                         const std::vector<std::string>& awaited) {
    (void)enrolment, (void)awaited;
    return Error{ErrorKind::kUsage, "the run takes in no new nodes"};
  }
  // The number, not 0, by which two other nodes that share links know each other. Nobody can guess
  // it, and it is the same in the process that takes this one's place. Asked once for every two, in
  // either order. Default: drawn by the system.
  virtual std::uint64_t number_between(const std::string& one, const std::string& other) {
    (void)one, (void)other;
    return secret_number();
  }
  // Whether a host, as a number, is this machine, so that a node which comes from there is on it.
  // Default: only loopback is.
  virtual bool is_this_machine(const std::string& host) {
    (void)host;
    return false;
  }
  // This process stood still, and the node has given it up and waits for another in its place.
  // True: there is to be one, and this process ends. Default: there is none; the node is answered,
  // and ends. Not asked where this process has not stood still: one node's trouble is that node's.
  virtual bool makes_room(const std::string& node) {
    (void)node;
    return false;
  }
  // The nodes that share links with this one and have not ended. Told whenever the plan's first
  // node tells of them, before any of them is told to dial: from then on they are to be let in.
  virtual void neighbours_are(const std::vector<DirectoryEntry>& neighbours) { (void)neighbours; }
};

// `heartbeat` and `dead_after` are those of SilenceOptions.
struct GateOptions : SilenceOptions {
  // The name of this process (process_name() in plan.h).
  std::string node;
  // Where the plan's first node is dialed; "" on that node itself.
  std::string head_address;
  // The process draws it at its start; not 0. A process with the same key that knows it can pose as
  // this process towards the plan's first node, so nobody else is told.
  std::uint64_t incarnation = 1;
  // At the plan's first node: incarnations of the processes whose place this one takes. Default
  // none: nodes that have met another one are refused.
  std::vector<std::uint64_t> predecessors;
  // Nodes in whose place another process than the first is awaited or was, with what it is called
  // (process_name() in plan.h). At the plan's first node, where it takes the place of another.
  std::map<std::string, std::string> called;
  // At all others: how long the plan's first node may be away before it is lost. Default 0: it is
  // lost at once.
  Duration head_returns_within{0};
  // For people.
  std::string host;
  std::uint64_t pid = 0;
  // See Introduction. Default: every peer counts as one of another machine.
  std::string machine;
  // Threads of this host that run or want to, per processor; asked once a heartbeat, on the driving
  // thread. Null: 0.
  std::function<double()> host_load;
  // See kPeersABeat; 1 or more. Others than the plan's first node follow it.
  std::size_t peers_a_beat = kPeersABeat;
  // All nodes must have these in common. Another value at the other end is refused, naming both.
  std::vector<Term> terms;
  // How long a node that it dials may take to answer for the first time.
  Duration dial_within = std::chrono::seconds(60);
  // How long acknowledgements are waited for when the node has ended.
  Duration close_within = std::chrono::seconds(5);
  // Never null.
  std::shared_ptr<Gatekeeper> keeper = std::make_shared<Gatekeeper>();
};

}  // namespace troupe::runtime

#pragma once

// What a gate is told at its start, and what it tells its node's root actor.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/transport/packets.h"

namespace troupe::runtime {

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

}  // namespace troupe::runtime

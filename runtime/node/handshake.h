#pragma once

// How two nodes introduce themselves to each other, and why one refuses the other. Decisions alone:
// nothing is sent or changed here.
//
// Only in the place of the head another process may come, which says that it knows whom the one
// before it knew (predecessors).

#include <atomic>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/node/gate_options.h"
#include "runtime/node/introducer.h"
#include "runtime/node/peer.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

// To a process that is new to the run.
Error expired_token();

// A peer is meant by its position among the gate's peers.
class Handshake {
 public:
  // All outlive it. `closing`: this node ends, and waits for no other process.
  Handshake(const GateOptions& options, const Wire& wire, const Introducer& introducer,
            const std::atomic<bool>& closing)
      : options_(options), wire_(wire), introducer_(introducer), closing_(closing) {}

  // How this process introduces itself to the peer.
  Introduction introduction_for(std::size_t position, const Peer& peer) const;
  // Why the process that says so cannot be that peer, which this node dials or does not.
  std::optional<Error> objection_to_hello(std::size_t position, const Peer& peer,
                                          const ConnectionInfo& info, const Hello& hello) const;
  std::optional<Error> objection_to_welcome(std::size_t position, const Peer& peer,
                                            const Welcome& welcome) const;
  // What all nodes must have in common and the other one has not.
  std::optional<Error> mismatch(const Introduction& other) const;
  // The process has met the head whose place this one takes, and counts what it had of that one.
  bool knows_predecessor(const Introduction& other) const;
  // Another process may come in the peer's place.
  bool may_return(const Peer& peer) const;

 private:
  const GateOptions& options_;
  const Wire& wire_;
  const Introducer& introducer_;
  const std::atomic<bool>& closing_;
};

}  // namespace troupe::runtime

#pragma once

// What a gate asks of the process it belongs to when others come.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/secret.h"
#include "runtime/transport/packets.h"

namespace troupe::runtime {

// The gate calls it on its driving thread. No method calls the gate. The plan's first node is asked
// all but neighbours_are(), which the others are told.
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

}  // namespace troupe::runtime

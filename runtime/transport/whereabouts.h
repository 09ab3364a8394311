#pragma once

// Which of two nodes can dial the other: what can be said of the addresses that they give, from
// where their connections came from. Pure decisions; nobody is asked.

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/error.h"

namespace troupe::runtime {

struct Whereabouts {
  std::string node;
  // Where it says that its neighbours can dial it; "": it does not listen. Through a relay: as
  // relay_address() has it.
  std::string address;
  // Where it came from to the plan's first node, as ConnectionInfo::address. What cannot be
  // understood may be anywhere, and nothing is concluded from it.
  std::string from;
  // Whether that is one of the first node's own machine's addresses; of loopback it goes without
  // saying.
  bool beside_the_first = false;
};

// What is wrong with the address whoever dials it: it cannot be understood, has a name, a key or
// no port, stands for all interfaces, or is a socket of the file system of another machine than the
// first node's. Errors are kUsage; none also of a node that does not listen, or
// only to a relay.
std::optional<Error> objection_to(const Whereabouts& node);

// Whether the neighbour can dial the node, of nodes to which there is no objection otherwise.
enum class Reach : std::uint8_t {
  // The node does not listen, or where only its own machine gets to, and the two have come from
  // different ones.
  kNone,
  // Through the relay, of which both are clients.
  kRelayed,
  // It came from another address than it gives, as through a router that translates addresses, and
  // the neighbour did not come from there too.
  kDoubtful,
  // Nothing speaks against it.
  kGood,
};
Reach reach_of(const Whereabouts& node, const Whereabouts& neighbour);

// That neither can dial the other, naming both. kUsage.
std::optional<Error> objection_to(const Whereabouts& newcomer, const Whereabouts& neighbour);

}  // namespace troupe::runtime

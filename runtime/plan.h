#pragma once

// The wiring of one process as data: which actors there are, who owns whom, and the links between
// them. Made by config from a topology; printable and comparable; run by a Node.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/lane.h"

namespace troupe::runtime {

struct ActorPlan {
  std::string name;         // unique
  std::string kind;         // what the ActorFactory makes of it
  std::string owner;        // name of the owning actor; "" for the root, of which there is one
  bool own_thread = false;  // computes or blocks for long: runs on a thread of its own
  bool operator==(const ActorPlan&) const = default;
};

// An edge. An out port carries exactly one link; an in port may join many.
struct LinkPlan {
  std::string from;
  std::string from_port;
  std::string to;
  std::string to_port;
  Lane lane = Lane::kData;
  // Bound of what is sent and not yet given back: waiting in the target's mailbox or kept by it.
  std::int64_t message_credits = 8;
  // In Message::bytes(). One message larger than this may pass alone.
  std::int64_t byte_credits = std::int64_t{64} << 20;
  // Messages `to` may count on before `from` fires once: what lets a cycle begin. Only read by
  // check(); the actors themselves begin as if they had received that many.
  int tokens = 0;
  bool operator==(const LinkPlan&) const = default;
};

struct Plan {
  std::vector<ActorPlan> actors;
  std::vector<LinkPlan> links;
  bool operator==(const Plan&) const = default;
};

// The ownership tree and the links, for people; the same Plan prints the same text.
std::string print(const Plan& plan);

// Every reason why the plan cannot run, in the order of the plan; empty when it can. All are
// kTopology. Refused: no actor, empty or repeated names, unknown owners, no root or several, owners
// in a circle, links between unknown actors, two links from one out port, credits under 1, negative
// tokens, and a cycle of data links without a token, which is named as a -> b -> a.
std::vector<Error> check(const Plan& plan);

}  // namespace troupe::runtime

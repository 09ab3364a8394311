#pragma once

// The wiring of a run as data: the actors, their owners, the links between them, and the node of
// each actor. Made by config from a topology; printable and comparable; each Node runs its own
// part.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/lane.h"

namespace troupe::runtime {

struct ActorPlan {
  std::string name;         // unique
  std::string kind;         // what the ActorFactory makes of it
  std::string owner;        // on the same node; "" for the node's root, of which there is one
  bool own_thread = false;  // computes or blocks for long: runs on a thread of its own
  // Name of the node it is placed on; "" where there is one node only, which has no name.
  std::string node{};
  bool operator==(const ActorPlan&) const = default;
};

// An edge. An out port carries exactly one link; an in port may join many.
struct LinkPlan {
  std::string from;
  std::string from_port;
  std::string to;
  std::string to_port;
  Lane lane = Lane::kData;
  // Bound of the messages that were sent and not yet given back: they wait in the target's mailbox,
  // or the target keeps them.
  std::int64_t message_credits = 8;
  // In Message::bytes(). One message larger than this may pass alone.
  std::int64_t byte_credits = std::int64_t{64} << 20;
  // Messages `to` may count on before `from` fires once: what lets a cycle begin. Only read by
  // check(); the actors themselves begin as if they had received that many.
  int tokens = 0;
  bool operator==(const LinkPlan&) const = default;
};

// A link from each of these actors to every other one of them, told once: the plan of a run grows
// with its actors, and not with their square. actors[i] sends to actors[j] on its out port
// "PORT.j", and all of it comes in at "PORT". The bounds are those of each link.
struct MeshPlan {
  std::vector<std::string> actors;
  std::string port;
  Lane lane = Lane::kData;
  std::int64_t message_credits = 8;
  std::int64_t byte_credits = std::int64_t{64} << 20;
  int tokens = 0;

  // So many links it stands for.
  std::size_t size() const { return actors.empty() ? 0 : actors.size() * (actors.size() - 1); }
  // The link from one to the other of two different actors, by their positions, and its position
  // among all links of the mesh.
  LinkPlan link(std::size_t from, std::size_t to) const;
  std::size_t position(std::size_t from, std::size_t to) const {
    return from * (actors.size() - 1) + to - (to > from ? 1 : 0);
  }
  bool operator==(const MeshPlan&) const = default;
};

// How one link does; figures may be a moment old.
struct LinkStats {
  LinkPlan plan;
  std::int64_t sent = 0;             // messages accepted by the link
  std::int64_t in_use_messages = 0;  // credits out: queued or kept by the receiver
  std::int64_t in_use_bytes = 0;
  std::int64_t queued = 0;       // in the receiver's mailbox, when it last looked
  std::int64_t max_queued = 0;   // the most it ever found there
  std::int64_t dropped = 0;      // metrics only: without credit, or to an ended actor
  std::int64_t undelivered = 0;  // returned to the sender, or destroyed because that had ended too
};

struct Plan {
  std::vector<ActorPlan> actors;
  std::vector<LinkPlan> links;
  std::vector<MeshPlan> meshes{};
  bool operator==(const Plan&) const = default;
};

// The nodes in the order in which the actors name them; {""} for a plan of one node without a name,
// nothing for a plan without actors.
std::vector<std::string> nodes_of(const Plan& plan);

// A node may be carried out by several processes, one after the other. The first is called as the
// plan calls the node, and the N-th is called NODE.N: names tell apart all processes of a run.
std::string process_name(const std::string& node, std::uint32_t number);
// The part before the number of such a name; "": it does not end in one.
std::string_view before_number(std::string_view name);
// Whether a process of that name carries out the node.
bool carries_out(std::string_view process, std::string_view node);

// Every link one by one. A link's place among these is its position in the plan: first `links`,
// then those of each mesh.
std::vector<LinkPlan> links_of(const Plan& plan);
std::size_t count_links(const Plan& plan);

// The node of each actor, by its name; the plan outlives both.
std::unordered_map<std::string_view, std::string_view> actor_nodes(const Plan& plan);

// The ownership trees and the links, for people; the same Plan prints the same text. If nodes have
// names, the trees stand below them, and a link that leaves a node says "head <- member.1". A mesh
// takes one line.
std::string print(const Plan& plan);

// Every reason why the plan cannot run, in the order of the plan; empty when it can. All are
// kTopology. Refused: no actor, empty or repeated names, actors without a node beside others with
// one, unknown owners, owners on another node, a node with no root or several, owners in a circle,
// links between unknown actors, two links from one out port, credits under 1, negative tokens, a
// mesh of fewer than two actors or with one twice, and a cycle of data links without a token, which
// is named as a -> b -> a. A link may join two nodes.
std::vector<Error> check(const Plan& plan);

}  // namespace troupe::runtime

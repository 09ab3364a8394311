#pragma once

// Everything nodes say to each other, as packets: see docs/protocol.md for who may send what when.
// Every header is one list: the kind's number, then its fields in the order of the struct.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/message.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/wire_types.h"
#include "runtime/wait_graph.h"

namespace troupe::runtime {

// 1 to kMostNodeName bytes of UTF-8 without control characters: the name of a node as it goes from
// one process to another. A connection on which a longer one is said is cut; of others control
// characters are replaced before anybody sees them.
inline constexpr std::size_t kMostNodeName = 256;
bool is_node_name(std::string_view text);

// Per lane: packets with a sequence number that have arrived, ever.
using LaneCounts = std::array<std::uint64_t, kLanes>;

// Something two nodes must have in common to work together, in words people can compare.
struct Term {
  std::string name;                        // "topology"
  std::string value;                       // its hash, or itself
  ErrorKind mismatch = ErrorKind::kUsage;  // of the error when the other has another; not sent
  bool operator==(const Term&) const = default;
};

// The first packet of a connection, from whoever dialed it, and the answer.
struct Introduction {
  std::string node;  // name in the plan
  // The number of the process, drawn at its start, towards the plan's first node and from it: a
  // secret of the two, by which a process is known again. Between two others what the directory
  // says. Never 0.
  std::uint64_t incarnation = 0;
  std::uint64_t peer_incarnation = 0;  // of the other end as met before; 0: never met
  std::string host;
  std::uint64_t pid = 0;
  // Equal for two processes whose closed connections the same system reports to each of them; ""
  // when it is not known.
  std::string machine;
  std::vector<Term> terms;
  // Where its neighbours can dial it; "" when it does not listen, and dials them; "relay://..."
  // when it does so too, but for those that do the same, which reach it through the relay. Only the
  // plan's first node looks at it, once, and refuses what objection_to() of whereabouts.h objects
  // to.
  std::string address;
  LaneCounts received{};  // what of earlier connections has arrived, so that the rest is sent again
  // To the plan's first node: it has been given up, and another process is waited for in its place.
  bool given_up = false;
};
struct Hello : Introduction {};
struct Welcome : Introduction {};

// Instead of a Welcome, an Invitation or Granted; the connection ends with it.
struct Refusal {
  Error error;
};

// Control: what has arrived, and what receivers have given back, as totals since the links began.
struct LinkCredit {
  std::uint32_t link = 0;  // position in the plan
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};
struct Account {
  LaneCounts received{};
  std::vector<LinkCredit> credits;
};

// Control: a sign of life (runtime/node/rhythm.h).
struct Heartbeat {
  std::uint64_t progress = 0;  // of the node's actors; see Activity
  // Threads of the sender's host that run or want to, in percent of its processors.
  std::uint32_t load_percent = 0;
  // From the plan's first node: how often the two give signs of life from now on, in milliseconds.
  // From all others 0.
  std::uint32_t every_ms = 0;
};

// Control, to the plan's first node alone, which hears its peers seldom: the sender misses this
// one, with which it shares links. It has been silent, or has not answered when it was dialed, for
// half of the time that the sender gives it.
struct Unheard {
  std::string node;
  std::uint32_t patience_ms = 0;  // that the sender would have with its silence, had it not asked
};

// Control: everything was said and acknowledged, and nothing more is expected. See gate.h for why
// nobody acknowledges this.
struct Bye {};

// Control: who waits for whom at the receiver?
struct GraphRequest {};
struct GraphAnswer {
  WaitGraph graph;
};

// Before a node exists: a process asks to be one, and is told which and of what.
struct Enrolment {
  std::string node;  // the one it wants to be; "" for any
  std::string host;
  std::uint64_t pid = 0;
  std::string launched;  // the pool's node, such as "hpc.3", that it was started on; "": none
};
struct Invitation {
  std::string node;
  Buffer contents;  // the inviter's, opaque here
};

// Instead of an Invitation: every member slot is promised to another process, which may not come.
// The connection ends with it, and the process may ask again.
struct NotNow {
  std::string why;
};

using EnrolmentAnswer = std::variant<Invitation, NotNow>;

// Control, from the plan's first node alone: where nodes are that the receiver is to be connected
// to, because it or they want it (Wanted), and who they are, so that nobody else is taken for them.
// All that is known of them, whenever some of it is new, and over every new connection, each node
// once. It has no sequence number, and hearing it twice changes nothing.
struct DirectoryEntry {
  std::string node;
  std::string address;  // as its Introduction has it
  std::string key;      // that it has proven to the first node (keys.h); "" without keys
  // The one by which these two nodes introduce themselves to each other, both of them: drawn by the
  // first node for the two, so that no third one can pose as either. 0: there is nobody to meet.
  std::uint64_t incarnation = 0;
  // It is the receiver's to dial it, and it has heard of the receiver and lets it in.
  bool dial = false;
  // Nobody is to wait for it any more. Without this and without an incarnation the entry only tells
  // what the process is called that comes next in the place of another.
  bool ended = false;
};
struct Directory {
  static constexpr std::size_t kMostEntries = 1024;
  std::uint64_t edition = 0;  // grows
  std::vector<DirectoryEntry> entries;
};
// Control, the answer to that edition: whoever it tells of is let in from now on.
struct DirectoryHeard {
  std::uint64_t edition = 0;
};

// Control, to the plan's first node alone: the sender has something to say to these nodes, which it
// shares links with, and asks to be introduced to them. Said of a node when the first message for
// it comes, and of all of them over every new connection. It has no sequence number, and hearing it
// twice changes nothing.
struct Wanted {
  static constexpr std::size_t kMostNodes = Directory::kMostEntries;
  std::vector<std::string> nodes;
};

// Before a node exists, too: a process that is none asks the head for something, and is told when
// it is done.
struct HeadRequest {
  enum class Kind : std::uint8_t {
    kDrain,  // a member shall leave the run
    kBurst,  // a pool shall have more nodes, or fewer
  };
  Kind kind = Kind::kDrain;
  std::string name{};    // of the member, or of the pool
  std::string change{};  // of the pool's nodes: "8", "+4", "-2"
  std::string host{};    // of the process that asks, for people
  std::uint64_t pid = 0;
};
struct Granted {
  std::string text;  // for people: "member.2 has left the run"
};

// A message of an actor, or one that comes back.
struct Envelope {
  std::uint64_t sequence = 0;         // in its lane, from 1
  std::optional<std::uint32_t> link;  // position in the plan; none: sent past all links, on control
  std::string sender;                 // names of actors; "" where the link has them
  std::string target;
  std::optional<Error> cause;  // why it comes back
  // Only then: what has arrived there, the message itself included. So its sender never takes it
  // for lost as well.
  LaneCounts received{};
  Message message;  // not attached to any origin
};

using AnyPacket = std::variant<Hello, Welcome, Refusal, Account, Heartbeat, Bye, GraphRequest,
                               GraphAnswer, Enrolment, Invitation, Envelope, Directory,
                               DirectoryHeard, HeadRequest, Granted, NotNow, Wanted, Unheard>;

// Any but an Envelope.
Packet pack(const AnyPacket& packet);
// The message stays as it is; its payloads are shared.
Packet pack(const Envelope& envelope, const WireTypes& types);

// Errors (kInternal): anything that is not exactly one packet of this version, saying what is
// wrong. An Introduction, Enrolment or HeadRequest of another version is read as far as the
// version, so that it can be answered.
Result<AnyPacket> unpack(const Packet& packet, const WireTypes& types);

}  // namespace troupe::runtime

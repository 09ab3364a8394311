#pragma once

// Which actors wait for which others, as data taken from a node at one moment, and as text for
// people.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/lane.h"
#include "runtime/plan.h"

namespace troupe::runtime {

struct ActorWait {
  enum class Activity : std::uint8_t {
    kIdle,
    kQueued,
    kRunning,
    kEnded,
    kElsewhere,  // on another node, whose own graph tells more
  };
  std::string name;
  Activity activity = Activity::kIdle;
  bool stopping = false;
  Duration running_for{0};  // of kRunning
  std::string words;        // Actor::waiting_for() of an idle actor
};

struct LinkWait {
  std::size_t from = 0;  // positions among the actors
  std::size_t to = 0;
  std::string from_port;
  std::string to_port;
  Lane lane = Lane::kData;
  bool sender_waits = false;  // the last send found no credit
  std::int64_t messages_out = 0;
  std::int64_t message_credits = 0;
  std::int64_t bytes_out = 0;
  std::int64_t byte_credits = 0;
  std::int64_t queued = 0;  // of messages_out: in the receiver's mailbox; it keeps the others
};

// `from`, `to`: positions among the actors.
LinkWait wait_of(const LinkStats& stats, std::size_t from, std::size_t to, bool sender_waits);

struct WaitGraph {
  std::vector<ActorWait> actors;
  std::vector<LinkWait> links;
};

// The graphs of several nodes as one: an actor that one node knows only by name is described by its
// own node.
WaitGraph merge(const std::vector<WaitGraph>& graphs);

// The actor to look at first, in one line: the one whose handler runs longest; else one that others
// wait for and that is queued, but does not run; else a circle of actors that wait for each other,
// as a -> b -> a, those that lack credit before those that wait for a message; else one that waits
// for no other while others wait for it.
std::string culprit(const WaitGraph& graph);

// One line per live actor, and the culprit if nothing in the graph moves any more. No trailing
// newline.
std::string print(const WaitGraph& graph);
std::string print_with_culprit(const WaitGraph& graph);

}  // namespace troupe::runtime

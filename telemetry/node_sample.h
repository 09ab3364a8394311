#pragma once

// What one process of a run tells of itself about once a second.

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::telemetry {

struct ActorSample {
  std::string name;
  std::string state;         // "waiting", "queued", "running", "stopping", "ended"
  std::int64_t handled = 0;  // handlers run so far
};

// A link as its sender sees it.
struct LinkSample {
  std::string from, to;      // actors
  std::string port;          // of the receiver
  std::int64_t sent = 0;     // messages so far
  std::int64_t in_use = 0;   // credits out, messages: under way, queued or kept by the receiver
  std::int64_t credits = 0;  // messages; 0: control, which has none
  std::int64_t queued = 0;   // in the receiver's mailbox; 0 where that is on another node
  std::int64_t dropped = 0;  // metrics only, so far
};

struct NodeSample {
  std::string node;                 // "local", "head", "member.0"
  double cpu_seconds = 0.0;         // of the process, user and system, so far
  std::int64_t resident_bytes = 0;  // now
  std::int64_t sent_bytes = 0;      // to other nodes, so far
  std::int64_t received_bytes = 0;
  std::vector<ActorSample> actors;
  std::vector<LinkSample> links;
};

}  // namespace troupe::telemetry

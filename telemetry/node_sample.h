#pragma once

// One process of a run tells this of itself about once a second, or more seldom where there are
// many. The fields are as in runtime/base/fields.h.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/fields.h"

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

// A device that the node computes on. Negative: nothing says it.
struct DeviceSample {
  std::string device, name;       // "cuda:0", "Tesla V100-SXM2-32GB"
  std::int64_t own_bytes = 0;     // that the node has there
  std::int64_t used_bytes = -1;   // that all processes have there
  std::int64_t memory_bytes = 0;  // that it has
  double busy = -1.0;             // share of the last moments, 0 to 1
  double watts = -1.0;
  double celsius = -1.0;
};

struct NodeSample {
  std::string node;                 // "local", "head", "member.0"
  double cpu_seconds = 0.0;         // of the process, user and system, so far
  std::int64_t resident_bytes = 0;  // now
  std::int64_t sent_bytes = 0;      // to other nodes, so far
  std::int64_t received_bytes = 0;
  std::vector<ActorSample> actors;
  std::vector<LinkSample> links;
  std::vector<DeviceSample> devices;
};

// The name of an actor or a port is cut to this length where it is written.
inline constexpr std::size_t kMostActorName = 64;
// A sample has no more of them; further ones are not sent.
inline constexpr std::size_t kMostSampleActors = 1024;
inline constexpr std::size_t kMostSampleLinks = 4096;
inline constexpr std::size_t kMostSampleDevices = 16;

template <class Archive>
void fields(Archive& archive, runtime::Like<ActorSample> auto& actor) {
  constexpr std::size_t kMostState = 16;
  archive.prose("name", actor.name, kMostActorName);
  archive.prose("state", actor.state, kMostState);
  archive.integer("handled", actor.handled);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<LinkSample> auto& link) {
  archive.prose("from", link.from, kMostActorName);
  archive.prose("to", link.to, kMostActorName);
  archive.prose("port", link.port, kMostActorName);
  archive.integer("sent", link.sent);
  archive.integer("in_use", link.in_use);
  archive.integer("credits", link.credits);
  archive.integer("queued", link.queued);
  archive.integer("dropped", link.dropped);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<DeviceSample> auto& device) {
  archive.prose("device", device.device, kMostActorName);
  archive.prose("name", device.name, kMostActorName);
  archive.integer("own_bytes", device.own_bytes);
  archive.integer("used_bytes", device.used_bytes);
  archive.integer("memory_bytes", device.memory_bytes);
  archive.real("busy", device.busy);
  archive.real("watts", device.watts);
  archive.real("celsius", device.celsius);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<NodeSample> auto& sample) {
  archive.prose("node", sample.node, kMostActorName);
  archive.real("cpu_seconds", sample.cpu_seconds);
  archive.integer("resident_bytes", sample.resident_bytes);
  archive.integer("sent_bytes", sample.sent_bytes);
  archive.integer("received_bytes", sample.received_bytes);
  archive.first("actors", sample.actors, kMostSampleActors);
  archive.first("links", sample.links, kMostSampleLinks);
  archive.first("devices", sample.devices, kMostSampleDevices);
}

inline const char* fault_of(const NodeSample& sample) {
  if (!std::isfinite(sample.cpu_seconds)) return "a time that is no number";
  for (const DeviceSample& device : sample.devices) {
    if (!std::isfinite(device.busy + device.watts + device.celsius)) {
      return "a load that is no number";
    }
  }
  return nullptr;
}

}  // namespace troupe::telemetry

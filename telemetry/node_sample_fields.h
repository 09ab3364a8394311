#pragma once

// The fields of a NodeSample; see runtime/base/fields.h.

#include <cmath>
#include <cstddef>

#include "runtime/base/fields.h"
#include "telemetry/node_sample.h"

namespace troupe::telemetry {

// The name of an actor or a port is cut to this length where it is written.
inline constexpr std::size_t kMostActorName = 64;
// A sample has no more of them; further ones are not sent.
inline constexpr std::size_t kMostSampleActors = 1024;
inline constexpr std::size_t kMostSampleLinks = 4096;

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
void fields(Archive& archive, runtime::Like<NodeSample> auto& sample) {
  archive.prose("node", sample.node, kMostActorName);
  archive.real("cpu_seconds", sample.cpu_seconds);
  archive.integer("resident_bytes", sample.resident_bytes);
  archive.integer("sent_bytes", sample.sent_bytes);
  archive.integer("received_bytes", sample.received_bytes);
  archive.first("actors", sample.actors, kMostSampleActors);
  archive.first("links", sample.links, kMostSampleLinks);
}

inline const char* fault_of(const NodeSample& sample) {
  return std::isfinite(sample.cpu_seconds) ? nullptr : "a time that is no number";
}

}  // namespace troupe::telemetry

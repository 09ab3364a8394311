#pragma once

// How a Probe and a NodeReport stand in a packet; see wire_messages.h.

#include <cstddef>
#include <span>

#include "actors/messages.h"
#include "runtime/base/buffer.h"
#include "runtime/transport/wire_format.h"

namespace troupe::actors {

// Of an actor or a port.
inline constexpr std::size_t kMostActorName = 64;
// A sample has no more; further ones are not sent.
inline constexpr std::size_t kMostSampleActors = 1024;
inline constexpr std::size_t kMostSampleLinks = 4096;

void pack(runtime::WireWriter& out, const Probe& body);
void unpack(runtime::WireReader& in, Probe& body);

void pack(runtime::WireWriter& out, const NodeReport& body);
void unpack(runtime::WireReader& in, NodeReport& body, std::span<const runtime::Buffer> payloads);

}  // namespace troupe::actors

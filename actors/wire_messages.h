#pragma once

// How the bodies of actors/messages.h stand in a packet: of each that can leave its process one
// pack() and one unpack(), in the order of messages.h. Fields follow one another in the order of
// their struct, in one list; docs/protocol.md describes them.
//
// pack() takes any body that an actor makes. unpack() takes what a stranger may have sent: it fails
// its reader at everything that the receivers of the body would stumble over, so that a body it
// leaves ok() can be used without another look. What only the receiver can know (how many tensors
// the model has, which step is next) remains the receiver's to compare.
//
// Pure functions; any thread.

#include <span>

#include "actors/messages.h"
#include "runtime/base/buffer.h"
#include "runtime/transport/wire_format.h"
#include "runtime/transport/wire_types.h"

namespace troupe::actors {

// No contribution vector is longer (8 TiB), and none is cut in more buckets (1 TiB of 1 MiB): what
// a receiver keeps by number, or multiplies, stays small or exact.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
inline constexpr std::uint32_t kMostBuckets = 1U << 20;
// No model has more loss terms.
inline constexpr std::size_t kMostLosses = 256;

// As Snapshot.
void pack(runtime::WireWriter& out, const BeginTraining& body);
void unpack(runtime::WireReader& in, BeginTraining& body);

void pack(runtime::WireWriter& out, const BeginLoading& body);
void unpack(runtime::WireReader& in, BeginLoading& body);

void pack(runtime::WireWriter& out, const EndOfData& body);
void unpack(runtime::WireReader& in, EndOfData& body);

// Sound means: 0 <= begin < end, and one payload, of so many aligned integers.
void pack(runtime::WireWriter& out, const BucketMessage& body);
void unpack(runtime::WireReader& in, BucketMessage& body,
            std::span<const runtime::Buffer> payloads);

void pack(runtime::WireWriter& out, const HeaderMessage& body);
void unpack(runtime::WireReader& in, HeaderMessage& body);

// The state as wire_state.h has it. CHECKs that there is one, and unpacks to one.
void pack(runtime::WireWriter& out, const Snapshot& body);
void unpack(runtime::WireReader& in, Snapshot& body);

void pack(runtime::WireWriter& out, const StepMetrics& body);
void unpack(runtime::WireReader& in, StepMetrics& body);

// As Snapshot, but there may be no state.
void pack(runtime::WireWriter& out, const ReplicaEnd& body);
void unpack(runtime::WireReader& in, ReplicaEnd& body);

void pack(runtime::WireWriter& out, const StopTraining& body);
void unpack(runtime::WireReader& in, StopTraining& body);

void pack(runtime::WireWriter& out, const MemberFailed& body);
void unpack(runtime::WireReader& in, MemberFailed& body);

void pack(runtime::WireWriter& out, const Release& body);
void unpack(runtime::WireReader& in, Release& body);

void pack(runtime::WireWriter& out, const CheckpointRequest& body);
void unpack(runtime::WireReader& in, CheckpointRequest& body);

// Sound means: a kind of letters, digits and hyphens, and fields that can stand in a line of JSON,
// with every brace, bracket and string closed.
void pack(runtime::WireWriter& out, const EventMetrics& body);
void unpack(runtime::WireReader& in, EventMetrics& body);

// All of the above.
void add_wire_messages(runtime::WireTypes& types);

}  // namespace troupe::actors

#pragma once

// How the bodies of actors/messages.h stand in a packet: of each that can leave its process one
// pack() and one unpack(), in the order of messages.h. Fields follow one another in the order of
// their struct, in one list; docs/protocol.md describes them.
//
// pack() takes any body that an actor makes. unpack() takes what a stranger may have sent: it fails
// its reader at everything that the receivers of the body would stumble over, so that a body it
// leaves ok() can be used without another look. What only the receiver can know (which step is
// next, how many tensors contribute to it) remains the receiver's to compare.
//
// Pure functions; any thread.

#include <functional>
#include <span>

#include "actors/messages.h"
#include "actors/wire_view.h"
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

// Probe and NodeReport are in wire_report.h.

// As Snapshot.
void pack(runtime::WireWriter& out, const BeginTraining& body);
void unpack(runtime::WireReader& in, BeginTraining& body);

void pack(runtime::WireWriter& out, const Halt& body);
void unpack(runtime::WireReader& in, Halt& body);

void pack(runtime::WireWriter& out, const Teach& body);
void unpack(runtime::WireReader& in, Teach& body);

void pack(runtime::WireWriter& out, const Lesson& body);
void unpack(runtime::WireReader& in, Lesson& body);

void pack(runtime::WireWriter& out, const Learned& body);
void unpack(runtime::WireReader& in, Learned& body);
void pack(runtime::WireWriter& out, const TooSlow& body);
void unpack(runtime::WireReader& in, TooSlow& body);
void pack(runtime::WireWriter& out, const Pace& body);
void unpack(runtime::WireReader& in, Pace& body);

void pack(runtime::WireWriter& out, const Halted& body);
void unpack(runtime::WireReader& in, Halted& body);

// Sound means: a ring of different members, a reached step for each, which is first_step or the one
// before and first_step of some, but for learners, which are further behind; and owners.
void pack(runtime::WireWriter& out, const ViewMessage& body);
void unpack(runtime::WireReader& in, ViewMessage& body);

// A sound View; whether it is one that the receiver knows, and whether the micro-batches exist,
// only that one can tell.
void pack(runtime::WireWriter& out, const Feed& body);
void unpack(runtime::WireReader& in, Feed& body);

// Sound means: three aligned payloads, of whole floats, and of three floats and one id per event.
void pack(runtime::WireWriter& out, const BatchMessage& body);
void unpack(runtime::WireReader& in, BatchMessage& body, std::span<const runtime::Buffer> payloads);

void pack(runtime::WireWriter& out, const EndOfData& body);
void unpack(runtime::WireReader& in, EndOfData& body);

// Sound means: 0 <= begin < end, and one payload, of so many aligned integers, or floats in the
// format that is named.
void pack(runtime::WireWriter& out, const RingBucket& body);
void unpack(runtime::WireReader& in, RingBucket& body, std::span<const runtime::Buffer> payloads);

// Sound means: exponents that floats can have, and a tensor among them that is named.
void pack(runtime::WireWriter& out, const RingHeader& body);
void unpack(runtime::WireReader& in, RingHeader& body);

void pack(runtime::WireWriter& out, const Snapshot& body);
void unpack(runtime::WireReader& in, Snapshot& body);

void pack(runtime::WireWriter& out, const StepMetrics& body);
void unpack(runtime::WireReader& in, StepMetrics& body);

// Sound means: names as Sample has them. Values may be any.
void pack(runtime::WireWriter& out, const SampleMetrics& body);
void unpack(runtime::WireReader& in, SampleMetrics& body);

// As Snapshot, but there may be no state.
void pack(runtime::WireWriter& out, const ReplicaEnd& body);
void unpack(runtime::WireReader& in, ReplicaEnd& body);

void pack(runtime::WireWriter& out, const StopTraining& body);
void unpack(runtime::WireReader& in, StopTraining& body);

void pack(runtime::WireWriter& out, const FellowLost& body);
void unpack(runtime::WireReader& in, FellowLost& body);

void pack(runtime::WireWriter& out, const Leaving& body);
void unpack(runtime::WireReader& in, Leaving& body);

void pack(runtime::WireWriter& out, const Expelled& body);
void unpack(runtime::WireReader& in, Expelled& body);

void pack(runtime::WireWriter& out, const MemberFailed& body);
void unpack(runtime::WireReader& in, MemberFailed& body);

void pack(runtime::WireWriter& out, const Release& body);
void unpack(runtime::WireReader& in, Release& body);

void pack(runtime::WireWriter& out, const CheckpointRequest& body);
void unpack(runtime::WireReader& in, CheckpointRequest& body);

// Whether a state that arrived is one of the model that is trained here; on any thread.
using StateCheck = std::function<runtime::Result<void>(const pipeline::TrainingState& state)>;

// All of the above. A body whose state `check_state` has an error for is refused like any that
// unpack() fails at; null: any state is taken.
void add_wire_messages(runtime::WireTypes& types, const StateCheck& check_state = nullptr);

}  // namespace troupe::actors

#pragma once

// A TrainingState in a packet. The header holds every number, text and hash, and the scales, in the
// order of pipeline/state_fields.h; each float array is a frame of its own behind it, in the same
// order, as little-endian float32. So a state costs one copy of its arrays to send and one to take.
//
// Pure functions; any thread.

#include <cstdint>
#include <vector>

#include "pipeline/training_state.h"
#include "runtime/transport/wire_format.h"

namespace troupe::actors {

// No schedule has more slots.
inline constexpr std::size_t kMostSlots = 256;

// One list.
void pack_state(runtime::WireWriter& out, const pipeline::TrainingState& state);

// `state` is as constructed before. Fails the reader at arrays of broken floats, at an optimiser
// that does not keep whole arrays of the weights' size and at a slot that the schedule does not
// have. Whether the sizes are those of a model is for who has the model to say. After a round trip
// hash_of_state() is the same.
void unpack_state(runtime::WireReader& in, pipeline::TrainingState& state);

// A list of exponents of two, of any length that fits the header; twice the header at most.
std::vector<std::int16_t> unpack_exponents(runtime::WireReader& in);

}  // namespace troupe::actors

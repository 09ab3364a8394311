#pragma once

// How a View stands in a packet, and what Views are made of; see wire_messages.h.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/messages.h"
#include "runtime/transport/wire_format.h"

namespace troupe::actors {

// No View has more members, or more micro-batches.
inline constexpr std::size_t kMostViewMembers = 1024;
inline constexpr std::size_t kMostMicroBatches = std::size_t{1} << 16;

void pack_id(runtime::WireWriter& out, const pipeline::ViewId& id);
pipeline::ViewId unpack_id(runtime::WireReader& in);

void pack_numbers(runtime::WireWriter& out, const std::vector<std::uint32_t>& numbers);
std::vector<std::uint32_t> unpack_numbers32(runtime::WireReader& in, std::size_t most);

void pack_view(runtime::WireWriter& out, const pipeline::View& view);
// Never null. Of one that is not sound (see ViewMessage) the reader fails.
ViewPointer unpack_view(runtime::WireReader& in);

}  // namespace troupe::actors

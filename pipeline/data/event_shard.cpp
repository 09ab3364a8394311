#include "pipeline/data/event_shard.h"

#include <algorithm>

namespace troupe::pipeline {
namespace {

// Nodes of the map and what a Buffer has besides its bytes.
constexpr std::uint64_t kBesides = 192;

std::uint64_t size_of(const PackedEvents& event) { return event.bytes().size() + kBesides; }

}  // namespace

void EventShard::put(std::uint64_t id, PackedEvents event) {
  const std::uint64_t size = size_of(event);
  ++put_;
  put_bytes_ += size;
  if (bytes_ + size > most_bytes_) return;
  if (events_.emplace(id, std::move(event)).second) bytes_ += size;
}

void EventShard::keep_only(std::span<const std::uint64_t> ids) {
  std::erase_if(events_, [&](const auto& each) {
    if (std::ranges::binary_search(ids, each.first)) return false;
    bytes_ -= size_of(each.second);
    return true;
  });
}

std::uint64_t EventShard::capacity(std::uint64_t event_bytes) const {
  const std::uint64_t mean = put_ > 0 ? put_bytes_ / put_ + 1 : event_bytes + kBesides;
  return most_bytes_ / mean;
}

}  // namespace troupe::pipeline

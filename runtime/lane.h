#pragma once

// The small identities in the runtime's interfaces.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::runtime {

// The queue of its target that a message stands in. Messages of an earlier lane are always served
// before those of a later lane.
enum class Lane : std::uint8_t {
  kControl,  // membership, abort, stop
  kData,     // what is computed with; counts as progress
  kMetrics,  // the one lane that drops, and counts what it drops, when credits run out
};
inline constexpr std::size_t kLanes = 3;
constexpr std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }

// An actor's position in the Plan; kOutside stands for a sender that is no actor.
struct ActorId {
  std::int32_t index = -1;
  auto operator<=>(const ActorId&) const = default;
};
inline constexpr ActorId kOutside{};
inline constexpr std::string_view kOutsideName = "outside";
// Stands for an actor of another node.
inline constexpr ActorId kElsewhere{-2};

// An out port of an actor, resolved once from its name and valid as long as the node.
struct PortId {
  std::int32_t index = -1;
  bool valid() const { return index >= 0; }
  auto operator<=>(const PortId&) const = default;
};

// A timer of one actor; 0 is no timer. Numbers are never used again.
struct TimerId {
  std::uint64_t number = 0;
  auto operator<=>(const TimerId&) const = default;
};

}  // namespace troupe::runtime

#pragma once

// The packed events that a process computes with soon (data.cache: shard): no more than so many
// bytes of them, whatever the size of the data. One thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "pipeline/data/packed_events.h"

namespace troupe::pipeline {

class EventShard {
 public:
  explicit EventShard(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  bool has(std::uint64_t id) const { return events_.contains(id); }
  // An event that it has.
  const PackedEvents& get(std::uint64_t id) const { return events_.at(id); }
  // Keeps one event, unless there is no room for it.
  void put(std::uint64_t id, PackedEvents event);
  // Lets all go but these, which ascend.
  void keep_only(std::span<const std::uint64_t> ids);

  // With what it takes to find them.
  std::uint64_t bytes() const { return bytes_; }
  // How many events there is room for in all: by the mean of those that were put so far, or by
  // `event_bytes` before there is one.
  std::uint64_t capacity(std::uint64_t event_bytes) const;

 private:
  std::unordered_map<std::uint64_t, PackedEvents> events_;
  std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::uint64_t put_ = 0, put_bytes_ = 0;
};

}  // namespace troupe::pipeline

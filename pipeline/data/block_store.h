#pragma once

// The packed blocks of a dataset that are in memory; the least recently used ones are let go.

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/data/packed_events.h"

namespace troupe::pipeline {

// One thread, except that distinct blocks may be put() by several threads before the first trim().
class BlockStore {
 public:
  // `capacity` blocks are kept by trim(); 0: all of them.
  void reset(std::size_t blocks, std::size_t capacity);

  bool has(std::uint32_t block) const { return slots_[block].events != nullptr; }
  const PackedEvents& get(std::uint32_t block) const { return *slots_[block].events; }
  void put(std::uint32_t block, std::unique_ptr<PackedEvents> events);
  // Marks as used now.
  void touch(std::uint32_t block);
  // Lets go of the blocks used longest ago until `capacity` are left.
  void trim();
  // Bytes of all blocks held.
  std::uint64_t bytes() const;

 private:
  struct Slot {
    std::unique_ptr<PackedEvents> events;
    std::uint64_t used = 0;  // time of the last touch()
  };

  std::vector<Slot> slots_;
  std::size_t capacity_ = 0;
  std::uint64_t now_ = 0;
};

}  // namespace troupe::pipeline

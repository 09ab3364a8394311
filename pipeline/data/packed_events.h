#pragma once

// Preprocessed images with their zeros packed: one bit per cell and the values that are not 0.
// Showers fill 3 to 10 % of their cells, so a dataset kept this way is a tenth of its size.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pipeline/data/dataset_options.h"
#include "runtime/base/buffer.h"

namespace troupe::pipeline {

// Immutable; any thread.
class PackedEvents {
 public:
  // Preprocesses and keeps stored images of good cells (preprocessing.h), all of one size.
  PackedEvents(std::span<const std::span<const float>> stored, const Preprocessing& preprocessing);
  // The bytes() of `events` images of `cells` each, shared; nothing where they cannot be that.
  static std::optional<PackedEvents> of(runtime::Buffer bytes, std::size_t events,
                                        std::size_t cells);

  std::size_t events() const { return events_; }
  // All that there is of them: per event the number of its first value, and the end; bits of cells,
  // 64 in a word, [events][words]; values. For use on the same kind of machine.
  const runtime::Buffer& bytes() const { return bytes_; }
  // Writes all cells of event `index`.
  void unpack(std::size_t index, std::span<float> out) const;

 private:
  PackedEvents(runtime::Buffer bytes, std::size_t events, std::size_t words)
      : bytes_(std::move(bytes)), events_(events), words_(words) {}
  std::span<const std::uint64_t> first_values() const;
  std::span<const std::uint64_t> occupied() const;
  std::span<const float> values() const;

  runtime::Buffer bytes_;
  std::size_t events_ = 0;
  std::size_t words_ = 0;  // of every event
};

// The packed blocks of a dataset that are in memory; the least recently used ones are let go.
//
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

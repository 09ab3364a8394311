#pragma once

// Some of the workers that take turns (pipeline/steps/strategy.h). A plain value.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::pipeline {

// No more workers take turns.
inline constexpr std::size_t kMostWorkersInTurns = 256;

struct WorkerSet {
  std::array<std::uint64_t, kMostWorkersInTurns / 64> words{};  // the bits of each 64

  // Those below `count`.
  static WorkerSet of_first(std::uint32_t count) {
    WorkerSet set;
    for (std::uint32_t worker = 0; worker < count; ++worker) set.add(worker);
    return set;
  }
  bool has(std::uint32_t worker) const {
    return worker < kMostWorkersInTurns && ((words[worker / 64] >> worker % 64) & 1) != 0;
  }
  // One below kMostWorkersInTurns.
  void add(std::uint32_t worker) { words.at(worker / 64) |= std::uint64_t{1} << worker % 64; }
  std::uint32_t size() const {
    int size = 0;
    for (const std::uint64_t word : words) size += std::popcount(word);
    return static_cast<std::uint32_t>(size);
  }
  // Ascending.
  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t worker = 0; worker < kMostWorkersInTurns; ++worker) {
      if (has(worker)) all.push_back(worker);
    }
    return all;
  }
  bool operator==(const WorkerSet&) const = default;
};

}  // namespace troupe::pipeline

#pragma once

// Preprocessed images with their zeros packed: one bit per cell and the values that are not 0.
// Showers fill 3 to 10 % of their cells, so a dataset kept this way is a tenth of its size.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/data/dataset_options.h"

namespace troupe::pipeline {

// Immutable; any thread.
class PackedEvents {
 public:
  // Preprocesses and keeps stored images of good cells (preprocessing.h), all of one size.
  PackedEvents(std::span<const std::span<const float>> stored, const Preprocessing& preprocessing);

  std::size_t events() const { return first_values_.size() - 1; }
  std::size_t bytes() const;
  // Writes all cells of event `index`.
  void unpack(std::size_t index, std::span<float> out) const;

 private:
  std::size_t words_ = 0;                // 64 cells each, of every event
  std::vector<std::uint64_t> occupied_;  // [events][words_]
  std::vector<float> values_;
  std::vector<std::size_t> first_values_;  // of each event, and the end
};

}  // namespace troupe::pipeline

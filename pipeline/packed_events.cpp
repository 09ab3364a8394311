#include "pipeline/packed_events.h"

#include <algorithm>
#include <bit>

#include "pipeline/preprocessing.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

PackedEvents::PackedEvents(std::size_t cells)
    : cells_(cells), words_((cells + 63) / 64), starts_{0} {}

void PackedEvents::append(std::span<const float> stored, const Preprocessing& preprocessing) {
  CHECK(stored.size() == cells_, "images of one size");
  for (std::size_t first = 0; first < cells_; first += 64) {
    const std::size_t count = std::min<std::size_t>(64, cells_ - first);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < count; ++i) {
      // Most cells are 0 and need no arithmetic.
      if (stored[first + i] == 0.0f) continue;
      const float value = preprocess_cell(stored[first + i], preprocessing);
      if (value == 0.0f) continue;
      word |= std::uint64_t{1} << i;
      values_.push_back(value);
    }
    occupied_.push_back(word);
  }
  starts_.push_back(values_.size());
}

void PackedEvents::shrink() {
  occupied_.shrink_to_fit();
  values_.shrink_to_fit();
  starts_.shrink_to_fit();
}

std::size_t PackedEvents::bytes() const {
  return occupied_.capacity() * sizeof(occupied_[0]) + values_.capacity() * sizeof(values_[0]) +
         starts_.capacity() * sizeof(starts_[0]);
}

void PackedEvents::unpack(std::size_t index, std::span<float> out) const {
  CHECK(index < events() && out.size() == cells_);
  std::fill(out.begin(), out.end(), 0.0f);
  const float* value = values_.data() + starts_[index];
  const std::uint64_t* words = occupied_.data() + index * words_;
  for (std::size_t w = 0; w < words_; ++w) {
    for (std::uint64_t word = words[w]; word != 0; word &= word - 1) {
      out[64 * w + static_cast<std::size_t>(std::countr_zero(word))] = *value++;
    }
  }
}

}  // namespace troupe::pipeline

#include "pipeline/data/packed_events.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "pipeline/data/preprocessing.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

// Bit i is 1 where cells[i] >= lowest; up to 64 cells. The first loop becomes vector code, the
// second moves the low bits of eight bytes, 8 k, to bits 56 + k.
std::uint64_t occupied(std::span<const float> cells, float lowest) {
  std::array<std::uint8_t, 64> flags{};
  if (cells.size() == flags.size()) {
    for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = cells[i] >= lowest;
  } else {
    for (std::size_t i = 0; i < cells.size(); ++i) flags[i] = cells[i] >= lowest;
  }
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < flags.size(); i += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, flags.data() + i, sizeof(eight));
    word |= (eight * 0x0102040810204080ULL >> 56) << i;
  }
  return word;
}

}  // namespace

// The first pass marks occupied cells and counts them, so that the second one writes all values
// into one array of the right size. `word &= word - 1` takes off the lowest set bit.
PackedEvents::PackedEvents(std::span<const std::span<const float>> stored,
                           const Preprocessing& preprocessing)
    : words_(stored.empty() ? 0 : (stored.front().size() + 63) / 64), first_values_{0} {
  const float lowest = std::max(preprocessing.threshold, std::numeric_limits<float>::denorm_min());
  occupied_.reserve(stored.size() * words_);
  std::size_t kept = 0;
  for (const std::span<const float> image : stored) {
    CHECK(image.size() == stored.front().size(), "images of one size");
    for (std::size_t first = 0; first < image.size(); first += 64) {
      const std::size_t count = std::min<std::size_t>(64, image.size() - first);
      const std::uint64_t word = occupied(image.subspan(first, count), lowest);
      occupied_.push_back(word);
      kept += static_cast<std::size_t>(std::popcount(word));
    }
    first_values_.push_back(kept);
  }
  values_.resize(kept);
  float* value = values_.data();
  const std::uint64_t* words = occupied_.data();
  for (const std::span<const float> image : stored) {
    for (std::size_t first = 0; first < image.size(); first += 64) {
      for (std::uint64_t word = *words++; word != 0; word &= word - 1) {
        const auto cell = first + static_cast<std::size_t>(std::countr_zero(word));
        *value++ = preprocess_cell(image[cell], preprocessing);
      }
    }
  }
}

std::size_t PackedEvents::bytes() const {
  return occupied_.capacity() * sizeof(occupied_[0]) + values_.capacity() * sizeof(values_[0]) +
         first_values_.capacity() * sizeof(first_values_[0]);
}

void PackedEvents::unpack(std::size_t index, std::span<float> out) const {
  CHECK(index < events() && (out.size() + 63) / 64 == words_);
  std::fill(out.begin(), out.end(), 0.0f);
  const float* value = values_.data() + first_values_[index];
  const std::uint64_t* words = occupied_.data() + index * words_;
  for (std::size_t w = 0; w < words_; ++w) {
    for (std::uint64_t word = words[w]; word != 0; word &= word - 1) {
      out[64 * w + static_cast<std::size_t>(std::countr_zero(word))] = *value++;
    }
  }
}

void BlockStore::reset(std::size_t blocks, std::size_t capacity) {
  slots_.clear();
  slots_.resize(blocks);
  capacity_ = capacity;
}

void BlockStore::put(std::uint32_t block, std::unique_ptr<PackedEvents> events) {
  slots_[block].events = std::move(events);
}

void BlockStore::touch(std::uint32_t block) { slots_[block].used = ++now_; }

void BlockStore::trim() {
  if (capacity_ == 0) return;
  std::vector<std::uint32_t> held;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (has(i)) held.push_back(i);
  }
  if (held.size() <= capacity_) return;
  const auto surplus = held.begin() + static_cast<std::ptrdiff_t>(held.size() - capacity_);
  std::nth_element(held.begin(), surplus, held.end(), [this](std::uint32_t a, std::uint32_t b) {
    return slots_[a].used < slots_[b].used;
  });
  for (auto it = held.begin(); it != surplus; ++it) slots_[*it].events.reset();
}

std::uint64_t BlockStore::bytes() const {
  std::uint64_t sum = 0;
  for (const Slot& slot : slots_) {
    if (slot.events) sum += slot.events->bytes();
  }
  return sum;
}

}  // namespace troupe::pipeline

#include "pipeline/data/block_store.h"

#include <algorithm>
#include <utility>

namespace troupe::pipeline {

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

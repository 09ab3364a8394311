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

using runtime::Buffer;

namespace {

std::size_t words_of(std::size_t cells) { return (cells + 63) / 64; }
// Words before the values. May wrap round for sizes that nothing has.
std::size_t head_words(std::size_t events, std::size_t words) {
  return events + 1 + events * words;
}

// Bit i is 1 where cells[i] >= lowest; up to 64 cells. The first loop becomes vector code, the
// second moves the low bits of eight bytes, 8 k, to bits 56 + k.
std::uint64_t marks_of(std::span<const float> cells, float lowest) {
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
    : events_(stored.size()), words_(stored.empty() ? 0 : words_of(stored.front().size())) {
  const float lowest = lowest_kept(preprocessing);
  std::vector<std::uint64_t> head(head_words(events_, words_));
  std::size_t kept = 0;
  auto first_value = head.begin();
  auto marks = first_value + static_cast<std::ptrdiff_t>(events_ + 1);
  for (const std::span<const float> image : stored) {
    CHECK(image.size() == stored.front().size(), "images of one size");
    *first_value++ = kept;
    for (std::size_t first = 0; first < image.size(); first += 64) {
      const std::size_t count = std::min<std::size_t>(64, image.size() - first);
      *marks = marks_of(image.subspan(first, count), lowest);
      kept += static_cast<std::size_t>(std::popcount(*marks++));
    }
  }
  *first_value = kept;
  const auto head_bytes = std::as_bytes(std::span(head));
  bytes_ = Buffer::allocate(head_bytes.size() + kept * sizeof(float));
  std::ranges::copy(head_bytes, bytes_.mutable_data());
  float* value = reinterpret_cast<float*>(bytes_.mutable_data() + head_bytes.size());
  const std::uint64_t* words = head.data() + events_ + 1;
  for (const std::span<const float> image : stored) {
    for (std::size_t first = 0; first < image.size(); first += 64) {
      for (std::uint64_t word = *words++; word != 0; word &= word - 1) {
        const auto cell = first + static_cast<std::size_t>(std::countr_zero(word));
        *value++ = preprocess_cell(image[cell], preprocessing);
      }
    }
  }
}

std::optional<PackedEvents> PackedEvents::of(Buffer bytes, std::size_t events, std::size_t cells) {
  const std::size_t words = words_of(cells);
  const std::size_t most = bytes.size() / sizeof(std::uint64_t);
  if (events >= most || words > most || head_words(events, words) > most) return std::nullopt;
  PackedEvents all(std::move(bytes), events, words);
  // unpack() writes a cell for each bit, and reads a value for it.
  const std::uint64_t beyond = cells % 64 == 0 ? 0 : ~std::uint64_t{0} << cells % 64;
  std::uint64_t kept = 0;
  for (std::size_t event = 0; event < events; ++event) {
    if (all.first_values()[event] != kept) return std::nullopt;
    const auto marks = all.occupied().subspan(event * words, words);
    for (const std::uint64_t word : marks) kept += static_cast<unsigned>(std::popcount(word));
    if (!marks.empty() && (marks.back() & beyond) != 0) return std::nullopt;
  }
  if (all.first_values().back() != kept) return std::nullopt;
  if (all.bytes_.size() !=
      head_words(events, words) * sizeof(std::uint64_t) + kept * sizeof(float)) {
    return std::nullopt;
  }
  return all;
}

std::span<const std::uint64_t> PackedEvents::first_values() const {
  return {reinterpret_cast<const std::uint64_t*>(bytes_.data()), events_ + 1};
}

std::span<const std::uint64_t> PackedEvents::occupied() const {
  return {first_values().data() + events_ + 1, events_ * words_};
}

std::span<const float> PackedEvents::values() const {
  const std::size_t head = head_words(events_, words_) * sizeof(std::uint64_t);
  return {reinterpret_cast<const float*>(bytes_.data() + head),
          (bytes_.size() - head) / sizeof(float)};
}

void PackedEvents::unpack(std::size_t index, std::span<float> out) const {
  CHECK(index < events() && words_of(out.size()) == words_);
  std::fill(out.begin(), out.end(), 0.0f);
  const float* value = values().data() + first_values()[index];
  const std::uint64_t* words = occupied().data() + index * words_;
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
    if (slot.events) sum += slot.events->bytes().size();
  }
  return sum;
}

}  // namespace troupe::pipeline

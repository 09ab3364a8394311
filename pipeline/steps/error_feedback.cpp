#include "pipeline/steps/error_feedback.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

// Elements that are summed, encoded and decoded again while they are in the first-level cache.
constexpr std::size_t kPiece = 4 * kInt8Block;

bool is_finite(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) != 0x7f800000u;
}

// The new residual is the part of value and residual that decoding misses. One that is not finite
// would spoil every later step, so it becomes 0.
void encode_piece(ReductionFormat format, std::span<const float> values, const float* residuals,
                  float* staged, std::span<std::byte> out) {
  std::array<float, kPiece> wanted, given;
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) wanted[i] = values[i] + residuals[i];
  encode(format, {wanted.data(), count}, out);
  decode(format, out, {given.data(), count});
  for (std::size_t i = 0; i < count; ++i) {
    const float missed = wanted[i] - given[i];
    staged[i] = is_finite(missed) ? missed : 0.0f;
  }
}

}  // namespace

ErrorFeedback::ErrorFeedback(ReductionFormat format, const std::vector<std::size_t>& slot_elements)
    : format_(format), slots_(slot_elements.size()) {
  CHECK(format != ReductionFormat::kFp32, "nothing is dropped of floats as they are");
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].elements = slot_elements[i];
}

ErrorFeedback::Slot& ErrorFeedback::at(std::size_t slot) {
  CHECK(slot < slots_.size(), "a slot that the schedule does not have");
  return slots_[slot];
}

void ErrorFeedback::encode(std::size_t slot, std::size_t begin, std::span<const float> values,
                           std::span<std::byte> out) {
  Slot& s = at(slot);
  CHECK(begin <= s.elements && values.size() <= s.elements - begin, "elements beyond the slot");
  CHECK(out.size() == encoded_bytes(format_, values.size()), "room for other elements");
  if (values.empty()) return;
  const auto next = s.ranges.lower_bound(begin);
  CHECK((next == s.ranges.end() || next->first >= begin + values.size()) &&
            (next == s.ranges.begin() || std::prev(next)->second <= begin),
        "an element is encoded twice in a step");
  s.ranges.emplace_hint(next, begin, begin + values.size());
  s.residuals.resize(s.elements);
  s.staged.resize(s.elements);
  for (std::size_t i = 0; i < values.size(); i += kPiece) {
    const auto piece = values.subspan(i, std::min(kPiece, values.size() - i));
    encode_piece(format_, piece, s.residuals.data() + begin + i, s.staged.data() + begin + i,
                 out.subspan(encoded_bytes(format_, i), encoded_bytes(format_, piece.size())));
  }
}

void ErrorFeedback::commit(std::size_t slot) {
  Slot& s = at(slot);
  std::size_t encoded = 0;
  for (const auto& [begin, end] : s.ranges) encoded += end - begin;
  // A step that encoded every element swaps the arrays instead of copying.
  if (encoded == s.elements) {
    s.residuals.swap(s.staged);
  } else if (!s.staged.empty()) {
    for (const auto& [begin, end] : s.ranges) {
      std::copy(s.staged.data() + begin, s.staged.data() + end, s.residuals.data() + begin);
    }
  }
  s.ranges.clear();
}

void ErrorFeedback::roll_back(std::size_t slot) { at(slot).ranges.clear(); }

}  // namespace troupe::pipeline

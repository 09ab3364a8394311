// Lossy reductions that forget what rounding has dropped: the other side of the comparison that
// tests/main/rounding_merit makes.

#include "pipeline/steps/error_feedback.h"

namespace troupe::pipeline {

ErrorFeedback::ErrorFeedback(ReductionFormat format, const std::vector<std::size_t>& slot_elements)
    : format_(format), slots_(slot_elements.size()) {}

void ErrorFeedback::encode(std::size_t, std::size_t, std::span<const float> values,
                           std::span<std::byte> out) {
  pipeline::encode(format_, values, out);
}

void ErrorFeedback::commit(std::size_t) {}

void ErrorFeedback::roll_back(std::size_t) {}

}  // namespace troupe::pipeline

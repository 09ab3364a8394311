#include "pipeline/steps/view_fields.h"

#include <cstdint>
#include <set>

namespace troupe::pipeline {

const char* fault_of(const View& view) {
  if (view.ring.empty() || view.owners.empty()) return "a View of nobody";
  if (view.reached.size() != view.ring.size()) return "a View that does not tell what all reached";
  const std::set<std::uint32_t> members(view.ring.begin(), view.ring.end());
  if (members.size() != view.ring.size()) return "a View with a member twice";
  bool is_reached = false;
  for (std::size_t i = 0; i < view.ring.size(); ++i) {
    const std::uint64_t step = view.reached[i];
    if (step > view.first_step) return "a View behind what its members have reached";
    if (view.is_new(view.ring[i])) continue;
    if (view.first_step - step > 1) return "a View of members far behind it";
    is_reached = is_reached || step == view.first_step;
  }
  return is_reached ? nullptr : "a View from a step on that nobody has reached";
}

}  // namespace troupe::pipeline

#include "telemetry/page/text_budget.h"

#include "runtime/base/error.h"

namespace troupe::telemetry {

void TextBudget::take(const Text& text) {
  bytes_ += cost(text);
  if (text != nullptr) ++uses_[text.get()];
}

void TextBudget::release(const Text& text) {
  if (text == nullptr) return;
  const auto found = uses_.find(text.get());
  CHECK(found != uses_.end(), "a text that was not taken");
  if (--found->second > 0) return;
  uses_.erase(found);
  bytes_ -= text->size();
}

std::size_t TextBudget::cost(const Text& text) const {
  return text == nullptr || uses_.count(text.get()) > 0 ? 0 : text->size();
}

}  // namespace troupe::telemetry

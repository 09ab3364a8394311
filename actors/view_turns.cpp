#include "actors/view_turns.h"

#include <algorithm>

namespace troupe::actors {

bool ViewTurns::awaits_next() const {
  if (!planned_.empty()) return halted_for_ > planned_.back()->id;
  return view_ == nullptr || halted_for_ > view_->id;
}

std::uint64_t ViewTurns::end() const {
  if (!planned_.empty()) return planned_.front()->first_step;
  return awaits_next() && unbegun_ ? *unbegun_ : UINT64_MAX;
}

std::optional<std::uint64_t> ViewTurns::halt(const Halt& halt, std::uint64_t unbegun) {
  halted_for_ = halt.change;
  // A member that learns, and is in no View yet, begins none.
  if (!halt.planned || view_ == nullptr) {
    planned_.clear();
    unbegun_.reset();
  } else if (planned_.empty()) {
    unbegun_ = std::max(unbegun, unbegun_.value_or(0));
  } else {
    unbegun_ = planned_.back()->first_step;
  }
  return unbegun_;
}

ViewTurns::Turn ViewTurns::tell(const ViewPointer& view) {
  const pipeline::ViewId known = view_ == nullptr ? pipeline::ViewId{} : view_->id;
  if (view->id <= known || view->id < halted_for_) return Turn::kPast;
  if (!unbegun_ || view->id > halted_for_) {
    planned_.clear();
    return Turn::kNow;
  }
  planned_.push_back(view);
  unbegun_.reset();
  return Turn::kLater;
}

ViewPointer ViewTurns::take_planned(std::uint64_t next_step) {
  if (planned_.empty() || planned_.front()->first_step != next_step) return nullptr;
  ViewPointer view = planned_.front();
  planned_.pop_front();
  return view;
}

}  // namespace troupe::actors

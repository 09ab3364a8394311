#pragma once

// The Views that a Reducer (reducer.h) is told of: the one that it is in, those that begin at a
// later step, and the change of which the next View is not told yet. One thread.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include "actors/messages.h"

namespace troupe::actors {

class ViewTurns {
 public:
  // The View that it is in; null: training has not begun.
  const ViewPointer& view() const { return view_; }
  // It was told to halt for a change, and the next View is not told.
  bool awaits_next() const;
  // It is in a View, and nothing under way is forgotten.
  bool goes_on() const { return view_ != nullptr && !parted_ && (!awaits_next() || unbegun_); }
  // The first step that it does not begin in its View, as far as it knows.
  std::uint64_t end() const;
  bool knows_next() const { return !planned_.empty(); }
  // The next View is not told, and it has made all steps that may be made before that.
  bool stands_still(std::uint64_t next_step) const {
    return awaits_next() && next_step >= unbegun_.value_or(0);
  }
  bool has_halted_for_another() const { return view_ != nullptr && halted_for_ > view_->id; }

  // A change that is not newer than all that it knows.
  bool is_past(const Halt& halt) const {
    return halt.change < halted_for_ || (view_ != nullptr && halt.change <= view_->id);
  }
  // It knows no change by the head that tells it to halt.
  bool is_of_another_head(const Halt& halt) const {
    return view_ != nullptr && halt.change.term != std::max(halted_for_, view_->id).term;
  }
  // The first step that it does not begin before it knows the next View, if the change is planned;
  // `unbegun`: nothing of that step or a later one is here. Nothing: it forgets what is under way.
  std::optional<std::uint64_t> halt(const Halt& halt, std::uint64_t unbegun);

  enum class Turn : std::uint8_t { kPast, kNow, kLater };
  // When the View begins. One that begins later is planned.
  Turn tell(const ViewPointer& view);
  // The planned View that begins at this step; null: none does.
  ViewPointer take_planned(std::uint64_t next_step);
  void enter(const ViewPointer& view) {
    view_ = view;
    parted_ = false;
  }
  // The planned View is without it.
  void part() { parted_ = true; }
  bool has_parted() const { return parted_; }

 private:
  ViewPointer view_;
  std::deque<ViewPointer> planned_;  // in order
  pipeline::ViewId halted_for_;      // the newest change
  // That change is planned: the first step that it does not begin before it knows the View.
  std::optional<std::uint64_t> unbegun_;
  bool parted_ = false;
};

}  // namespace troupe::actors

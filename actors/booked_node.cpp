#include "actors/booked_node.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

using runtime::Duration;
using runtime::TimePoint;
using State = PoolNodeState;

// A node that was started may be listed a little later, and one whose start seemed to fail later
// still.
constexpr Duration kListedWithin = std::chrono::seconds(20);
constexpr Duration kShowsWithin = std::chrono::minutes(1);
// Its members have ended, and it should too.
constexpr Duration kEndsWithin = std::chrono::seconds(10);
// Members of a lost head come back to the next one.
constexpr Duration kComesBackWithin = std::chrono::minutes(1);
constexpr Duration kStopAgain = std::chrono::seconds(30);

}  // namespace

BookedNode::BookedNode(std::string name, std::string pool, TimePoint now)
    : facts_{.name = std::move(name), .pool = std::move(pool)}, since_(now) {}

BookedNode::BookedNode(const PoolNode& known, bool lists, TimePoint now)
    : facts_(known),
      since_(now),
      answered_(true),
      had_members_(known.state >= State::kLearning && known.state <= State::kDraining),
      alone_since_(now + kComesBackWithin),
      changed_(false) {
  // Nobody has seen it, and why it is stopped is known: its start seemed to fail.
  failed_ = known.state == State::kStopping && known.where.empty() && !known.cause.empty();
  // Any other one was there, and has ended where no list has it.
  seen_ = known.state == State::kStopping && !failed_;
  if (facts_.state == State::kAsked && !lists) facts_.state = State::kStarting;
}

void BookedNode::set(State state, TimePoint now) {
  if (facts_.state == state) return;
  facts_.state = state;
  facts_.was_there = true;
  since_ = now;
  changed_ = true;
}

void BookedNode::begin_to_stop(TimePoint now) {
  set(State::kStopping, now);
  stop_due_ = now;
}

bool BookedNode::is_awaited(TimePoint now) const {
  return had_members_ && members_.empty() && now < alone_since_;
}

bool BookedNode::is_of(const ListedNode& row) const {
  return row.name == facts_.name && (facts_.id.empty() || row.id.empty() || row.id == facts_.id);
}

void BookedNode::set_id(const std::string& id) {
  changed_ = changed_ || facts_.id != id;
  facts_.id = id;
}

void BookedNode::started(const std::string& id, bool lists, TimePoint now) {
  answered_ = true;
  facts_.id = id;
  changed_ = true;
  if (facts_.state != State::kAsked) return;
  since_ = now;
  if (!lists) set(State::kStarting, now);
}

void BookedNode::start_failed(const runtime::Error& why, TimePoint now) {
  answered_ = true;
  facts_.cause = why.message;
  if (why.kind != runtime::ErrorKind::kLostPeers) {
    facts_.id.clear();  // nothing is there under it
    set(State::kGone, now);
    facts_.was_there = false;
    return;
  }
  failed_ = true;
  begin_to_stop(now);
}

// Members that are there tell more than a list without their node.
bool BookedNode::look_at(const ListedNode* row, TimePoint now) {
  if (row == nullptr) {
    const Duration grace = failed_ ? kShowsWithin : kListedWithin;
    const bool was_there = seen_ || had_members_;
    const bool is_missing = was_there || (answered_ && now - since_ >= grace);
    if (!is_missing || has_members()) return false;
    const bool is_lost = facts_.is_present();
    if (is_lost) facts_.cause = "its launcher does not know it any more";
    set(State::kGone, now);
    facts_.was_there = was_there || !failed_;
    return is_lost && !had_members_;
  }
  seen_ = true;
  const std::string& id = row->id.empty() ? facts_.id : row->id;
  changed_ = changed_ || facts_.id != id || facts_.where != row->where;
  facts_.id = id;
  facts_.where = row->where;
  if (!facts_.is_present() || has_members()) return false;
  if (row->queued) {
    // Its next members are awaited anew.
    had_members_ = false;
    set(State::kQueued, now);
  } else if (facts_.state < State::kStarting) {
    set(State::kStarting, now);
  }
  // The time in which it has to join begins when its machine is up.
  if (row->boots && facts_.state == State::kStarting) since_ = now;
  return false;
}

void BookedNode::member_came(const std::string& member, TimePoint now) {
  members_.emplace(member, false);
  had_members_ = true;
  // One that was thought gone is there.
  const bool is_back = facts_.state < State::kLearning || facts_.is_gone();
  if (is_back) set(State::kLearning, now);
}

void BookedNode::member_trains(TimePoint now) {
  if (facts_.state < State::kRunning) set(State::kRunning, now);
}

void BookedNode::member_gone(const std::string& member, TimePoint now) {
  members_.erase(member);
  alone_since_ = now;
}

bool BookedNode::member_kept(const std::string& member, TimePoint now) {
  if (facts_.state != State::kDraining) return false;
  members_[member] = false;
  set(State::kRunning, now);
  return true;
}

void BookedNode::release(TimePoint now) {
  if (!has_members()) return;
  set(State::kDraining, now);
  members_.clear();
  alone_since_ = now;
}

void BookedNode::give_back(TimePoint now) {
  if (has_members()) {
    set(State::kDraining, now);
  } else {
    begin_to_stop(now);
  }
}

bool BookedNode::look_after(Duration starts_in, TimePoint now) {
  const bool is_late = facts_.state == State::kStarting && now - since_ >= starts_in;
  if (is_late) {
    facts_.cause = fmt::format("it has not joined within {:.0f} s", runtime::seconds(starts_in));
    begin_to_stop(now);
  }
  const bool is_left = had_members_ && members_.empty() && facts_.state >= State::kStarting &&
                       facts_.state <= State::kDraining && now - alone_since_ >= kEndsWithin;
  if (is_left) {
    if (facts_.state != State::kDraining) facts_.cause = "its members are gone";
    begin_to_stop(now);
  }
  return is_late;
}

std::vector<std::string> BookedNode::take_members_to_go() {
  std::vector<std::string> to_go;
  if (facts_.state != State::kDraining) return to_go;
  for (auto& [member, asked] : members_) {
    if (!std::exchange(asked, true)) to_go.push_back(member);
  }
  return to_go;
}

bool BookedNode::take_stop(TimePoint now) {
  if (facts_.state != State::kStopping || now < stop_due_) return false;
  stop_due_ = now + kStopAgain;
  return true;
}

bool BookedNode::take_changed() { return std::exchange(changed_, false); }

}  // namespace troupe::actors

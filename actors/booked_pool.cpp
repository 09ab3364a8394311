#include "actors/booked_pool.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

using runtime::Duration;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using runtime::TimePoint;

constexpr Duration kFirstPause = std::chrono::seconds(5);
constexpr std::uint32_t kMostDoublings = 6;

std::uint32_t number_of(const std::string& node) {
  std::uint32_t number = 0;
  const char* const end = node.data() + node.size();
  std::from_chars(node.data() + node.rfind('.') + 1, end, number);
  return number;
}

}  // namespace

std::uint32_t BookedPool::present() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      nodes_, [](const BookedNode& node) { return node.facts().is_present(); }));
}

std::uint32_t BookedPool::not_gone() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      nodes_, [](const BookedNode& node) { return !node.facts().is_gone(); }));
}

BookedNode* BookedPool::find(const std::string& node) {
  const auto found = std::ranges::find_if(
      nodes_, [&](const BookedNode& each) { return each.facts().name == node; });
  return found == nodes_.end() ? nullptr : &*found;
}

BookedNode* BookedPool::with_member(const std::string& member) {
  const auto found =
      std::ranges::find_if(nodes_, [&](const BookedNode& node) { return node.has_member(member); });
  return found == nodes_.end() ? nullptr : &*found;
}

void BookedPool::adopt(const PoolNode& node, TimePoint now) {
  next_number_ = std::max(next_number_, number_of(node.name) + 1);
  if (node.is_gone()) return;
  nodes_.emplace_back(node, limits_.lists, now);
}

Result<void> BookedPool::want(std::uint32_t nodes) {
  if (nodes > limits_.most) {
    return Error{ErrorKind::kUsage, fmt::format("pool {} has {} nodes at most, not {}",
                                                limits_.name, limits_.most, nodes)};
  }
  wanted_ = nodes;
  // Somebody asks, so it is tried again at once.
  ask_again_ = TimePoint(0);
  return {};
}

void BookedPool::end(TimePoint now) {
  wanted_ = 0;
  for (BookedNode& node : nodes_) node.release(now);
}

// Several that fail together count once.
void BookedPool::note_failure(TimePoint now) {
  if (now < ask_again_) return;
  ask_again_ = now + kFirstPause * (1 << std::min(failures_, kMostDoublings));
  ++failures_;
}

void BookedPool::listed(const std::vector<ListedNode>& rows, TimePoint now) {
  for (BookedNode& node : nodes_) {
    if (node.facts().is_gone()) continue;
    const auto row =
        std::ranges::find_if(rows, [&](const ListedNode& each) { return node.is_of(each); });
    if (node.look_at(row == rows.end() ? nullptr : &*row, now)) note_failure(now);
  }
  // The first of two with one name has given its id to the node by now.
  has_strays_ = false;
  survivors_ = 0;
  for (const ListedNode& row : rows) {
    const BookedNode* const node = find(row.name);
    const bool is_there = node != nullptr && !node->facts().is_gone();
    if (is_there && node->is_of(row)) continue;
    survivors_ += is_there ? 0 : 1;
    strays_.push_back({limits_.name, row.name, row.id});
    has_strays_ = true;
  }
}

// Nodes that have not joined go first, then those that came last. One whose members may still come
// back from a lost head is let be.
void BookedPool::shrink(TimePoint now) {
  for (std::uint32_t count = present(); count > wanted_; --count) {
    BookedNode* victim = nullptr;
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      if (!node->facts().is_present() || node->is_awaited(now)) continue;
      if (victim == nullptr || (!node->has_members() && victim->has_members())) victim = &*node;
    }
    if (victim == nullptr) return;
    victim->give_back(now);
  }
}

void BookedPool::give_orders(std::vector<PoolOrder>& orders, TimePoint now) {
  shrink(now);
  for (StopNode& stray : std::exchange(strays_, {})) orders.emplace_back(std::move(stray));
  for (BookedNode& node : nodes_) {
    if (node.look_after(limits_.starts_in, now)) note_failure(now);
    auto members = node.take_members_to_go();
    if (!members.empty()) orders.emplace_back(LetMembersGo{node.facts().name, std::move(members)});
    if (!node.take_stop(now)) continue;
    orders.emplace_back(StopNode{limits_.name, node.facts().name, node.facts().id});
  }
}

bool BookedPool::ask_for_one(std::vector<PoolOrder>& orders, TimePoint now) {
  const bool has_room = not_gone() + survivors_ < limits_.most;
  if (now < ask_again_ || present() >= wanted_ || !has_room) return false;
  const std::string name = fmt::format("{}.{}", limits_.name, next_number_++);
  nodes_.emplace_back(name, limits_.name, now);
  orders.emplace_back(AskForNode{limits_.name, name});
  return true;
}

bool BookedPool::changes() const {
  const bool any_changes = std::ranges::any_of(nodes_, [](const BookedNode& node) {
    const bool runs = node.facts().state == PoolNodeState::kRunning && node.has_members();
    return !node.facts().is_gone() && !runs;
  });
  return any_changes || has_strays_;
}

}  // namespace troupe::actors

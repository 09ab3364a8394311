#include "actors/pool_book.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

using runtime::Duration;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using runtime::TimePoint;
using State = PoolNodeState;

constexpr std::array kWords{"asked",   "queued",   "starting", "learning",
                            "running", "draining", "stopping", "ended"};

// A node that was started may be listed a little later.
constexpr Duration kListedWithin = std::chrono::seconds(20);
// Its members have ended, and it should too.
constexpr Duration kEndsWithin = std::chrono::seconds(10);
// Members of a lost head come back to the next one.
constexpr Duration kComesBackWithin = std::chrono::minutes(1);
constexpr Duration kStopAgain = std::chrono::seconds(30);
constexpr Duration kFirstPause = std::chrono::seconds(5);
constexpr std::uint32_t kMostDoublings = 6;

std::uint32_t number_of(const std::string& node) {
  std::uint32_t number = 0;
  const char* const end = node.data() + node.size();
  std::from_chars(node.data() + node.rfind('.') + 1, end, number);
  return number;
}

}  // namespace

const char* word_of(PoolNodeState state) { return kWords.at(static_cast<std::size_t>(state)); }

std::optional<PoolNodeState> pool_node_state(std::string_view word) {
  const auto found = std::ranges::find(kWords, word);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<PoolNodeState>(found - kWords.begin());
}

PoolBook::PoolBook(const std::vector<PoolLimits>& pools) {
  for (const PoolLimits& limits : pools) pools_[limits.name] = {limits, limits.nodes};
}

void PoolBook::adopt(const PoolNode& node, TimePoint now) {
  if (!pools_.contains(node.pool)) return;
  Pool& pool = pools_.at(node.pool);
  pool.next_number = std::max(pool.next_number, number_of(node.name) + 1);
  Entry entry{node, node.state == State::kStopping ? now - kStopAgain : now};
  entry.answered = true;
  entry.had_members = node.state >= State::kLearning && node.state <= State::kDraining;
  entry.alone_since = now + kComesBackWithin;
  entry.changed = false;
  nodes_.push_back(std::move(entry));
}

Result<void> PoolBook::want(const std::string& pool, std::uint32_t nodes) {
  RETURN_IF_ERROR(wanted(pool));
  Pool& there = pools_.at(pool);
  if (nodes > there.limits.most) {
    return Error{ErrorKind::kUsage, fmt::format("pool {} has {} nodes at most, not {}", pool,
                                                there.limits.most, nodes)};
  }
  there.wanted = nodes;
  // Somebody asks, so it is tried again at once.
  there.ask_again = TimePoint(0);
  return {};
}

Result<std::uint32_t> PoolBook::wanted(const std::string& pool) const {
  if (const auto found = pools_.find(pool); found != pools_.end()) return found->second.wanted;
  return Error{ErrorKind::kUsage, fmt::format("the run has no pool '{}'; its pools are {}", pool,
                                              fmt::join(std::views::keys(pools_), ", "))};
}

std::uint32_t PoolBook::present(const std::string& pool) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      nodes_, [&](const Entry& entry) { return entry.pool == pool && is_present(entry); }));
}

bool PoolBook::is_present(const Entry& entry) { return entry.state < State::kDraining; }

PoolBook::Entry* PoolBook::find(const std::string& node) {
  const auto found = std::ranges::find(nodes_, node, &Entry::name);
  return found == nodes_.end() ? nullptr : &*found;
}

PoolBook::Entry* PoolBook::with_member(const std::string& member) {
  const auto found = std::ranges::find_if(
      nodes_, [&](const Entry& entry) { return entry.members.contains(member); });
  return found == nodes_.end() ? nullptr : &*found;
}

void PoolBook::set(Entry& entry, State state, TimePoint now) {
  if (entry.state == state) return;
  entry.state = state;
  entry.since = now;
  entry.changed = true;
}

// One that fails before it has helped is asked for again later and later.
void PoolBook::note_failure(Pool& pool, TimePoint now) const {
  pool.ask_again = now + kFirstPause * (1 << std::min(pool.failures, kMostDoublings));
  ++pool.failures;
}

void PoolBook::lose(Entry& entry, const std::string& cause, TimePoint now) {
  if (is_present(entry)) {
    entry.cause = cause;
    if (!ended_ && !entry.had_members) note_failure(pool_of(entry), now);
  }
  set(entry, State::kGone, now);
}

void PoolBook::end(TimePoint now) {
  ended_ = true;
  for (auto& [name, pool] : pools_) pool.wanted = 0;
  // Members were released, and their nodes end by themselves.
  for (Entry& entry : nodes_) {
    if (entry.members.empty()) continue;
    set(entry, State::kDraining, now);
    entry.members.clear();
    entry.alone_since = now;
  }
}

void PoolBook::started(const std::string& node, const std::string& id, TimePoint now) {
  Entry* const entry = find(node);
  if (entry == nullptr) return;
  entry->answered = true;
  entry->id = id;
  entry->changed = true;
  if (entry->state != State::kAsked) return;
  entry->since = now;
  if (!pool_of(*entry).limits.lists) set(*entry, State::kStarting, now);
}

// It may have been started all the same.
void PoolBook::start_failed(const std::string& node, const std::string& why, TimePoint now) {
  Entry* const entry = find(node);
  if (entry == nullptr) return;
  entry->answered = true;
  entry->cause = why;
  note_failure(pool_of(*entry), now);
  set(*entry, State::kStopping, now - kStopAgain);
}

void PoolBook::stopped(const std::string& node, TimePoint now) {
  Entry* const entry = find(node);
  if (entry == nullptr || pool_of(*entry).limits.lists) return;
  set(*entry, State::kGone, now);
}

void PoolBook::look_at(Entry& entry, const ListedNode* row, TimePoint now) {
  if (row == nullptr) {
    if (entry.seen || entry.had_members || (entry.answered && now - entry.since >= kListedWithin)) {
      lose(entry, "its launcher does not know it any more", now);
    }
    return;
  }
  const bool is_new = entry.id != row->id || entry.where != row->where;
  entry.seen = true;
  entry.id = row->id;
  entry.where = row->where;
  entry.changed = entry.changed || is_new;
  if (!is_present(entry) || !entry.members.empty()) return;
  if (row->queued) return set(entry, State::kQueued, now);
  if (entry.state < State::kStarting) set(entry, State::kStarting, now);
}

void PoolBook::listed(const std::string& pool, const std::vector<ListedNode>& nodes,
                      TimePoint now) {
  std::vector<const ListedNode*> strays;
  for (const ListedNode& row : nodes) {
    const Entry* const entry = find(row.name);
    const bool is_known = entry != nullptr && entry->state != State::kGone &&
                          (entry->id.empty() || entry->id == row.id);
    if (!is_known) strays.push_back(&row);
  }
  for (Entry& entry : nodes_) {
    if (entry.pool != pool || entry.state == State::kGone) continue;
    const auto row = std::ranges::find_if(nodes, [&](const ListedNode& each) {
      return each.name == entry.name && (entry.id.empty() || entry.id == each.id);
    });
    look_at(entry, row == nodes.end() ? nullptr : &*row, now);
  }
  for (const ListedNode* stray : strays) {
    // The first of two without a known id is the node.
    const Entry* const entry = find(stray->name);
    if (entry != nullptr && entry->state != State::kGone && entry->id == stray->id) continue;
    pools_.at(pool).strays.push_back({pool, stray->name, stray->id});
  }
}

void PoolBook::member_came(const std::string& node, const std::string& member, TimePoint now) {
  Entry* const entry = find(node);
  if (entry == nullptr) return;
  entry->members[member] = false;
  entry->had_members = true;
  if (entry->state < State::kLearning) set(*entry, State::kLearning, now);
}

void PoolBook::member_trains(const std::string& member, TimePoint now) {
  Entry* const entry = with_member(member);
  if (entry == nullptr) return;
  entry->members[member] = true;
  pool_of(*entry).failures = 0;
  if (entry->state < State::kRunning) set(*entry, State::kRunning, now);
}

void PoolBook::member_gone(const std::string& member, TimePoint now) {
  Entry* const entry = with_member(member);
  if (entry == nullptr) return;
  entry->members.erase(member);
  entry->alone_since = now;
}

void PoolBook::member_kept(const std::string& member, TimePoint now) {
  Entry* const entry = with_member(member);
  if (entry == nullptr || entry->state != State::kDraining) return;
  set(*entry, State::kRunning, now);
  Pool& pool = pool_of(*entry);
  pool.wanted = std::max(pool.wanted, present(pool.limits.name));
}

void PoolBook::fill(Pool& pool, std::vector<PoolOrder>& orders, TimePoint now) {
  if (ended_ || now < pool.ask_again) return;
  const std::string& name = pool.limits.name;
  for (std::uint32_t count = present(name); count < pool.wanted; ++count) {
    const std::string node = fmt::format("{}.{}", name, pool.next_number++);
    nodes_.push_back(Entry{{.name = node, .pool = name}, now});
    orders.emplace_back(AskForNode{name, node});
  }
}

// Nodes that have not joined go first, then those that came last.
void PoolBook::shrink(Pool& pool, std::vector<PoolOrder>& orders, TimePoint now) {
  for (std::uint32_t count = present(pool.limits.name); count > pool.wanted; --count) {
    Entry* victim = nullptr;
    for (Entry& entry : nodes_ | std::views::reverse) {
      if (entry.pool != pool.limits.name || !is_present(entry)) continue;
      if (victim == nullptr || (entry.members.empty() && !victim->members.empty())) {
        victim = &entry;
      }
    }
    if (victim->members.empty()) {
      set(*victim, State::kStopping, now - kStopAgain);
      continue;
    }
    set(*victim, State::kDraining, now);
    LetMembersGo let_go{victim->name, {}};
    for (const auto& [member, trains] : victim->members) let_go.members.push_back(member);
    orders.emplace_back(std::move(let_go));
  }
}

void PoolBook::look_after(Entry& entry, std::vector<PoolOrder>& orders, TimePoint now) {
  const Duration starts_in = pool_of(entry).limits.starts_in;
  if (entry.state == State::kStarting && now - entry.since >= starts_in) {
    entry.cause = fmt::format("it has not joined within {:.0f} s",
                              std::chrono::duration<double>(starts_in).count());
    note_failure(pool_of(entry), now);
    set(entry, State::kStopping, now - kStopAgain);
  }
  const bool is_left = entry.had_members && entry.members.empty() &&
                       entry.state >= State::kStarting && entry.state <= State::kDraining &&
                       now - entry.alone_since >= kEndsWithin;
  if (is_left) {
    if (entry.state != State::kDraining) entry.cause = "its members are gone";
    set(entry, State::kStopping, now - kStopAgain);
  }
  if (entry.state != State::kStopping || now - entry.since < kStopAgain) return;
  entry.since = now;
  orders.emplace_back(StopNode{entry.pool, entry.name, entry.id});
}

std::vector<PoolOrder> PoolBook::next(TimePoint now) {
  std::vector<PoolOrder> orders;
  for (auto& [name, pool] : pools_) {
    shrink(pool, orders, now);
    fill(pool, orders, now);
    for (StopNode& stray : std::exchange(pool.strays, {})) orders.emplace_back(std::move(stray));
  }
  for (Entry& entry : nodes_) look_after(entry, orders, now);
  return orders;
}

std::vector<PoolNode> PoolBook::take_changed() {
  std::vector<PoolNode> changed;
  for (Entry& entry : nodes_) {
    if (std::exchange(entry.changed, false)) changed.push_back(entry);
  }
  return changed;
}

std::vector<PoolNode> PoolBook::nodes() const { return {nodes_.begin(), nodes_.end()}; }

bool PoolBook::has_any(const std::string& pool) const {
  return std::ranges::any_of(nodes_, [&](const Entry& entry) {
    return entry.pool == pool && entry.state != State::kGone;
  });
}

bool PoolBook::changes(const std::string& pool) const {
  return std::ranges::any_of(nodes_, [&](const Entry& entry) {
    const bool runs = entry.state == State::kRunning && !entry.members.empty();
    return entry.pool == pool && entry.state != State::kGone && !runs;
  });
}

bool PoolBook::all_gone() const {
  return std::ranges::all_of(nodes_,
                             [](const Entry& entry) { return entry.state == State::kGone; });
}

}  // namespace troupe::actors

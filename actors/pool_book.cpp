#include "actors/pool_book.h"

#include <algorithm>
#include <array>
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
using State = PoolNodeState;

constexpr std::array kWords{"asked",   "queued",   "starting", "learning",
                            "running", "draining", "stopping", "ended"};

// A node that was started may be listed a little later, and one whose start seemed to fail later
// still.
constexpr Duration kListedWithin = std::chrono::seconds(20);
constexpr Duration kShowsWithin = std::chrono::minutes(1);
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
  if (node.state == State::kGone) return;
  Entry entry{node, now};
  entry.answered = true;
  entry.had_members = node.state >= State::kLearning && node.state <= State::kDraining;
  entry.alone_since = now + kComesBackWithin;
  entry.changed = false;
  if (node.state == State::kAsked && !pool.limits.lists) entry.state = State::kStarting;
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
  std::vector<std::string> names;
  for (const auto& [name, there] : pools_) names.push_back(name);
  return Error{ErrorKind::kUsage, fmt::format("the run has no pool '{}'; its pools are {}", pool,
                                              fmt::join(names, ", "))};
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

// One that fails before it has helped is asked for again later and later. Several that fail
// together count once.
void PoolBook::note_failure(Pool& pool, TimePoint now) {
  if (now < pool.ask_again) return;
  pool.ask_again = now + kFirstPause * (1 << std::min(pool.failures, kMostDoublings));
  ++pool.failures;
}

void PoolBook::begin_to_stop(Entry& entry, TimePoint now) {
  set(entry, State::kStopping, now);
  entry.stop_due = now;
}

std::uint32_t PoolBook::not_gone(const std::string& pool) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(nodes_, [&](const Entry& entry) {
    return entry.pool == pool && entry.state != State::kGone;
  }));
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

// As Launcher::start() fails.
void PoolBook::start_failed(const std::string& node, const Error& why, TimePoint now) {
  Entry* const entry = find(node);
  if (entry == nullptr) return;
  entry->answered = true;
  entry->cause = why.message;
  note_failure(pool_of(*entry), now);
  if (why.kind != ErrorKind::kLostPeers) return set(*entry, State::kGone, now);
  entry->failed = true;
  begin_to_stop(*entry, now);
}

void PoolBook::withdraw(const std::string& node, TimePoint now) {
  if (Entry* const entry = find(node)) set(*entry, State::kGone, now);
}

void PoolBook::stopped(const std::string& node, TimePoint now) {
  Entry* const entry = find(node);
  if (entry == nullptr || pool_of(*entry).limits.lists) return;
  set(*entry, State::kGone, now);
}

// Members that are there tell more than a list without their node.
void PoolBook::look_at(Entry& entry, const ListedNode* row, TimePoint now) {
  if (row == nullptr) {
    const Duration grace = entry.failed ? kShowsWithin : kListedWithin;
    const bool was_there = entry.seen || entry.had_members;
    const bool is_missing = was_there || (entry.answered && now - entry.since >= grace);
    if (is_missing && entry.members.empty()) {
      lose(entry, "its launcher does not know it any more", now);
    }
    return;
  }
  entry.seen = true;
  const std::string& id = row->id.empty() ? entry.id : row->id;
  entry.changed = entry.changed || entry.id != id || entry.where != row->where;
  entry.id = id;
  entry.where = row->where;
  if (!is_present(entry) || !entry.members.empty()) return;
  if (row->queued) {
    // Its next members are awaited anew.
    entry.had_members = false;
    set(entry, State::kQueued, now);
  } else if (entry.state < State::kStarting) {
    set(entry, State::kStarting, now);
  }
  // The time in which it has to join begins when its machine is up.
  if (row->boots && entry.state == State::kStarting) entry.since = now;
}

void PoolBook::listed(const std::string& pool, const std::vector<ListedNode>& nodes,
                      TimePoint now) {
  const auto is_of = [](const ListedNode& row, const Entry& entry) {
    return row.name == entry.name && (entry.id.empty() || row.id.empty() || row.id == entry.id);
  };
  for (Entry& entry : nodes_) {
    if (entry.pool != pool || entry.state == State::kGone) continue;
    const auto row =
        std::ranges::find_if(nodes, [&](const ListedNode& each) { return is_of(each, entry); });
    look_at(entry, row == nodes.end() ? nullptr : &*row, now);
  }
  // The first of two with one name has given its id to the node by now.
  Pool& listed_pool = pools_.at(pool);
  listed_pool.has_strays = false;
  listed_pool.survivors = 0;
  for (const ListedNode& row : nodes) {
    const Entry* const entry = find(row.name);
    const bool is_there = entry != nullptr && entry->state != State::kGone;
    if (is_there && is_of(row, *entry)) continue;
    listed_pool.survivors += is_there ? 0 : 1;
    listed_pool.strays.push_back({pool, row.name, row.id});
    listed_pool.has_strays = true;
  }
}

void PoolBook::member_came(const std::string& node, const std::string& member, TimePoint now) {
  Entry* const entry = find(node);
  // After the end members are released, and nobody reports their end.
  if (entry == nullptr || ended_) return;
  entry->members.emplace(member, false);
  entry->had_members = true;
  // One that was thought gone is there.
  const bool is_back = entry->state < State::kLearning || entry->state == State::kGone;
  if (is_back) set(*entry, State::kLearning, now);
}

void PoolBook::member_trains(const std::string& member, TimePoint now) {
  Entry* const entry = with_member(member);
  if (entry == nullptr) return;
  pool_of(*entry).failures = 0;
  if (entry->state < State::kRunning) set(*entry, State::kRunning, now);
}

void PoolBook::member_gone(const std::string& member, TimePoint now) {
  Entry* const entry = with_member(member);
  if (entry == nullptr) return;
  entry->members.erase(member);
  entry->alone_since = now;
}

std::string PoolBook::member_kept(const std::string& member, TimePoint now) {
  Entry* const entry = with_member(member);
  if (entry == nullptr || entry->state != State::kDraining) return "";
  entry->members[member] = false;
  set(*entry, State::kRunning, now);
  Pool& pool = pool_of(*entry);
  pool.wanted = std::max(pool.wanted, present(pool.limits.name));
  return pool.limits.name;
}

void PoolBook::ask_member_again(const std::string& member) {
  if (Entry* const entry = with_member(member)) entry->members[member] = false;
}

void PoolBook::fill(Pool& pool, std::vector<PoolOrder>& orders, TimePoint now) {
  if (ended_ || now < pool.ask_again) return;
  const std::string& name = pool.limits.name;
  while (present(name) < pool.wanted && not_gone(name) + pool.survivors < pool.limits.most) {
    const std::string node = fmt::format("{}.{}", name, pool.next_number++);
    nodes_.push_back(Entry{{.name = node, .pool = name}, now});
    orders.emplace_back(AskForNode{name, node});
  }
}

// Nodes that have not joined go first, then those that came last. One whose members may still come
// back from a lost head is let be.
void PoolBook::shrink(Pool& pool, TimePoint now) {
  for (std::uint32_t count = present(pool.limits.name); count > pool.wanted; --count) {
    Entry* victim = nullptr;
    for (auto each = nodes_.rbegin(); each != nodes_.rend(); ++each) {
      Entry& entry = *each;
      if (entry.pool != pool.limits.name || !is_present(entry)) continue;
      if (entry.had_members && entry.members.empty() && now < entry.alone_since) continue;
      if (victim == nullptr || (entry.members.empty() && !victim->members.empty())) {
        victim = &entry;
      }
    }
    if (victim == nullptr) return;
    if (victim->members.empty()) {
      begin_to_stop(*victim, now);
    } else {
      set(*victim, State::kDraining, now);
    }
  }
}

void PoolBook::look_after(Entry& entry, std::vector<PoolOrder>& orders, TimePoint now) {
  const Duration starts_in = pool_of(entry).limits.starts_in;
  if (entry.state == State::kStarting && now - entry.since >= starts_in) {
    entry.cause = fmt::format("it has not joined within {:.0f} s",
                              std::chrono::duration<double>(starts_in).count());
    note_failure(pool_of(entry), now);
    begin_to_stop(entry, now);
  }
  const bool is_left = entry.had_members && entry.members.empty() &&
                       entry.state >= State::kStarting && entry.state <= State::kDraining &&
                       now - entry.alone_since >= kEndsWithin;
  if (is_left) {
    if (entry.state != State::kDraining) entry.cause = "its members are gone";
    begin_to_stop(entry, now);
  }
  if (entry.state == State::kDraining) {
    LetMembersGo let_go{entry.name, {}};
    for (auto& [member, asked] : entry.members) {
      if (!std::exchange(asked, true)) let_go.members.push_back(member);
    }
    if (!let_go.members.empty()) orders.emplace_back(std::move(let_go));
  }
  if (entry.state != State::kStopping || now < entry.stop_due) return;
  entry.stop_due = now + kStopAgain;
  orders.emplace_back(StopNode{entry.pool, entry.name, entry.id});
}

std::vector<PoolOrder> PoolBook::next(TimePoint now) {
  std::vector<PoolOrder> orders;
  for (auto& [name, pool] : pools_) {
    shrink(pool, now);
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
  return not_gone(pool) > 0 || pools_.at(pool).has_strays;
}

bool PoolBook::changes(const std::string& pool) const {
  const bool any_changes = std::ranges::any_of(nodes_, [&](const Entry& entry) {
    const bool runs = entry.state == State::kRunning && !entry.members.empty();
    return entry.pool == pool && entry.state != State::kGone && !runs;
  });
  return any_changes || pools_.at(pool).has_strays;
}

bool PoolBook::all_gone() const {
  return std::ranges::none_of(pools_, [&](const auto& pool) { return has_any(pool.first); });
}

}  // namespace troupe::actors

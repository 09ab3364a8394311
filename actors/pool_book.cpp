#include "actors/pool_book.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::actors {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
using runtime::TimePoint;

PoolBook::PoolBook(const std::vector<PoolLimits>& pools) {
  for (const PoolLimits& limits : pools) pools_.emplace(limits.name, BookedPool(limits));
}

void PoolBook::adopt(const PoolNode& node, TimePoint now) {
  if (const auto pool = pools_.find(node.pool); pool != pools_.end()) pool->second.adopt(node, now);
}

Result<void> PoolBook::want(const std::string& pool, std::uint32_t nodes) {
  RETURN_IF_ERROR(wanted(pool));
  return pools_.at(pool).want(nodes);
}

Result<std::uint32_t> PoolBook::wanted(const std::string& pool) const {
  if (const auto found = pools_.find(pool); found != pools_.end()) return found->second.wanted();
  std::vector<std::string> names;
  for (const auto& [name, there] : pools_) names.push_back(name);
  return Error{ErrorKind::kUsage, fmt::format("the run has no pool '{}'; its pools are {}", pool,
                                              fmt::join(names, ", "))};
}

PoolBook::Found PoolBook::find(const std::string& node) {
  for (auto& [name, pool] : pools_) {
    if (BookedNode* const found = pool.find(node)) return {&pool, found};
  }
  return {};
}

PoolBook::Found PoolBook::with_member(const std::string& member) {
  for (auto& [name, pool] : pools_) {
    if (BookedNode* const found = pool.with_member(member)) return {&pool, found};
  }
  return {};
}

void PoolBook::end(TimePoint now) {
  closed_ = ended_ = true;
  for (auto& [name, pool] : pools_) pool.end(now);
}

void PoolBook::set_id(const std::string& node, const std::string& id) {
  if (const Found found = find(node); found.pool != nullptr) found.node->set_id(id);
}

void PoolBook::started(const std::string& node, const std::string& id, TimePoint now) {
  const Found found = find(node);
  if (found.pool != nullptr) found.node->started(id, found.pool->lists(), now);
}

void PoolBook::start_failed(const std::string& node, const Error& why, TimePoint now) {
  const Found found = find(node);
  if (found.pool == nullptr) return;
  found.node->start_failed(why, now);
  found.pool->note_failure(now);
}

void PoolBook::stopped(const std::string& node, TimePoint now) {
  const Found found = find(node);
  if (found.pool != nullptr && !found.pool->lists()) found.node->gone(now);
}

void PoolBook::listed(const std::string& pool, const std::vector<ListedNode>& nodes,
                      TimePoint now) {
  pools_.at(pool).listed(nodes, now);
}

void PoolBook::member_came(const std::string& node, const std::string& member, TimePoint now) {
  const Found found = find(node);
  // After the end members are released, and nobody reports their end.
  if (found.pool != nullptr && !ended_) found.node->member_came(member, now);
}

void PoolBook::member_trains(const std::string& member, TimePoint now) {
  const Found found = with_member(member);
  if (found.pool == nullptr) return;
  found.pool->note_success();
  found.node->member_trains(now);
}

void PoolBook::member_gone(const std::string& member, TimePoint now) {
  if (const Found found = with_member(member); found.pool != nullptr) {
    found.node->member_gone(member, now);
  }
}

std::string PoolBook::member_kept(const std::string& member, TimePoint now) {
  const Found found = with_member(member);
  if (found.pool == nullptr || !found.node->member_kept(member, now)) return "";
  found.pool->keep_all();
  return found.node->facts().pool;
}

void PoolBook::ask_member_again(const std::string& member) {
  if (const Found found = with_member(member); found.pool != nullptr) found.node->ask_again(member);
}

// Tools take long, and an actor that does one thing at a time hears of the end of the run before it
// asks for the next node.
std::vector<PoolOrder> PoolBook::next(TimePoint now) {
  std::vector<PoolOrder> orders;
  for (auto& [name, pool] : pools_) pool.give_orders(orders, now);
  if (closed_ || !orders.empty()) return orders;
  auto turn = pools_.upper_bound(asked_last_);
  for (std::size_t i = 0; i < pools_.size(); ++i, ++turn) {
    if (turn == pools_.end()) turn = pools_.begin();
    if (!turn->second.ask_for_one(orders, now)) continue;
    asked_last_ = turn->first;
    break;
  }
  return orders;
}

std::vector<PoolNode> PoolBook::take_changed() {
  std::vector<PoolNode> changed;
  for (auto& [name, pool] : pools_) {
    for (BookedNode& node : pool.nodes()) {
      if (node.take_changed()) changed.push_back(node.facts());
    }
  }
  return changed;
}

std::vector<PoolNode> PoolBook::nodes() const {
  std::vector<PoolNode> all;
  for (const auto& [name, pool] : pools_) {
    for (const BookedNode& node : pool.nodes()) all.push_back(node.facts());
  }
  return all;
}

bool PoolBook::all_gone() const {
  return std::ranges::none_of(pools_, [](const auto& pool) { return pool.second.has_any(); });
}

}  // namespace troupe::actors

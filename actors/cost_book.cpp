#include "actors/cost_book.h"

#include <algorithm>

#include "pipeline/scaling/burst.h"

namespace troupe::actors {

using runtime::TimePoint;
using State = PoolNodeState;

bool is_costing(State state) { return state != State::kQueued && state != State::kGone; }

Payment CostBook::paid_at(const Entry& entry, TimePoint now) const {
  if (!is_costing(entry.state)) return entry.paid;
  const double seconds = runtime::seconds(now - entry.since);
  return {entry.paid.seconds + seconds,
          entry.paid.cost + seconds / 3600.0 * past_.at(entry.pool).price};
}

void CostBook::set_price(const std::string& pool, double price, TimePoint now) {
  for (auto& [name, entry] : nodes_) {
    if (entry.pool != pool) continue;
    entry.paid = paid_at(entry, now);
    entry.since = now;
  }
  past_[pool].price = price;
}

Payment CostBook::note(const PoolNode& node, TimePoint now) {
  const auto [found, is_new] =
      nodes_.try_emplace(node.name, Entry{node.pool, node.state, now, node.paid, now, {}});
  Entry& entry = found->second;
  PoolAccount& past = past_[node.pool];
  if (!is_new) {
    entry.paid = paid_at(entry, now);
    entry.since = now;
    // Until it was known to wait for a machine it had none.
    if (entry.state == State::kAsked && node.state == State::kQueued) entry.paid = {};
    const bool trained = entry.state == State::kRunning;
    if (node.state == State::kRunning && entry.state < State::kRunning) {
      ++past.started;
      past.start_seconds += runtime::seconds(now - entry.asked);
    }
    if (trained && node.state > State::kDraining && !node.cause.empty()) ++past.losses;
    entry.state = node.state;
  }
  if (entry.state < State::kDraining) {
    entry.leaves.reset();
  } else if (!entry.leaves) {
    entry.leaves = now;
  }
  if (!node.was_there) entry.paid = {};
  const Payment paid = entry.paid;
  if (node.state != State::kGone) return paid;
  past.paid.seconds += paid.seconds;
  past.paid.cost += paid.cost;
  nodes_.erase(found);
  return paid;
}

PoolAccount CostBook::account(const std::string& pool, TimePoint now) const {
  const auto before = past_.find(pool);
  PoolAccount account = before == past_.end() ? PoolAccount{} : before->second;
  for (const auto& [name, entry] : nodes_) {
    if (entry.pool != pool) continue;
    const Payment paid = paid_at(entry, now);
    account.paid.seconds += paid.seconds;
    account.paid.cost += paid.cost;
    if (entry.leaves) {
      account.leaving.push_back(runtime::seconds(now - *entry.leaves));
    } else {
      account.costing += is_costing(entry.state) ? 1 : 0;
    }
    account.running += entry.state == State::kRunning ? 1 : 0;
    if (entry.state >= State::kRunning) continue;
    account.longest_start = std::max(account.longest_start, runtime::seconds(now - entry.asked));
  }
  return account;
}

}  // namespace troupe::actors

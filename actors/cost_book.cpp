#include "actors/cost_book.h"

#include <algorithm>

namespace troupe::actors {

using runtime::TimePoint;
using State = PoolNodeState;

bool is_costing(State state) { return state != State::kQueued && state != State::kGone; }

double CostBook::Entry::paid_at(TimePoint now) const {
  return paid + (is_costing(state) ? runtime::seconds(now - since) : 0.0);
}

double CostBook::note(const PoolNode& node, TimePoint now) {
  const auto [found, is_new] =
      nodes_.try_emplace(node.name, Entry{node.pool, node.state, now, node.paid_seconds, now});
  Entry& entry = found->second;
  PoolAccount& past = past_[node.pool];
  if (!is_new) {
    entry.paid = entry.paid_at(now);
    entry.since = now;
    // Until it was known to wait for a machine it had none.
    if (entry.state == State::kAsked && node.state == State::kQueued) entry.paid = 0.0;
    const bool trained = entry.state == State::kRunning;
    if (node.state == State::kRunning && entry.state < State::kRunning) {
      ++past.started;
      past.start_seconds += runtime::seconds(now - entry.asked);
    }
    if (trained && node.state > State::kDraining && !node.cause.empty()) ++past.losses;
    entry.state = node.state;
  }
  const double paid = entry.paid;
  if (node.state != State::kGone) return paid;
  past.node_seconds += paid;
  nodes_.erase(found);
  return paid;
}

PoolAccount CostBook::account(const std::string& pool, TimePoint now) const {
  const auto before = past_.find(pool);
  PoolAccount account = before == past_.end() ? PoolAccount{} : before->second;
  for (const auto& [name, entry] : nodes_) {
    if (entry.pool != pool) continue;
    account.node_seconds += entry.paid_at(now);
    account.costing += is_costing(entry.state) ? 1 : 0;
    account.running += entry.state == State::kRunning ? 1 : 0;
    if (entry.state >= State::kRunning) continue;
    account.longest_start = std::max(account.longest_start, runtime::seconds(now - entry.asked));
  }
  return account;
}

}  // namespace troupe::actors

#include "actors/pool_tools.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Result;

// Between two looks at what a launcher lists: while something is on its way, and else.
constexpr std::chrono::seconds kLookSoon(2), kLookLater(15);
constexpr auto kAskPriceEvery = std::chrono::minutes(1);

std::string list_of(const std::string& pool) { return "list of " + pool; }
std::string price_of(const std::string& pool) { return "price of " + pool; }

}  // namespace

std::vector<PoolLimits> PoolTools::limits() const {
  std::vector<PoolLimits> limits;
  for (const Pool& pool : pools_) {
    limits.push_back(pool.limits);
    limits.back().lists = pool.launcher->lists();
  }
  return limits;
}

PoolTools::Pool& PoolTools::pool(const std::string& name) {
  return *std::ranges::find_if(pools_, [&](const Pool& each) { return each.limits.name == name; });
}

void PoolTools::warn_once(Context& context, const std::string& of, const std::string& why) {
  if (std::exchange(warned_[of], why) != why) context.log().warning(why);
}

void PoolTools::look(Context& context, PoolBook& book, bool is_urgent) {
  for (const Pool& pool : pools_) {
    const std::string& name = pool.limits.name;
    const auto pause = book.changes(name) || is_urgent ? kLookSoon : kLookLater;
    const bool is_due = context.now() - looked_at_[name] >= pause;
    if (!is_due || !pool.launcher->lists() || !book.has_any(name)) continue;
    const runtime::TimePoint asked = context.now();
    const auto listed = pool.launcher->list();
    // One that takes long, as of many hosts, leaves time for nodes that are to be asked for.
    looked_at_[name] =
        context.now() + std::min<runtime::Duration>(3 * (context.now() - asked), kLookLater);
    if (listed.ok()) {
      warned_.erase(list_of(name));
      book.listed(name, *listed, context.now());
    } else {
      warn_once(context, list_of(name), fmt::format("pool {}: {}", name, listed.error().message));
    }
  }
}

void PoolTools::start(Context& context, PoolBook& book, const AskForNode& asked,
                      Result<std::string> token) {
  const Pool& from = pool(asked.pool);
  const auto started = [&]() -> Result<std::string> {
    if (!token.ok()) return token.error();
    return from.launcher->start({asked.node, from.workers, *std::move(token)});
  }();
  if (started.ok()) {
    context.log().info(fmt::format("{} is asked for ({})", asked.node, *started));
    return book.started(asked.node, *started, context.now());
  }
  const bool may_be_there = started.error().kind == runtime::ErrorKind::kLostPeers;
  context.log().warning(fmt::format("{} could not be started: {}{}", asked.node,
                                    started.error().message,
                                    may_be_there ? "; it may be there, and is stopped" : ""));
  if (may_be_there) book.set_id(asked.node, from.launcher->id_for(asked.node));
  book.start_failed(asked.node, started.error(), context.now());
}

void PoolTools::stop(Context& context, PoolBook& book, const std::string& of,
                     const std::vector<ListedNode>& nodes) {
  for (auto rest = std::span(nodes); !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), kMostStopsAtOnce));
    rest = rest.subspan(some.size());
    const auto results = pool(of).launcher->stop_all({some.begin(), some.end()});
    std::set<std::string> faults;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (results[i].ok()) {
        book.stopped(some[i].name, context.now());
      } else {
        faults.insert(results[i].error().message);
      }
    }
    for (const std::string& fault : faults) context.log().warning(fault);
    context.post_progress();
  }
}

std::map<std::string, double> PoolTools::ask_prices(Context& context) {
  std::map<std::string, double> prices;
  for (const Pool& pool : pools_) {
    const std::string& name = pool.limits.name;
    const auto asked = priced_at_.find(name);
    const bool is_due =
        asked == priced_at_.end() || context.now() - asked->second >= kAskPriceEvery;
    if (!pool.price || !is_due) continue;
    const auto price = pool.price();
    priced_at_[name] = context.now();
    if (price.ok()) {
      warned_.erase(price_of(name));
      prices[name] = *price;
    } else {
      warn_once(context, price_of(name), price.error().message);
    }
  }
  return prices;
}

std::string PoolTools::price_fault(const std::string& of) const {
  const auto found = warned_.find(price_of(of));
  return found == warned_.end() ? "" : found->second;
}

}  // namespace troupe::actors

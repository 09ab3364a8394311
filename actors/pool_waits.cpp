#include "actors/pool_waits.h"

#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::actors {
namespace {

constexpr auto kTellFirstEvery = std::chrono::minutes(1);
constexpr auto kTellLastEvery = std::chrono::seconds(10);
constexpr std::size_t kMostNamed = 8;

}  // namespace

void PoolWaits::tell_first(runtime::Context& context, const std::string& why,
                           bool is_any_on_its_way) {
  const bool is_news = !is_any_on_its_way && why != told_;
  const bool is_due = first_at_ && context.now() - *first_at_ >= kTellFirstEvery;
  if (!first_at_) first_at_ = context.now();
  if (!is_news && !is_due) return;
  told_ = why;
  first_at_ = context.now();
  context.log().info("no node trains yet, and the run waits for the first one: " + why);
}

void PoolWaits::tell_last(runtime::Context& context, const std::vector<PoolNode>& left,
                          runtime::TimePoint until) {
  if (!last_at_) last_at_ = context.now();
  if (left.empty() || context.now() - *last_at_ < kTellLastEvery) return;
  last_at_ = context.now();
  std::vector<std::string> named;
  for (const PoolNode& node : left) {
    if (named.size() == kMostNamed) break;
    named.push_back(fmt::format("{} is {}", text_of(node), word_of(node.state)));
  }
  if (left.size() > kMostNamed) named.push_back(fmt::format("{} more", left.size() - kMostNamed));
  context.log().info(
      fmt::format("the run is over, and waits {:.0f} s more for its nodes to end: {}",
                  runtime::seconds(until - context.now()), fmt::join(named, ", ")));
}

}  // namespace troupe::actors

#include "actors/treasurer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::actors {
namespace {

using pipeline::BurstFacts;
using pipeline::PoolOffer;
using runtime::TimePoint;

// Until it was measured, a node is thought to start in this share of the time that it may take.
constexpr double kUsualShare = 0.1;
// Losses count as if there had been so many node hours before, with one loss where nodes are spot.
constexpr double kHoursBefore = 10.0;

}  // namespace

PoolOffer offer_of(const config::PoolSection& pool, const PoolAccount& account, double speed,
                   double of_others, std::uint32_t workers_per_member) {
  PoolOffer offer;
  offer.name = pool.name;
  offer.most = pool.most;
  offer.workers = pool.workers * workers_per_member;
  offer.price = account.price;
  // Before anything is measured, only how pools compare counts.
  offer.speed = speed > 0.0 ? speed : pool.speed * (of_others > 0.0 ? of_others : 1.0);
  offer.starts_in = account.started > 0 ? account.start_seconds / account.started
                                        : kUsualShare * runtime::seconds(pool.starts_in);
  offer.starts_in = std::max(offer.starts_in, account.longest_start);
  offer.losses_per_hour =
      (account.losses + (pool.spot ? 1.0 : 0.0)) / (account.paid.seconds / 3600.0 + kHoursBefore);
  offer.running = account.running;
  offer.costing = account.costing;
  offer.stops_in = runtime::seconds(pool.stops_in);
  for (const double seconds : account.leaving) {
    offer.leaving_seconds += std::max(0.0, offer.stops_in - seconds);
  }
  return offer;
}

Treasurer::Treasurer(TreasurerOptions options)
    : options_(std::move(options)), made_(options_.made) {
  for (const auto& pool : options_.pools) {
    costs_.set_price(pool.name, pool.price_per_node_hour, TimePoint{0});
    if (!pool.price.empty()) unpriced_.insert(pool.name);
  }
}

// A node of an earlier head tells the price that it had.
Payment Treasurer::note(const PoolNode& node, TimePoint now) {
  const bool is_told = node.price_per_node_hour > 0.0 && !knows_price(node.pool);
  if (is_told) set_price(node.pool, node.price_per_node_hour, now);
  return costs_.note(node, now);
}

void Treasurer::note(const Pace& pace, TimePoint now) {
  made_.note(pace, now);
  const auto measured = made_.iteration_seconds();
  if (!measured) return;
  std::vector<pipeline::Crew> crews{made_.crew("")};
  for (const auto& pool : options_.pools) crews.push_back(made_.crew(pool.name));
  const double known = pipeline::iteration_time(options_.work, {}, crews).all();
  if (!std::isfinite(known)) return;
  unexplained_ = std::max(0.0, *measured - known);
  unexplained_speed_ = 0.0;
  for (const pipeline::Crew& crew : crews) {
    const bool is_slowest = unexplained_speed_ == 0.0 || crew.speed < unexplained_speed_;
    if (crew.workers > 0 && crew.speed > 0.0 && is_slowest) unexplained_speed_ = crew.speed;
  }
}

double Treasurer::seconds(TimePoint now) const {
  return options_.seconds_before + runtime::seconds(now - began_);
}

double Treasurer::speed_of_others() const {
  if (const double speed = made_.crew("").speed; speed > 0.0) return speed;
  double sum = 0.0;
  int measured = 0;
  for (const auto& pool : options_.pools) {
    const double speed = made_.crew(pool.name).speed;
    if (!(speed > 0.0)) continue;
    sum += speed / pool.speed;
    ++measured;
  }
  return measured > 0 ? sum / measured : 0.0;
}

BurstFacts Treasurer::facts(const Wanted& wanted, TimePoint now) const {
  BurstFacts facts;
  facts.measured = speed_of_others() > 0.0;
  facts.elapsed = seconds(now);
  facts.iterations_left = made_.iterations_left();
  facts.work = options_.work;
  facts.unexplained = unexplained_;
  facts.unexplained_speed = unexplained_speed_;
  facts.others = {made_.crew("").workers, speed_of_others()};
  if (!made_.has_begun() && options_.others_come) facts.others.workers = 1;
  for (const auto& pool : options_.pools) {
    const PoolAccount account = costs_.account(pool.name, now);
    facts.spent += account.paid.cost;
    facts.pools.push_back(offer_of(pool, account, made_.crew(pool.name).speed, facts.others.speed,
                                   options_.made.replicas_per_member));
    const auto found = wanted.find(pool.name);
    facts.pools.back().wanted = found == wanted.end() ? 0 : found->second;
  }
  return facts;
}

std::optional<pipeline::BurstDecision> Treasurer::decide(const Wanted& wanted, TimePoint now) {
  if (!options_.limits || unpriced_.size() == options_.pools.size()) return std::nullopt;
  const auto every = std::chrono::duration<double>(options_.limits->decide_every);
  if (decided_ && now - *decided_ < every) return std::nullopt;
  decided_ = now;
  BurstFacts known = facts(wanted, now);
  for (PoolOffer& pool : known.pools) {
    if (!knows_price(pool.name)) pool.most = pool.wanted = 0;
  }
  auto decision = pipeline::decide(known, *options_.limits);
  // The other pools may cost little enough.
  decision.must_end = decision.must_end && unpriced_.empty();
  return decision;
}

std::map<std::string, double> Treasurer::contributed() const {
  std::map<std::string, double> all{{"", made_.contributed("")}};
  for (const auto& pool : options_.pools) all[pool.name] = made_.contributed(pool.name);
  return all;
}

telemetry::BillFacts Treasurer::bill(const Wanted& wanted, TimePoint now) {
  telemetry::BillFacts bill;
  const BurstFacts facts = this->facts(wanted, now);
  for (std::size_t i = 0; i < options_.pools.size(); ++i) {
    const PoolOffer& offer = facts.pools[i];
    const Payment paid = costs_.account(offer.name, now).paid;
    bill.pools.push_back({offer.name, offer.price, options_.pools[i].workers, offer.wanted,
                          offer.running, paid.seconds / 3600.0, paid.cost,
                          made_.contributed(offer.name), made_.crew(offer.name).speed});
  }
  bill.seconds = facts.elapsed;
  bill.cost = facts.spent;
  if (made_.epochs() > 0.0) bill.cost_per_epoch = bill.cost / made_.epochs();
  bill.other_iterations = made_.contributed("");
  bill.other_speed = made_.crew("").speed;
  if (facts.measured && facts.iterations_left > 0.0) {
    const auto forecast =
        pipeline::forecast(facts, options_.limits.value_or(pipeline::BurstLimits{}));
    if (std::isfinite(forecast.seconds)) {
      bill.seconds_left = forecast.seconds;
      bill.cost_at_end = forecast.cost;
      // An iteration has to be timed before a forecast is worth being kept.
      if (!options_.first_forecast && made_.iteration_seconds()) {
        options_.first_forecast = {facts.elapsed + forecast.seconds, forecast.cost};
      }
    }
  }
  if (options_.first_forecast) {
    bill.first_seconds = options_.first_forecast->seconds;
    bill.first_cost = options_.first_forecast->cost;
  }
  return bill;
}

}  // namespace troupe::actors

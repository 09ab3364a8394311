#pragma once

// Keeps the accounts of a run with pools, and decides within its limits how many nodes it takes
// (pipeline/scaling/burst.h). The Provisioner's.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/cost_book.h"
#include "actors/work_book.h"
#include "config/topology.h"
#include "pipeline/scaling/burst.h"
#include "runtime/base/clock.h"
#include "telemetry/record.h"

namespace troupe::actors {

// How a whole run looked when that was first known.
struct FirstForecast {
  double seconds = 0.0;
  double cost = 0.0;
};

struct TreasurerOptions {
  std::vector<config::PoolSection> pools;
  std::optional<pipeline::BurstLimits> limits;  // none: people decide
  pipeline::IterationWork work;
  WorkBookOptions made;
  bool others_come = false;  // workers that are of no pool, although none has come yet
  // From the beginning of the run to that of this session.
  double seconds_before = 0.0;
  std::optional<FirstForecast> first_forecast;  // of an earlier session
};

// The pool's offer, by its account. `speed`: of one of its workers, and `of_others`: of one of
// no pool; 0: not measured. `workers_per_member`: how many compute in each of a node's members.
pipeline::PoolOffer offer_of(const config::PoolSection& pool, const PoolAccount& account,
                             double speed, double of_others, std::uint32_t workers_per_member);

// One thread.
class Treasurer {
 public:
  using Wanted = std::map<std::string, std::uint32_t>;  // nodes by pool

  explicit Treasurer(TreasurerOptions options);

  void begin(runtime::TimePoint now) { began_ = now; }
  // As CostBook and WorkBook have them.
  void set_price(const std::string& pool, double price, runtime::TimePoint now) {
    costs_.set_price(pool, price, now);
    unpriced_.erase(pool);
  }
  // False: its command has not told one yet.
  bool knows_price(const std::string& pool) const { return !unpriced_.contains(pool); }
  double price(const std::string& pool, runtime::TimePoint now) const {
    return costs_.account(pool, now).price;
  }
  Payment note(const PoolNode& node, runtime::TimePoint now);
  void note(const Pace& pace, runtime::TimePoint now);
  void enter(const ViewPointer& view, const WorkBook::PoolOf& pool_of) {
    made_.enter(view, pool_of);
  }
  void reach(std::uint64_t iteration) { made_.reach(iteration); }
  // The first that the run may not have made.
  std::uint64_t step() const { return made_.iteration() * options_.made.steps_per_iteration; }

  // Nobody trains, and nobody will before a node of a pool has come.
  bool waits_for_a_node() const { return !made_.has_begun() && !options_.others_come; }

  bool decides() const { return options_.limits.has_value(); }
  // About pools whose prices are known. None: it is not time for it yet, or no price is known.
  std::optional<pipeline::BurstDecision> decide(const Wanted& wanted, runtime::TimePoint now);
  // Without a decision.
  telemetry::BillFacts bill(const Wanted& wanted, runtime::TimePoint now);
  const std::optional<FirstForecast>& first_forecast() const { return options_.first_forecast; }
  // Iterations, by pool.
  std::map<std::string, double> contributed() const;

 private:
  pipeline::BurstFacts facts(const Wanted& wanted, runtime::TimePoint now) const;
  // The speed of a worker that is of no pool; 0: nothing is measured.
  double speed_of_others() const;
  double seconds(runtime::TimePoint now) const;  // since the run began

  TreasurerOptions options_;
  CostBook costs_;
  std::set<std::string> unpriced_;
  WorkBook made_;
  runtime::TimePoint began_{0};
  std::optional<runtime::TimePoint> decided_;
  // As BurstFacts has them, of the newest measurement.
  double unexplained_ = 0.0, unexplained_speed_ = 0.0;
};

}  // namespace troupe::actors

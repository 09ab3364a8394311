#pragma once

// What the workers of a run get done: how fast those of each pool compute, how long iterations
// take, and how many each pool has contributed. A pool is known by its name, and "" stands for all
// workers that are of none.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "pipeline/scaling/iteration_time.h"
#include "runtime/base/clock.h"

namespace troupe::actors {

struct WorkBookOptions {
  std::uint64_t steps_per_iteration = 1;
  std::uint64_t iterations = 0;  // of the whole run
  std::uint64_t iterations_per_epoch = 1;
  std::uint32_t replicas_per_member = 1;
  std::uint64_t first_iteration = 0;          // that this session makes
  std::map<std::string, double> contributed;  // by pool, in earlier sessions
};

// One thread.
class WorkBook {
 public:
  explicit WorkBook(WorkBookOptions options);

  using PoolOf = std::function<std::string(std::uint32_t member)>;
  void enter(ViewPointer view, const PoolOf& pool_of);
  void note(const Pace& pace, runtime::TimePoint now);
  // The run has come to this iteration.
  void reach(std::uint64_t iteration);

  bool has_begun() const { return view_ != nullptr; }
  std::uint64_t iteration() const { return iteration_; }
  double iterations_left() const;
  double epochs() const;  // made
  // How long an iteration of the View takes, lately; none: it has made too few.
  std::optional<double> iteration_seconds() const { return iteration_seconds_; }
  // The pool's workers in the View, at their mean speed. Without any: its newest speed; 0: not
  // measured.
  pipeline::Crew crew(const std::string& pool) const;
  // Iterations, in shares of micro-batches.
  double contributed(const std::string& pool) const;

 private:
  const std::string& pool_of(std::uint32_t replica) const;

  WorkBookOptions options_;
  ViewPointer view_;
  std::map<std::uint32_t, std::string> pools_;  // of the View's members
  // The paces that replicas have told; newer ones count for more than older ones.
  struct Told {
    double micro_batches = 0.0, seconds = 0.0;
  };
  std::map<std::uint32_t, Told> paces_;        // of the View's replicas
  std::map<std::string, double> last_speeds_;  // by pool
  std::uint64_t iteration_;
  // The replica whose Paces tell how long an iteration takes, and one of its Paces.
  std::optional<std::pair<std::uint32_t, std::uint64_t>> told_;  // replica, iteration
  runtime::TimePoint told_at_{0};
  std::optional<double> iteration_seconds_;
};

}  // namespace troupe::actors

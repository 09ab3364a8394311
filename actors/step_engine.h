#pragma once

// Computes what one replica contributes to each step, and applies the steps that are reduced.
//
// Two steps may be under way (flights). While one of them is being reduced, the engine computes as
// much of the next one as reads nothing that the first one writes (pipeline/steps/step_ahead.h),
// the next iteration's first step included, if its micro-batches are here. Where that is all of the
// step, its buckets go out too. Its header follows when the step in front is applied, because it
// carries the hash of the state between the two. Buckets go out while the backward pass of the last
// micro-batches still computes the layers in front of them. Contributions stay until the step
// is applied, so another attempt computes nothing anew.
//
// actors/early_end.h says which headers wait for a figure of the Validator.
//
// With workers that train alone (pipeline/steps/strategy.h) a step is one of all of them: the
// engine computes each worker's iterations in turns, and nothing ahead. Where workers take turns
// the engine computes at its own workers, those of the next iteration included, and contributes to
// a step what those of them have made whose turn it is, or nothing.
//
// Where a worker has several parts (WorkerOptions::parts), and other replicas have some of it, each
// of its steps goes out to the worker's site and comes back as sums. All of them compute at their
// workers in ascending order, so that none waits for one that waits for it. In another View a
// replica that shares a worker in it, or has done so, begins anew with all of its workers. Where
// they take turns it forgets their events, too, and asks for them again as a newcomer does.
//
// In another View the steps under way are contributed again. Where micro-batches of lost members
// are this replica's now, only their events are asked for and only their gradients are computed.
//
// One thread, the one that made it, besides the threads of its team. It sends nothing and reads no
// clock itself.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/early_end.h"
#include "actors/flight.h"
#include "actors/iteration_feed.h"
#include "actors/messages.h"
#include "actors/turn_engine.h"
#include "config/topology.h"
#include "model/backend.h"
#include "model/gan.h"
#include "pipeline/steps/iteration_share.h"
#include "pipeline/steps/sites.h"
#include "pipeline/steps/spot_check.h"
#include "pipeline/steps/step_computer.h"
#include "pipeline/steps/training_state.h"
#include "pipeline/steps/worker_steps.h"
#include "runtime/base/thread_team.h"

namespace troupe::actors {

// The things that all replicas of a node share. Read-only; it outlives them.
struct TrainingContext {
  const model::Gan& gan;
  const model::Backend& backend;
  const pipeline::TrainingOptions& options;
};

struct StepEngineOptions {
  std::uint32_t replica = 0;
  // Which of the processes that are its member one after the other it is in, from 1.
  std::uint32_t process = 1;
  pipeline::SpotChecks checks;  // members and owners come from each View
  config::ReplicaSection section;
  config::ReducerSection reducer;  // the largest bucket
  config::ValidatorSection validator;
  TurnsInOrder order = nullptr;
};

class StepEngine {
 public:
  // How the engine reaches the world while it works.
  struct Hooks {
    std::function<runtime::TimePoint()> now;
    Flight::Post post;
    // Sends what was posted, now, because the computation goes on for long.
    std::function<void()> flush;
  };
  // The result of one turn.
  struct Turn {
    enum class Work : std::uint8_t { kNothing, kContributed, kComputed, kPrepared };
    Work work = Work::kNothing;  // kNothing: there is nothing to do until something comes
    std::uint32_t slot = 0;      // of the step that was worked at
    std::uint64_t step = 0;
    bool finished = false;                // training's last iteration is applied
    std::optional<runtime::Error> error;  // what the loader sent cannot be right (kLostPeers)
  };
  // The reason why nothing is computed.
  enum class Waits : std::uint8_t { kForBatches, kForItself, kForSums };

  StepEngine(const StepEngineOptions& options, TrainingContext training);
  // How many threads the system gave.
  int threads() const { return team_.threads(); }

  // Once, before everything below: training goes on from this state.
  void begin(const pipeline::TrainingState& state);
  const pipeline::TrainingState& state() const { return state_; }
  // For the last word: nothing is computed any more.
  pipeline::TrainingState release_state() { return std::move(state_); }
  const runtime::Hash128& state_hash() const { return state_hash_; }
  std::uint64_t next_step() const { return state_.step(training_.options.schedule.size()); }
  // From now on steps are made in this View, whose first step is next_step(). Returns what the
  // loader is to be asked for.
  Feed enter(ViewPointer view);
  IterationFeed& feed() { return feed_; }
  // After a figure has been told to it the next turn goes on.
  EarlyEnd& early_end() { return early_end_; }

  // Computes at most one micro-batch per thread, of a worker or of the step.
  Turn work(const Hooks& hooks);
  Waits waits() const;

  // A bucket of sums; false: of no step that is under way.
  bool take_bucket(const BucketMessage& body, const runtime::Buffer& sums);
  // Whether this is the header that the first step under way waits for.
  bool expects(const pipeline::StepHeader& header) const;
  // Takes that header. True: record() is to be applied. False: another attempt was posted, with
  // the scales that this one has measured. An Error (kDiverged) ends the run.
  runtime::Result<bool> take_header(const pipeline::StepHeader& header, const Hooks& hooks);
  // The same of a step of a worker, which its site makes. False: it is not that of the worker under
  // way here. An Error (kDiverged) ends the run.
  runtime::Result<bool> take_header_of_worker(const HeaderMessage& body, const Hooks& hooks);
  // The first step under way, with its record and when its attempt was begun.
  const Flight& first() const { return flights_.front(); }
  // Applies a record of next_step() to the state. After an Error the state is of no use any more.
  runtime::Result<void> apply(const pipeline::StepRecord& record);
  // The first step under way is applied: the header of the next one can go out.
  void retire(const Hooks& hooks);

  // The metrics of a record that is about to be applied, without the times.
  StepMetrics metrics_of(const pipeline::StepRecord& record) const;
  // For people.
  std::string waiting_for() const;

 private:
  // False: micro-batches are lacking, or the loader has sent wrong ones.
  bool begin_step(std::uint64_t step, Turn& turn);
  void work_ahead(const Hooks& hooks, Turn& turn);
  // Whether this replica has parts of a worker that others have parts of, now, or in the iteration
  // that it may have begun besides.
  bool is_of_site() const;
  void restart(Flight& flight);
  // Contributes to the worker's step that others have parts of, if one waits for that.
  void contribute_to_site(const Hooks& hooks);
  void begin_site_attempt(const std::vector<std::int16_t>& scales, std::uint32_t attempt,
                          const Hooks& hooks);
  void compute(Flight& flight, const Hooks& hooks, Turn& turn);
  void contribute(Flight& flight, std::uint32_t attempt, const std::vector<std::int16_t>& scales,
                  const Hooks& hooks);
  // Posts the header of the first step under way, once all that it is to say is known.
  void announce(const Hooks& hooks);

  StepEngineOptions options_;
  TrainingContext training_;
  runtime::ThreadTeam team_;
  const pipeline::TrainingOptions of_worker_;   // of each that trains alone; else those of training
  const std::vector<std::size_t> told_losses_;  // of a step: see losses_of_steps()
  pipeline::StepComputer computer_;             // by these
  std::optional<pipeline::WorkerSteps> workers_;
  std::optional<TurnEngine> turns_;  // where workers take turns
  const pipeline::Sites sites_;      // where a worker has several parts
  // The step of a worker that its site makes, with the state before it.
  struct OfSite {
    std::uint32_t worker;
    runtime::Hash128 state;
    Flight flight;
  };
  std::optional<OfSite> of_site_;
  bool begins_anew_ = false;  // in this View, with what its workers have made of this iteration
  IterationFeed feed_;
  pipeline::TrainingState state_;
  runtime::Hash128 state_hash_;
  EarlyEnd early_end_;
  ViewPointer view_;            // null: in none yet
  std::deque<Flight> flights_;  // in order, the first is next_step(); two at most
};

}  // namespace troupe::actors

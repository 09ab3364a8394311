#pragma once

// How the steps of training and the exchange between members follow one another.
//
//   kSynchronous  Each step of the schedule is summed over all micro-batches and applied.
//   kLocal        Logical workers begin with one state. Each makes the schedule H times alone, on
//                 its own micro-batches. Then one step of kind model::SlotKind::kWorkers sums what
//                 they have changed, and the outer optimiser applies the mean d of it:
//                   v = momentum v + d,  w -= rate (d + momentum v)
//                 With rate 1 and momentum 0 the new weights are the mean of the workers' (local
//                 SGD, Stich, arXiv:1805.09767). With Nesterov's momentum it is DiLoCo (Douillard
//                 et al., arXiv:2311.08105), an optimiser of the server in Reddi et al.,
//                 arXiv:2003.00295.
//   kTree         As kLocal, bit for bit. But a worker's iterations are made by all the replicas
//                 that have parts of it (its site): each computes its parts of a step, and exact
//                 sums of them go round a ring of the site alone. To Views a part is a micro-batch.
//   kDownpour, kEasgd, kGem, kQuorum
//                 Logical workers make the schedule H times alone too, and take turns: a step of
//                 kind kWorkers is the turn of one worker, with what it has changed since its last
//                 one, or of Q at a time with kQuorum. pipeline/steps/turn_update.h has the
//                 formulas. An iteration is one turn of each worker, in any order, so that every
//                 event of an epoch is counted once in it and a worker is ahead of another by one
//                 turn at most. Its last step takes those that are left, which may be fewer than Q.
//                 The order is the one thing that is left to chance: the headers of steps carry it
//                 (TurnOffer). The first step is that of the first workers. A worker may be made by
//                 a site here, too (StrategyOptions::sites), all replicas of which have its change.
//
// A logical worker is no process. To the sums, Views and records a worker is a micro-batch, whose
// events are those of its H iterations. So members host workers, and one that is lost costs its H
// iterations, which others compute again from the last state. The workers' optimisers and moving
// statistics of kLocal and kTree go on from their exact means (Yu, Jin and Yang, arXiv:1905.03817,
// for momentum), so no state belongs to a worker between two outer steps. One worker with rate 1
// and momentum 0 trains as a run without this. Workers that take turns have states of their own,
// which are part of the training state on every member: a member that is lost takes nothing with it
// but what it was computing.
//
// Plain data and pure functions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/gan.h"

namespace troupe::pipeline {

enum class StrategyKind : std::uint8_t {
  kSynchronous,
  kLocal,
  kTree,
  kDownpour,
  kEasgd,
  kGem,
  kQuorum
};

enum class OuterKind : std::uint8_t { kNesterov };

struct OuterOptions {
  OuterKind kind = OuterKind::kNesterov;
  double rate = 0.7;
  double momentum = 0.9;
};

// How workers' changes of weights are summed: as exact sums (model/exact_sum.h), or rounded at
// random to 7 bits and a sign (model/rounded_sum.h).
enum class ChangePrecision : std::uint8_t { kExact, kInt8 };

struct StrategyOptions {
  StrategyKind kind = StrategyKind::kSynchronous;
  // kSynchronous reads nothing of what follows. The workers share out the micro-batches of an
  // iteration evenly.
  std::uint32_t workers = 4;
  std::uint32_t steps = 10;                             // H: iterations that each makes alone
  OuterOptions outer;                                   // kLocal, kTree
  ChangePrecision precision = ChangePrecision::kExact;  // kLocal, kTree
  // All replicas that have micro-batches of a worker that takes turns make its iterations together;
  // those of kTree do so in any case.
  bool sites = false;
  double rate = 1.0;                   // kDownpour, kQuorum
  std::uint32_t of = 3;                // kQuorum: Q
  double rho = 0.2;                    // kEasgd
  double momentum = 0.9, kappa = 1.0;  // kGem

  bool has_sites() const { return kind == StrategyKind::kTree || sites; }
  bool has_workers() const { return kind != StrategyKind::kSynchronous; }
  bool has_outer() const { return kind == StrategyKind::kLocal || kind == StrategyKind::kTree; }
  bool takes_turns() const { return has_workers() && !has_outer(); }
  // How many workers have their turns in one step, and the steps of an iteration.
  std::uint32_t at_a_time() const { return kind == StrategyKind::kQuorum ? of : 1; }
  std::uint32_t turns() const { return (workers + at_a_time() - 1) / at_a_time(); }
  // Turns of workers before this step, from step 0 on.
  std::uint64_t turns_before(std::uint64_t step) const {
    return step / turns() * workers + step % turns() * at_a_time();
  }
  // How many have theirs in the step at this position of the schedule.
  std::uint32_t at_a_time(std::uint32_t slot) const {
    return std::min(at_a_time(), workers - slot * at_a_time());
  }
};

// "local", as topologies have it.
const char* strategy_name(StrategyKind kind);

// One iteration of one worker.
struct WorkerOptions {
  std::vector<model::SlotKind> schedule;
  std::uint32_t micro_batch = 1;  // b, events
  std::uint32_t micro_batches = 1;
  // Between members a worker is so many parts, each with the events of as many of its
  // micro-batches. Part p of worker w is number w x parts + p of all.
  std::uint32_t parts = 1;
};

struct TrainingOptions;

// What the sums, Views and records go by, from the options as a topology has them. With workers a
// micro-batch is a worker with the events of its H iterations, and the schedule is kWorkers alone,
// or one for each turn where workers take them. kSynchronous leaves the options as they are, but
// for the rounds of the model's steps (model/shared_statistics.h). CHECKs that W divides the
// micro-batches.
TrainingOptions options_between_members(TrainingOptions options, const model::GanDescription& gan);
// The options of one worker's iterations, from those above, with what they know of the data. Where
// there are no workers, the same options.
TrainingOptions options_of_worker(TrainingOptions options);

// "micro-batch", or "worker" with options between members that have workers: for messages.
const char* part_of_sum(const TrainingOptions& options);
// A line for people, without its end, of the options as a topology has them; "" for kSynchronous:
// "strategy: local, 4 workers; ...".
std::string strategy_text(const TrainingOptions& options);
// Which of model::told_losses() a step tells, by their places in it: those of networks that some
// step of a worker updates, or all where there are no workers. Options between members.
std::vector<std::size_t> losses_of_steps(const model::GanDescription& gan,
                                         const TrainingOptions& options);

}  // namespace troupe::pipeline

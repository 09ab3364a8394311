#pragma once

// The updates of a turn (pipeline/steps/strategy.h): what a worker has made of its weights by H
// iterations alone meets the weights of the centre, which are those that a run is for. x are the
// worker's weights, w the centre's, d what the worker has subtracted from its own in the H
// iterations.
//
//   downpour  Dean et al., Large Scale Distributed Deep Networks (NIPS 2012), algorithm 7.1, with
//             n_fetch = n_push = H:
//               w -= rate d,  x = w
//   easgd     Zhang, Choromanska and LeCun, arXiv:1412.6651, algorithm 1, with tau = H and
//             alpha = rho:
//               x -= d,  e = rho (x - w),  x -= e,  w += e
//   gem       Hermans and Louppe, arXiv:1805.08469, with a bound of 5 and an epsilon of 1e-12 as in
//             their program. m is the momentum of the worker's own updates u, and c what the centre
//             has moved since the worker last took it, whose weights then were s:
//               u = -d,  m = momentum m + u,  c = w - s,  s = w
//               w += clip((kappa |m| - |c|) / |u + epsilon|, 0, 5) u,  x = w
//   quorum    n workers have a turn together, and d is the exact mean of what they have subtracted.
//             n is Q, or less in an iteration's last turn, where each worker counts as much as in
//             the others:
//               w -= rate (n / Q) d,  x = w for all n
//             Their optimisers go on from their mean, as those of local do. With Q = 1 it is
//             downpour, and with Q = W it is local with momentum 0, but for rounding.
//
// For H = 1 and plain gradient descent d is the learning rate times the gradient at the weights
// that the worker took at its last turn, as in the papers.
//
// Pure but for what is changed; any thread. Each element is computed in double and rounded once.

#include <cstdint>
#include <span>

#include "pipeline/steps/strategy.h"
#include "runtime/base/hash.h"

namespace troupe::pipeline {

struct StepHeader;
struct TrainingOptions;
struct TrainingState;
struct TurnState;

// The hash of an order of turns with one turn more, of `worker`. That of no turns is Hash128{}.
runtime::Hash128 with_turn(const runtime::Hash128& order, std::uint32_t worker);

// The workers of a state from which no step was made: all begin as the centre does.
void begin_workers(TrainingState& state);

// The workers have had their turn, which is in the order: the others become as the first of them.
void end_turn(TurnState& turns, std::span<const std::uint32_t> workers);

// Whether the header of the state's next step names as many workers as the turn behind it takes,
// and none that has had its turn of that iteration. Where there are no turns it need not.
bool says_next_turn(const StepHeader& header, const TrainingOptions& options,
                    const TrainingState& state);

// Spans of one size. `moment` and `stale` are m and s of gem, and empty for others. `worker` is of
// the first worker of the turn, whose state the others of it take over.
struct TurnWeights {
  std::span<float> centre;  // w
  std::span<float> worker;  // x
  std::span<float> moment, stale;
};

// A turn of so many workers. CHECKs that the strategy has turns.
void update_in_turn(const StrategyOptions& strategy, std::uint32_t workers,
                    std::span<const float> change, const TurnWeights& weights);

// Moving statistics, with the worker's after its iterations, or the mean of the workers'. The
// papers have none. The centre's go the W-th part of the way for each worker, so that they are a
// mean over the workers' last turns; those of easgd by rho, as its weights do. A worker of easgd
// keeps its own, others take the centre's with its weights.
void update_moving_in_turn(const StrategyOptions& strategy, std::uint32_t workers,
                           std::span<const float> after, std::span<float> centre,
                           std::span<float> worker);

}  // namespace troupe::pipeline

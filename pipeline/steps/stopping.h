#pragma once

// When training ends before its last epoch (early stopping): a loss no longer falls, or is low
// enough. It is decided at the end of an epoch, from the sums of the epoch's step records, so that
// every member ends after the same step.
//
// Pure functions.

#include <cstdint>
#include <optional>
#include <string>

#include "model/best_so_far.h"

namespace troupe::pipeline {

struct StoppingOptions {
  // The loss of this network's steps, its mean over the epoch: all terms with their weights, or
  // one term without.
  std::size_t network = 0;
  std::string whose = {};  // for people; empty: the network's name
  std::string term = {};   // empty: all
  // The share of the value before in the value that counts: s = smoothing s + (1 - smoothing) loss.
  double smoothing = 0.0;
  double min_delta = 0.0;             // the least fall that is an improvement
  std::uint32_t patience = 0;         // epochs without an improvement; 0: they do not end training
  std::optional<double> target = {};  // a value as low as this ends training
};

struct StoppingState {
  // Over the epoch's committed steps of the network.
  double loss_sum = 0.0;
  std::uint64_t loss_steps = 0;
  double smoothed = 0.0;  // meaningful when seen.epochs > 0
  model::BestSoFar seen{};
  bool operator==(const StoppingState&) const = default;
};

// At the end of an epoch. One without a step of the network changes nothing.
StoppingState after_epoch(const StoppingOptions& options, StoppingState state);

// Whether training is over, and why, for people. Absent: it goes on. It is asked at the end of an
// iteration, and changes at the end of an epoch alone.
std::optional<std::string> reason_to_stop(const StoppingOptions& options,
                                          const StoppingState& state);

}  // namespace troupe::pipeline

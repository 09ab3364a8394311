#pragma once

// When training ends before its last epoch (early stopping): a value no longer falls, or is low
// enough. Every member reads it in step records, and so ends after the same step. It is one of two:
//
//   a loss      the mean of an epoch's steps, from the sums of their records, at its end
//   a figure    what the Validator finds of the state after some iterations: how far the figure is
//               from its ideal, mostly that of equal samples. The leader puts it into the header of
//               the step that follows the state, and training ends, if it does, with that step's
//               iteration
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
  // In place of a loss: the Validator's figure of this name. Empty: a loss.
  std::string figure = {};
  // The share of the value before in the value that counts: s = smoothing s + (1 - smoothing) loss.
  double smoothing = 0.0;
  double min_delta = 0.0;  // the least fall that is an improvement
  // Epochs, or validations, without an improvement; 0: they do not end training.
  std::uint32_t patience = 0;
  std::optional<double> target = {};  // a value as low as this ends training

  bool reads_loss_of(std::size_t number) const { return figure.empty() && network == number; }
};

struct StoppingState {
  // Over the epoch's committed steps of the network; nothing between steps where it is a figure.
  double loss_sum = 0.0;
  std::uint64_t loss_steps = 0;
  double smoothed = 0.0;  // meaningful when seen.epochs > 0
  model::BestSoFar seen{};
  bool operator==(const StoppingState&) const = default;
};

// At the end of an epoch. One without a step of the network changes nothing.
StoppingState after_epoch(const StoppingOptions& options, StoppingState state);
// After a validation. One whose showers do not have the figure, so that the distance is infinite,
// changes nothing.
StoppingState after_validation(const StoppingOptions& options, StoppingState state,
                               double distance);

// Whether training is over, and why, for people. Absent: it goes on. It is asked at the end of an
// iteration.
std::optional<std::string> reason_to_stop(const StoppingOptions& options,
                                          const StoppingState& state);

}  // namespace troupe::pipeline

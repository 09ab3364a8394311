#pragma once

// An exponential mean of a network's weights, kept beside them while it trains (Polyak and
// Juditsky, 1992). It changes more slowly than they do, and what it makes is usually better. With w
// as the n-th update (from 1) has left the weights, the mean is
//
//   m_n = d m_(n-1) + (1 - d) w_n,  d = min(decay, n / (n + 9))
//
// The smaller factors of the first updates forget the weights that training began with, as
// TensorFlow's ExponentialMovingAverage does. Moving statistics belong to the weights, so they have
// the same mean. Each element is computed in double and kept as a float, so it has the same bits
// everywhere.
//
// Pure functions.

#include <cstdint>
#include <vector>

#include "model/learning_rate.h"
#include "model/optimiser.h"

namespace troupe::pipeline {

// One network's share of a training state.
struct NetworkState {
  std::vector<float> weights;  // model::ParameterLayout order
  std::vector<float> moving;
  std::vector<float> optimiser_arrays;  // array k of weight i at k x weights.size() + i
  model::OptimiserCounters counters;
  model::LearningRateState learning_rate;
};

struct MeanOptions {
  double decay = 0.999;  // from 0, below 1: the share that is left of the mean before
  bool operator==(const MeanOptions&) const = default;
};

struct MeanState {
  std::uint64_t updates = 0;  // that are in it
  NetworkState network{};     // weights and moving statistics alone
};

// Before the first update: that of the network as it is.
MeanState mean_of(const NetworkState& network);
// The network was updated. Both are of one model.
void follow(const MeanOptions& options, const NetworkState& network, MeanState& mean);

}  // namespace troupe::pipeline

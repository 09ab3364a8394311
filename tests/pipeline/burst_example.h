#pragma once

// A run that takes nodes of pools, for tests of forecasts and decisions.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/scaling/burst.h"

namespace troupe::pipeline {

inline constexpr double kHour = 3600.0;  // seconds

// 3,600 iterations of 64 micro-batches are left. A worker of no pool makes one micro-batch a
// second, so that one alone takes 64 h.
inline BurstFacts facts_of(std::vector<PoolOffer> pools, std::uint32_t others = 1) {
  BurstFacts facts;
  facts.iterations_left = 3600;
  facts.work.micro_batches = 64;
  facts.line.deviation = 0.0;
  facts.others = {others, 1.0};
  facts.pools = std::move(pools);
  return facts;
}

// With nodes of one worker, that start at once.
inline PoolOffer pool_of(const std::string& name, std::uint32_t most, double price,
                         double speed = 1.0) {
  return {.name = name, .most = most, .workers = 1, .price = price, .speed = speed};
}

}  // namespace troupe::pipeline

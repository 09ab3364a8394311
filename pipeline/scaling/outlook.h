#pragma once

// How a run would go with various numbers of nodes, before it has any. Pure functions of what was
// measured of workers, and of what pools offer.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/scaling/burst.h"

namespace troupe::pipeline {

// How far off what was measured may be.
struct Doubt {
  double pace = 0.05;  // share by which workers may be faster or slower than told, below 1
  double line = 2.0;   // factor by which a line between members may be faster or slower
};

// The run with so many nodes.
struct OutlookLine {
  BurstForecast forecast{};
  std::string nodes{};                 // as nodes_text() has them
  std::uint32_t workers = 0;           // all of them
  double iterations_per_second = 0.0;  // once all nodes are there
  // Share of what the workers could compute in all the time of the run; not a number where the
  // budget does not last, so that they leave before.
  double efficiency = 0.0;
  // The forecast where all doubt is for the run, and against it.
  BurstForecast at_best{}, at_worst{};
  bool is_cheapest = false, is_fastest = false, is_recommended = false;
};

struct Outlook {
  std::vector<OutlookLine> lines;  // of runs that end; that which takes longest first
  std::string reason;              // of the recommendation, or why there is none; for people
};

// `facts`: of a run that has not begun, and whose workers are measured. Tells of each pool by
// itself, and of pools that are filled one after the other. With limits the recommendation is what
// decide() would do; else it is the fastest line with an efficiency of kWorthHaving at least.
Outlook outlook(const BurstFacts& facts, const std::optional<BurstLimits>& limits,
                const Doubt& doubt);

inline constexpr double kWorthHaving = 0.8;

}  // namespace troupe::pipeline

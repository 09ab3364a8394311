#pragma once

// The figures that follow from the sums over two samples, as one list.

#include <optional>
#include <span>

#include "model/physics/comparison.h"

namespace troupe::model {

struct SummedPair {
  const ShowerStatistics& data;
  const ShowerStatistics& generated;
  const Comparison& comparison;
};

struct FigureRule {
  const char* name;
  const char* title;
  const char* unit;
  const char* source;
  double ideal;
  // In the unit: a share of 0.02 is 2 %.
  std::optional<double> (*of)(const SummedPair& pair);
};

std::span<const FigureRule> figure_rules();

}  // namespace troupe::model

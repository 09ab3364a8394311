#pragma once

// Figures for a terminal.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/physics/figure.h"
#include "model/physics/verdict.h"

namespace troupe::model {

// The value in its unit with as many digits as the uncertainty has a use for: "1.043", "7.2 %"; "-"
// without a value.
std::string value_text(const Figure& figure);
// What the data have against themselves: "1 +- 0.02" for a ratio, else "0.9 %".
std::string floor_text(const Figure& figure);

// The verdict, a line for each fault.
std::string verdict_text(std::span<const Fault> faults);
// A line for each figure of two samples: value, uncertainty, floor, and "!" where the value is
// beyond what 95 % of samples of the data have. Then the distances of distributions, a line for
// each observable, each with its floor in brackets. Lines end in newlines.
std::string figures_text(std::span<const Figure> figures);

// One sample of several that are ranked.
struct RankedSample {
  std::string name;
  std::uint64_t events = 0;
  std::uint64_t left_out = 0;  // unusable ones that came with them
  std::vector<Figure> figures;
  std::vector<Fault> faults;
};
// A line for each of the samples, of which there is at least one, in the order given, of the
// figures that people choose by. All have the same figures.
std::string ranking_text(std::span<const RankedSample> samples);

}  // namespace troupe::model

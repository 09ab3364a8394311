#pragma once

// Which energies, or which angles, generated showers have.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::pipeline {

// Values by event: one, a list taken in turn, or a distribution. Units are the caller's. Immutable;
// any thread.
class ConditionLaw {
 public:
  // "100"; "50,100,200", of which event n has the n-th, over and over; "10:500", uniform between
  // the two; "10:500:log", uniform in the logarithm; else the name of a text file with a histogram:
  // a line per bin, "LOW HIGH WEIGHT", uniform inside the bin; "#" begins a comment. Bins have low
  // < high and weights of 0 or more, not all 0; they need not touch. Errors: kUsage, a text that is
  // none of these; kData, a file that cannot be read, with the line that is wrong.
  static runtime::Result<ConditionLaw> parse(const std::string& text);

  // The value of the event; `uniform` in (0, 1) is a random number of its own.
  double at(std::uint64_t event, double uniform) const;
  // Whether all values are whole numbers from 0 to below `classes`.
  bool is_of_classes(std::int64_t classes) const;
  // Bounds of all values.
  double least() const;
  double most() const;

 private:
  struct Bin {
    double low, high;
    double share;  // of this bin and those before it, in [0, 1]
  };

  static runtime::Result<ConditionLaw> read_histogram(const std::string& path);
  runtime::Result<void> add_bin(const std::string& line);

  std::vector<double> list_;
  std::vector<Bin> bins_;  // where list_ is empty
  bool logarithmic_ = false;
};

}  // namespace troupe::pipeline

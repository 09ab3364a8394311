#pragma once

// Puts together what actors and nodes tell between two lines of kind "samples": for every series
// how many numbers came, their mean, the least, the largest and the last.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "telemetry/record.h"

namespace troupe::telemetry {

struct SampleBoardOptions {
  std::size_t most_series = 512;      // in a line
  std::size_t most_name_bytes = 160;  // of a series
};

// One thread at a time. Its options bound it, whatever it is told.
class SampleBoard {
 public:
  explicit SampleBoard(SampleBoardOptions options = {});

  // One number of the series SENDER/NAME, such as ("replica.0", "compute_seconds"). It is left out
  // and counted if it is not finite, its name is too long, or there are too many series.
  void take(std::string_view sender, std::string_view name, double value);

  // Nothing was told since the last line.
  bool empty() const { return told_ == 0; }
  // Numbers left out so far.
  std::uint64_t left_out() const { return left_out_; }

  // All that was told since the last line, in the order of the names, such as
  // "replica.0/compute_seconds". Later numbers belong to the next line.
  SampleFacts take_values();

 private:
  SampleBoardOptions options_;
  // The series of this line and of the one before, so that a series that goes on costs no new
  // memory. A count of 0: nothing was told since the last line.
  std::map<std::string, SampleFigures, std::less<>> tallies_;
  std::string series_;    // that is being looked up
  std::size_t told_ = 0;  // series of this line
  std::uint64_t left_out_ = 0;
};

}  // namespace troupe::telemetry

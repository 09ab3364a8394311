#pragma once

// What actors and nodes tell between two lines of kind "samples", put together: of every series how
// many numbers came, their mean, the least, the largest and the last.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "telemetry/record.h"

namespace troupe::telemetry {

struct SampleBoardOptions {
  std::size_t most_series = 512;      // in a line
  std::size_t most_name_bytes = 160;  // of a series
};

// Bounded by its options whatever it is told. No clock, no thread: one thread at a time.
class SampleBoard {
 public:
  explicit SampleBoard(SampleBoardOptions options = {});

  // One number of the series SENDER/NAME, such as ("replica.0", "compute_seconds"). Left out and
  // counted: a number that is not finite, a name that is too long, and a series too many.
  void take(std::string_view sender, std::string_view name, double value);

  // Nothing was told since the last line.
  bool empty() const { return told_ == 0; }
  // Numbers left out so far.
  std::uint64_t left_out() const { return left_out_; }

  // What was told since the last line, in the order of the names, such as
  // "replica.0/compute_seconds". What comes from here on belongs to the next line.
  SampleFacts take_values();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>{}(name);
    }
  };

  SampleBoardOptions options_;
  // The series of this line and the one before: a series that goes on costs no memory anew. A count
  // of 0: nothing since the last line.
  std::unordered_map<std::string, SampleFigures, Hash, std::equal_to<>> tallies_;
  std::string series_;    // that is being looked up
  std::size_t told_ = 0;  // series of this line
  std::uint64_t left_out_ = 0;
};

}  // namespace troupe::telemetry

#pragma once

// Thins curves to the pace at which people look at them: the mean of what came between two looks.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/record.h"

namespace troupe::telemetry {

// One thread at a time. It holds as many sums as there are series.
class ThinnedPoints {
 public:
  struct Point {
    std::string series;
    std::uint64_t step = 0;  // the last one that it stands for
    double time = 0.0;       // of that step
    double mean = 0.0;
  };

  void add(const Record& record);
  // The mean of each series since it was taken last, in the order of their names.
  std::vector<Point> take();

 private:
  struct Sum {
    std::uint64_t step = 0, count = 0;
    double time = 0.0, sum = 0.0;
  };
  std::map<std::string, Sum, std::less<>> sums_;
};

}  // namespace troupe::telemetry

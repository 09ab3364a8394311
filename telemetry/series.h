#pragma once

// One curve of a whole run in bounded memory. When it is full, neighbouring points become one that
// keeps their mean and extremes, so that a spike of one step is seen however long the run is.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::telemetry {

struct SeriesPoint {
  std::uint64_t x = 0;      // the last one it stands for
  std::uint64_t count = 0;  // numbers it stands for
  double mean = 0.0, low = 0.0, high = 0.0;
};

// One thread at a time.
class Series {
 public:
  // Keeps at most `capacity` points; even and at least 4, CHECKed.
  explicit Series(std::size_t capacity = 2048);

  // A value that is not finite is left out, and so is one whose x is smaller than the last one's.
  void add(std::uint64_t x, double value);

  // Oldest first. The last one may still grow.
  const std::vector<SeriesPoint>& points() const { return points_; }
  // How many numbers a full point stands for: 1, 2, 4, ... When it changes, all points change.
  std::uint64_t width() const { return width_; }
  // How many numbers were taken so far, with those of the last point.
  std::uint64_t taken() const { return taken_; }
  double last() const { return last_; }

 private:
  void halve();

  std::size_t capacity_;
  std::uint64_t width_ = 1, taken_ = 0;
  double last_ = 0.0;
  std::vector<SeriesPoint> points_;
};

}  // namespace troupe::telemetry

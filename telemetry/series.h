#pragma once

// One curve of a whole run in bounded memory. When it is full, neighbouring points become one that
// keeps their mean and extremes, so that a spike of one step is seen however long the run is.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/record.h"

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

// The news of a curve: the points from `from` on.
struct SeriesNews {
  std::uint64_t width = 1;
  std::size_t from = 0;
  std::vector<SeriesPoint> points;
};

// All curves of a run, and what of them is new. One thread at a time. Versions do not decrease.
class Curves {
 public:
  // Each curve has up to `points` points. Curves beyond `most` are left out.
  Curves(std::size_t points, std::size_t most) : points_(points), most_(most) {}

  // Samples leave a quarter of the places to what is no sample: that comes later and matters more.
  void add(std::string_view curve, std::uint64_t x, double value, std::uint64_t version,
           bool is_sample);

  // The changes behind the version, in the order of the names.
  std::vector<std::pair<std::string, SeriesNews>> since(std::uint64_t version) const;
  // The newest number of each.
  std::vector<RecordPoint> latest() const;
  // Numbers of curves for which there was no place.
  std::uint64_t left_out() const { return left_out_; }

 private:
  struct Curve {
    Series series;
    // The version in which each point changed last. It only grows along the curve.
    std::vector<std::uint64_t> versions;
  };
  std::size_t points_, most_;
  std::map<std::string, Curve, std::less<>> curves_;
  std::uint64_t left_out_ = 0;
};

}  // namespace troupe::telemetry

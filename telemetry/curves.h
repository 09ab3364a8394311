#pragma once

// All curves of a run, and what of them is new.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/history_news.h"
#include "telemetry/series.h"

namespace troupe::telemetry {

// One thread at a time. Versions do not decrease.
class Curves {
 public:
  // Each curve has up to `points` points. Curves beyond `most` are left out.
  Curves(std::size_t points, std::size_t most) : points_(points), most_(most) {}

  // Samples leave a quarter of the places to what is no sample: that comes later and matters more.
  void add(std::string_view curve, std::uint64_t x, double value, std::uint64_t version,
           bool is_sample);

  // What changed behind the version, in the order of the names.
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

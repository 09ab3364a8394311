#pragma once

// Pictures for people beside the table: profiles, histograms and single showers of the data and of
// showers generated for the same conditions. docs/watching.md calls it "showers". No decision
// depends on it.
//
// Pure functions; any thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/physics/observables.h"
#include "model/physics/shower_sample.h"

namespace troupe::model {

// Single showers in a report, and cells of each: so its JSON has 250 kB at most.
inline constexpr std::size_t kReportEvents = 4;
inline constexpr std::size_t kReportCells = 1500;
inline constexpr std::size_t kReportBins = 40;

// A shower as its brightest cells.
struct BrightCells {
  double total_gev = 0.0;            // of all cells, those left out included
  std::vector<std::uint32_t> cells;  // (x * Y + y) * Z + z, the brightest first
  std::vector<float> gev;            // of these
};

// The `most` largest of the cells above 0; among equals those with the smaller index. Cells that
// are not finite are left out.
BrightCells brightest_cells(std::span<const float> gev, std::size_t most = kReportCells);

// The events to show: `count` different ones (all if there are fewer), each nearest to the middle
// of one of `count` equal parts of the range of energies, in that order; among equally near ones
// the first. Energies are finite, in any unit.
std::vector<std::size_t> events_over_energies(std::span<const float> energies,
                                              std::size_t count = kReportEvents);

// Two showers of the same condition.
struct ShowerPair {
  double energy_gev = 0.0;          // of the primary
  std::optional<double> angle_rad;  // nothing for models without angle
  BrightCells data, generated;
};

// Two samples over the same bins.
struct PairedHistogram {
  double low = 0.0, high = 0.0;
  std::vector<std::int64_t> data, generated;  // values per bin
};

// `bins` equal bins over the data and a quarter of their range more on either side, in round
// numbers and not below 0. Generated values outside count in the first or the last bin. Values are
// finite and not negative.
PairedHistogram paired_histogram(std::span<const double> data, std::span<const double> generated,
                                 std::size_t bins = kReportBins);

// A sample, measured.
struct ReportedSample {
  const ShowerSample& sample;
  const ShowerStatistics& statistics;  // its own
};

// The observable's value of each shower that has it.
std::vector<double> values_of(const ShowerSample& sample, const ShowerObservable& observable);

// One JSON object without newline, as docs/watching.md has it under "showers"; numbers with four
// significant digits. Both samples have the same options.
std::string report_json(std::uint64_t step, const ReportedSample& data,
                        const ReportedSample& generated, std::span<const ShowerPair> events);

}  // namespace troupe::model

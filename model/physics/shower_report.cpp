#include "model/physics/shower_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

constexpr std::array<const char*, 3> kAxes{"x", "y", "z"};

using Text = std::back_insert_iterator<std::string>;

void write(std::string& out, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(Text(out), "{:.4g}", value);
  } else {
    out.append("null");
  }
}
void write(std::string& out, float value) { write(out, double{value}); }
void write(std::string& out, std::int64_t value) { fmt::format_to(Text(out), "{}", value); }
void write(std::string& out, std::uint32_t value) { fmt::format_to(Text(out), "{}", value); }

template <class Number>
void write(std::string& out, const std::vector<Number>& numbers) {
  out.push_back('[');
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out.push_back(',');
    write(out, numbers[i]);
  }
  out.push_back(']');
}

void write(std::string& out, const BrightCells& shower) {
  out.append(R"({"total":)");
  write(out, shower.total_gev);
  out.append(R"(,"cells":)");
  write(out, shower.cells);
  out.append(R"(,"gev":)");
  write(out, shower.gev);
  out.push_back('}');
}

// "data":A,"generated":B
template <class Content>
void write_pair(std::string& out, const Content& data, const Content& generated) {
  out.append(R"("data":)");
  write(out, data);
  out.append(R"(,"generated":)");
  write(out, generated);
}

void write_profiles(std::string& out, const ShowerGroup& data, const ShowerGroup& generated) {
  for (std::size_t axis = 0; axis < kAxes.size(); ++axis) {
    fmt::format_to(Text(out), R"({}"{}":{{)", axis == 0 ? "" : ",", kAxes[axis]);
    write_pair(out, data.mean_profile(axis), generated.mean_profile(axis));
    out.push_back('}');
  }
}

void write_histogram(std::string& out, std::string_view name, const std::vector<double>& data,
                     const std::vector<double>& generated) {
  const PairedHistogram histogram = paired_histogram(data, generated);
  fmt::format_to(Text(out), R"({{"name":"{}","low":)", name);
  write(out, histogram.low);
  out.append(R"(,"high":)");
  write(out, histogram.high);
  out.push_back(',');
  write_pair(out, histogram.data, histogram.generated);
  out.push_back('}');
}

void write(std::string& out, const ShowerPair& pair) {
  out.append(R"({"energy":)");
  write(out, pair.energy_gev);
  out.append(R"(,"angle":)");
  write(out, pair.angle_rad.value_or(std::numeric_limits<double>::quiet_NaN()));
  out.push_back(',');
  write_pair(out, pair.data, pair.generated);
  out.push_back('}');
}

// Begin and end of a histogram of these values.
std::pair<double, double> round_range(std::span<const double> values) {
  if (values.empty()) return {0.0, 1.0};
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  double width = *largest - *least;
  if (width <= 1e-9 * *largest) width = *largest;
  if (width < 1e-9) width = 1.0;
  // Two digits of the width are enough for round ends.
  const double step = std::pow(10.0, std::floor(std::log10(width)) - 1.0);
  const double low = std::floor((*least - width / 4.0) / step) * step;
  const double high = std::ceil((*largest + width / 4.0) / step) * step;
  return {std::max(low, 0.0), high};
}

}  // namespace

void ShowerFigures::add(const ShowerObservables& shower, double energy_gev, bool angle) {
  if (!shower.valid || !(energy_gev > 0.0)) return;
  sampling_fraction.push_back(shower.ecal_gev / energy_gev);
  hits.push_back(static_cast<double>(shower.hits));
  if (angle && !shower.empty()) angle_rad.push_back(shower.angle_rad);
}

BrightCells brightest_cells(std::span<const float> gev, std::size_t most) {
  BrightCells bright;
  for (std::size_t i = 0; i < gev.size(); ++i) {
    if (!std::isfinite(gev[i])) continue;
    bright.total_gev += double{gev[i]};
    if (gev[i] > 0.0F) bright.cells.push_back(static_cast<std::uint32_t>(i));
  }
  const auto is_brighter = [&](std::uint32_t a, std::uint32_t b) {
    return gev[a] != gev[b] ? gev[a] > gev[b] : a < b;
  };
  const std::size_t kept = std::min(most, bright.cells.size());
  std::partial_sort(bright.cells.begin(), bright.cells.begin() + static_cast<std::ptrdiff_t>(kept),
                    bright.cells.end(), is_brighter);
  bright.cells.resize(kept);
  for (const std::uint32_t cell : bright.cells) bright.gev.push_back(gev[cell]);
  return bright;
}

std::vector<std::size_t> events_over_energies(std::span<const float> energies, std::size_t count) {
  count = std::min(count, energies.size());
  std::vector<std::size_t> chosen;
  if (count == 0) return chosen;
  const auto [least, largest] = std::minmax_element(energies.begin(), energies.end());
  const double low = double{*least}, width = double{*largest} - low;
  for (std::size_t part = 0; part < count; ++part) {
    const double middle =
        low + width * (static_cast<double>(part) + 0.5) / static_cast<double>(count);
    std::optional<std::size_t> nearest;
    for (std::size_t i = 0; i < energies.size(); ++i) {
      if (std::find(chosen.begin(), chosen.end(), i) != chosen.end()) continue;
      const auto distance = [&](std::size_t event) {
        return std::abs(double{energies[event]} - middle);
      };
      if (!nearest || distance(i) < distance(*nearest)) nearest = i;
    }
    chosen.push_back(*nearest);
  }
  return chosen;
}

PairedHistogram paired_histogram(std::span<const double> data, std::span<const double> generated,
                                 std::size_t bins) {
  CHECK(bins >= 1, "a histogram needs a bin");
  PairedHistogram histogram;
  std::tie(histogram.low, histogram.high) = round_range(data);
  const double width = histogram.high - histogram.low;
  const auto counts = [&](std::span<const double> values) {
    std::vector<std::int64_t> found(bins);
    const auto last = static_cast<double>(bins - 1);
    for (const double value : values) {
      const double place = (value - histogram.low) / width * static_cast<double>(bins);
      ++found[static_cast<std::size_t>(std::clamp(place, 0.0, last))];
    }
    return found;
  };
  histogram.data = counts(data);
  histogram.generated = counts(generated);
  return histogram;
}

std::string report_json(std::uint64_t step, const ReportedSample& data,
                        const ReportedSample& generated, std::span<const ShowerPair> events) {
  const Extent& space = data.statistics.options().space;
  std::string out = fmt::format(R"({{"step":{},"space":[{},{},{}],"profiles":{{)", step, space[0],
                                space[1], space[2]);
  write_profiles(out, data.statistics.all(), generated.statistics.all());
  out.append(R"(},"histograms":[)");
  const ShowerFigures& a = data.figures;
  const ShowerFigures& b = generated.figures;
  write_histogram(out, "ecal / primary energy", a.sampling_fraction, b.sampling_fraction);
  out.push_back(',');
  write_histogram(out, "hits", a.hits, b.hits);
  if (!a.angle_rad.empty()) {
    out.push_back(',');
    write_histogram(out, "angle", a.angle_rad, b.angle_rad);
  }
  out.append(R"(],"events":[)");
  for (const ShowerPair& pair : events) {
    if (&pair != events.data()) out.push_back(',');
    write(out, pair);
  }
  out.append("]}");
  return out;
}

}  // namespace troupe::model

#include "model/physics/shower_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_writer.h"

namespace troupe::model {
namespace {

using runtime::JsonWriter;

constexpr std::array<const char*, 3> kAxes{"x", "y", "z"};

constexpr int kDigits = 4;

template <class Numbers>
void write(JsonWriter& out, std::string_view name, const Numbers& numbers) {
  out.list(name, numbers, 0, [](JsonWriter& items, auto number) {
    if constexpr (std::is_floating_point_v<decltype(number)>) {
      items.real("", number, kDigits);
    } else {
      items.element(number);
    }
  });
}

void write(JsonWriter& out, std::string_view name, const BrightCells& shower) {
  out.group(name, [&](JsonWriter& members) {
    members.real("total", shower.total_gev, kDigits);
    write(members, "cells", shower.cells);
    write(members, "gev", shower.gev);
  });
}

template <class Content>
void write_pair(JsonWriter& out, const Content& data, const Content& generated) {
  write(out, "data", data);
  write(out, "generated", generated);
}

void write_histogram(JsonWriter& out, std::string_view name, const std::vector<double>& data,
                     const std::vector<double>& generated) {
  const PairedHistogram histogram = paired_histogram(data, generated);
  out.group("", [&](JsonWriter& members) {
    members.text("name", name, 0);
    members.real("low", histogram.low, kDigits);
    members.real("high", histogram.high, kDigits);
    write_pair(members, histogram.data, histogram.generated);
  });
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

std::vector<double> values_of(const ShowerSample& sample, const ShowerObservable& observable) {
  std::vector<double> values;
  for (const SampledShower& shower : sample.showers()) {
    if (!shower.usable() || (observable.of_filled && shower.found.empty())) continue;
    values.push_back(observable.of(shower));
  }
  return values;
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
  std::string out;
  JsonWriter(out).group("", [&](JsonWriter& report) {
    report.number("step", step);
    write(report, "space", data.statistics.options().space);
    report.group("profiles", [&](JsonWriter& profiles) {
      for (std::size_t axis = 0; axis < kAxes.size(); ++axis) {
        profiles.group(kAxes[axis], [&](JsonWriter& profile) {
          write_pair(profile, data.statistics.all().mean_profile(axis),
                     generated.statistics.all().mean_profile(axis));
        });
      }
    });
    report.tuple("histograms", [&](JsonWriter& histograms) {
      const auto write_of = [&](std::string_view name, const char* observable) {
        const ShowerObservable& what = shower_observable(observable);
        write_histogram(histograms, name, values_of(data.sample, what),
                        values_of(generated.sample, what));
      };
      write_of("ecal / primary energy", "response");
      write_of("hits", "hits");
      if (data.statistics.options().angle) write_of("angle", "angle");
    });
    report.list("events", events, 0, [](JsonWriter& list, const ShowerPair& pair) {
      list.group("", [&](JsonWriter& members) {
        members.real("energy", pair.energy_gev, kDigits);
        members.real("angle", pair.angle_rad.value_or(std::numeric_limits<double>::quiet_NaN()),
                     kDigits);
        write_pair(members, pair.data, pair.generated);
      });
    });
  });
  return out;
}

}  // namespace troupe::model

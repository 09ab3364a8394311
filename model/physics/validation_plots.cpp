#include "model/physics/validation_plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "model/physics/shower_report.h"

namespace troupe::model {
namespace {

constexpr std::array kAxes{"x (cells)", "y (cells)", "z (layers)"};
constexpr std::size_t kEnergyBins = 10;

// Mean and its error of numbers that come in bins.
class BinnedMeans {
 public:
  explicit BinnedMeans(std::size_t bins) : sums_(bins) {}
  void add(std::size_t bin, double value) { sums_[bin].add(value); }

  PlottedSeries means() const {
    PlottedSeries series;
    for (const SpreadSum& sum : sums_) {
      const Spread spread = sum.spread();
      series.values.push_back(sum.count() > 0.0 ? spread.mean : NAN);
      series.errors.push_back(sum.count() > 1.0 ? spread.deviation / std::sqrt(sum.count()) : 0.0);
    }
    return series;
  }
  // Width / mean; the error of a width of n normal numbers is 1 / sqrt(2 n) of it.
  PlottedSeries resolutions() const {
    PlottedSeries series;
    for (const SpreadSum& sum : sums_) {
      const Spread spread = sum.spread();
      const double width = spread.deviation / spread.mean;
      const bool known = sum.count() > 1.0 && spread.mean > 0.0;
      series.values.push_back(known ? width : NAN);
      series.errors.push_back(known ? width / std::sqrt(2.0 * sum.count()) : 0.0);
    }
    return series;
  }

 private:
  std::vector<SpreadSum> sums_;
};

std::vector<double> whole_numbers(std::size_t count) {
  std::vector<double> edges(count + 1);
  std::iota(edges.begin(), edges.end(), 0.0);
  return edges;
}

bool is_in(const SampledShower& shower, const AngleBin& bin) {
  return shower.angle_rad && *shower.angle_rad >= bin.low_rad && *shower.angle_rad <= bin.high_rad;
}

std::string text_of(const AngleBin& bin) {
  return fmt::format(", {:.3g} to {:.3g} rad", bin.low_rad, bin.high_rad);
}

// Squares of differences over those of their errors, mean over bins where both are known: that of
// one shower is not, and stands as 0 beside a value that is another.
std::optional<double> chi_square_per_bin(const ComparisonPlot& plot) {
  SpreadSum sum;
  const auto is_known = [](const PlottedSeries& series, std::size_t i) {
    return std::isfinite(series.values[i]) && (series.errors[i] > 0.0 || series.values[i] == 0.0);
  };
  for (std::size_t i = 0; i < plot.data.values.size(); ++i) {
    if (!is_known(plot.data, i) || !is_known(plot.generated, i)) continue;
    const double error = std::hypot(plot.generated.errors[i], plot.data.errors[i]);
    const double deviation = (plot.generated.values[i] - plot.data.values[i]) / error;
    if (error > 0.0) sum.add(deviation * deviation);
  }
  return sum.count() > 0.0 ? std::optional(sum.spread().mean) : std::nullopt;
}

// The largest difference of the two, summed from the left as shares of their sums.
std::optional<double> kolmogorov(const ComparisonPlot& plot) {
  const auto shares = [](const std::vector<double>& values) {
    std::vector<double> sums(values.size());
    std::partial_sum(values.begin(), values.end(), sums.begin());
    for (double& sum : sums) sum /= sums.back();
    return sums;
  };
  const auto data = shares(plot.data.values), generated = shares(plot.generated.values);
  double largest = 0.0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!std::isfinite(generated[i] - data[i])) return std::nullopt;
    largest = std::max(largest, std::abs(generated[i] - data[i]));
  }
  return largest;
}

enum class Values { kDistribution, kOthers };

// With its distances below it: KS is of distributions only.
ComparisonPlot with_distances(ComparisonPlot plot, Values values) {
  if (const auto found = chi_square_per_bin(plot)) {
    plot.note = fmt::format("chi-square / bins {:.3g}", *found);
  }
  if (values != Values::kDistribution) return plot;
  if (const auto found = kolmogorov(plot)) {
    plot.note += fmt::format("{}KS {:.3g}", plot.note.empty() ? "" : ", ", *found);
  }
  return plot;
}

template <class Wanted>
PlottedSeries profile(const ShowerSample& sample, std::size_t axis, Wanted wanted) {
  BinnedMeans means(static_cast<std::size_t>(sample.options().space[axis]));
  for (const SampledShower& shower : sample.showers()) {
    if (!shower.usable() || !wanted(shower)) continue;
    const auto& energies = shower.found.profile[axis];
    for (std::size_t i = 0; i < energies.size(); ++i) means.add(i, energies[i]);
  }
  return means.means();
}

template <class Wanted>
ComparisonPlot selected_profile_plot(const ShowerSample& data, const ShowerSample& generated,
                                     std::size_t axis, const std::string& which, bool log_y,
                                     Wanted wanted) {
  constexpr std::array kTitles{"Transverse profile along x", "Transverse profile along y",
                               "Longitudinal profile"};
  ComparisonPlot plot;
  plot.title = kTitles[axis] + which;
  plot.x_label = kAxes[axis];
  plot.y_label = "GeV";
  plot.log_y = log_y;
  plot.data = profile(data, axis, wanted);
  plot.generated = profile(generated, axis, wanted);
  plot.edges = whole_numbers(plot.data.values.size());
  return with_distances(std::move(plot), Values::kDistribution);
}

// Shares of the sum, and their counting errors.
PlottedSeries shares(const std::vector<std::int64_t>& counts) {
  const auto all = static_cast<double>(
      std::max<std::int64_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), 1));
  PlottedSeries series;
  for (const std::int64_t count : counts) {
    series.values.push_back(static_cast<double>(count) / all);
    series.errors.push_back(std::sqrt(static_cast<double>(count)) / all);
  }
  return series;
}

PlottedSeries spectrum(const ShowerSample& sample) {
  BinnedMeans means(kSpectrumBins);
  for (const SampledShower& shower : sample.showers()) {
    if (!shower.usable()) continue;
    for (std::size_t i = 0; i < kSpectrumBins; ++i) {
      means.add(i, static_cast<double>(shower.found.spectrum[i]));
    }
  }
  return means.means();
}

PlottedSeries occupancy(const ShowerSample& sample) {
  const auto& space = sample.options().space;
  const auto cells = static_cast<double>(space[0] * space[1] * space[2]);
  BinnedMeans means(kSparsityLevels);
  for (const SampledShower& shower : sample.showers()) {
    if (!shower.usable()) continue;
    for (std::size_t i = 0; i < kSparsityLevels; ++i) {
      means.add(i, static_cast<double>(shower.found.cells_above[i]) / cells);
    }
  }
  return means.means();
}

HeatMap correlation_map(const char* title, const std::vector<std::optional<double>>& pairs,
                        std::size_t layers) {
  HeatMap map;
  map.title = title;
  map.x_label = map.y_label = "layer";
  map.width = layers;
  map.values.assign(layers * layers, 1.0);
  map.diverging = true;
  std::size_t pair = 0;
  for (std::size_t i = 0; i < layers; ++i) {
    for (std::size_t j = i + 1; j < layers; ++j, ++pair) {
      map.values[i * layers + j] = map.values[j * layers + i] = pairs[pair].value_or(NAN);
    }
  }
  return map;
}

// The axes of the map: up and to the right.
struct Plane {
  std::size_t up, right;
};

Plane plane_without(std::size_t axis) {
  return axis == 0 ? Plane{1, 2} : axis == 1 ? Plane{0, 2} : Plane{0, 1};
}

HeatMap projection_map(std::string title, const ShowerSample& sample, std::size_t axis,
                       const AngleBin* angles) {
  const Plane plane = plane_without(axis);
  const Extent& space = sample.options().space;
  const auto cells = [&](std::size_t along) { return static_cast<std::size_t>(space[along]); };
  HeatMap map;
  map.title = std::move(title);
  map.x_label = kAxes[plane.right];
  map.y_label = kAxes[plane.up];
  map.width = cells(plane.right);
  map.values.resize(cells(plane.up) * map.width);
  double showers = 0.0;
  for (std::size_t i = 0; i < sample.images().size(); ++i) {
    const SampledShower& shower = sample.showers()[i];
    if (!shower.usable()) continue;
    if (angles != nullptr && !is_in(shower, *angles)) continue;
    ++showers;
    const std::vector<float>& image = sample.images()[i];
    for (std::size_t cell = 0; cell < image.size(); ++cell) {
      const std::array place{cell / cells(2) / cells(1), cell / cells(2) % cells(1),
                             cell % cells(2)};
      map.values[place[plane.up] * map.width + place[plane.right]] +=
          static_cast<double>(image[cell]);
    }
  }
  for (double& value : map.values) value = value > 0.0 ? std::log10(value / showers) : NAN;
  return map;
}

}  // namespace

ComparisonPlot profile_plot(const ShowerSample& data, const ShowerSample& generated,
                            std::size_t axis, bool log_y) {
  return selected_profile_plot(data, generated, axis, log_y ? ", logarithmic" : "", log_y,
                               [](const SampledShower&) { return true; });
}

ComparisonPlot profile_plot(const ShowerSample& data, const ShowerSample& generated,
                            std::size_t axis, const EnergyBin& bin) {
  return selected_profile_plot(
      data, generated, axis, fmt::format(", {:.4g} to {:.4g} GeV", bin.low_gev, bin.high_gev),
      false, [&](const SampledShower& shower) {
        return shower.energy_gev >= bin.low_gev && shower.energy_gev <= bin.high_gev;
      });
}

ComparisonPlot profile_plot(const ShowerSample& data, const ShowerSample& generated,
                            std::size_t axis, const AngleBin& bin) {
  return selected_profile_plot(data, generated, axis, text_of(bin), false,
                               [&](const SampledShower& shower) { return is_in(shower, bin); });
}

ComparisonPlot response_plot(const ShowerSample& data, const ShowerSample& generated, bool width) {
  double low = 1e9, high = 0.0;
  for (const SampledShower& shower : data.showers()) {
    if (!shower.usable()) continue;
    low = std::min(low, shower.energy_gev);
    high = std::max(high, shower.energy_gev);
  }
  if (!(low < high)) low = high - 1.0;
  const auto binned = [&](const ShowerSample& sample) {
    BinnedMeans means(kEnergyBins);
    for (const SampledShower& shower : sample.showers()) {
      if (!shower.usable() || shower.energy_gev < low || shower.energy_gev > high) continue;
      const double place = (shower.energy_gev - low) / (high - low) * kEnergyBins;
      means.add(std::min(static_cast<std::size_t>(place), kEnergyBins - 1),
                shower.found.ecal_gev / shower.energy_gev);
    }
    return width ? means.resolutions() : means.means();
  };
  ComparisonPlot plot;
  plot.title = width ? "Resolution by primary energy" : "Response by primary energy";
  plot.x_label = "primary energy (GeV)";
  plot.y_label = width ? "width / mean" : "energy in cells / primary";
  plot.data = binned(data);
  plot.generated = binned(generated);
  for (std::size_t i = 0; i <= kEnergyBins; ++i) {
    plot.edges.push_back(low + (high - low) * static_cast<double>(i) / kEnergyBins);
  }
  return with_distances(std::move(plot), Values::kOthers);
}

ComparisonPlot observable_plot(const ShowerSample& data, const ShowerSample& generated,
                               const ShowerObservable& observable) {
  const PairedHistogram histogram =
      paired_histogram(values_of(data, observable), values_of(generated, observable));
  ComparisonPlot plot;
  plot.title = observable.title;
  plot.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(plot.title[0])));
  plot.x_label = *observable.unit == '\0'
                     ? observable.name
                     : fmt::format("{} ({})", observable.name, observable.unit);
  plot.y_label = "share of showers";
  plot.data = shares(histogram.data);
  plot.generated = shares(histogram.generated);
  const std::size_t bins = histogram.data.size();
  for (std::size_t i = 0; i <= bins; ++i) {
    plot.edges.push_back(histogram.low + (histogram.high - histogram.low) * static_cast<double>(i) /
                                             static_cast<double>(bins));
  }
  return plot;
}

ComparisonPlot spectrum_plot(const ShowerSample& data, const ShowerSample& generated) {
  ComparisonPlot plot;
  plot.title = "Energies of cells";
  plot.x_label = "GeV";
  plot.y_label = "cells of a shower";
  plot.log_x = plot.log_y = true;
  plot.data = spectrum(data);
  plot.generated = spectrum(generated);
  for (int i = 0; i <= kSpectrumBins; ++i) plot.edges.push_back(spectrum_edge_gev(i));
  return with_distances(std::move(plot), Values::kDistribution);
}

ComparisonPlot occupancy_plot(const ShowerSample& data, const ShowerSample& generated) {
  ComparisonPlot plot;
  plot.title = "Share of cells above a threshold";
  plot.x_label = "threshold (GeV), at the left of each step";
  plot.y_label = "share";
  plot.log_x = plot.log_y = true;
  plot.data = occupancy(data);
  plot.generated = occupancy(generated);
  for (int i = 0; i <= kSparsityLevels; ++i) plot.edges.push_back(std::pow(10.0, i - 13));
  return with_distances(std::move(plot), Values::kOthers);
}

std::vector<HeatMap> correlation_maps(const ShowerSample& data, const ShowerSample& generated) {
  const auto layers = static_cast<std::size_t>(data.options().space[2]);
  std::vector<HeatMap> maps{
      correlation_map("Correlations of layers, data", data.statistics().all().layer_correlations(),
                      layers),
      correlation_map("Correlations of layers, generated",
                      generated.statistics().all().layer_correlations(), layers)};
  HeatMap difference = maps[1];
  difference.title = "Correlations of layers, generated - data";
  difference.high = 0.1;
  for (std::size_t i = 0; i < difference.values.size(); ++i) {
    double& value = difference.values[i];
    value -= maps[0].values[i];
    if (std::isfinite(value)) difference.high = std::max(difference.high, std::abs(value));
  }
  maps.push_back(std::move(difference));
  return maps;
}

std::vector<HeatMap> projection_maps(const ShowerSample& data, const ShowerSample& generated,
                                     std::size_t axis, const AngleBin* angles) {
  constexpr std::array kSummed{"Sum over x", "Sum over y", "Sum over z"};
  std::string title = fmt::format("{}, log10 GeV", kSummed[axis]);
  if (angles != nullptr) title += text_of(*angles);
  std::vector<HeatMap> maps{projection_map(title + ", data", data, axis, angles),
                            projection_map(title + ", generated", generated, axis, angles)};
  double high = -99.0;
  for (const double value : maps[0].values) {
    if (std::isfinite(value)) high = std::max(high, value);
  }
  for (HeatMap& map : maps) {
    map.high = high;
    map.low = high - 5.0;
  }
  return maps;
}

namespace {

struct Limits {
  double low, high;
};

Limits limits_of(const DiscriminatorOutput& output) {
  if (!output.by_values) return {output.low, output.high};
  Limits limits{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const auto* values : {&output.data, &output.generated}) {
    for (const float value : *values) {
      if (!std::isfinite(value)) continue;
      limits.low = std::min(limits.low, static_cast<double>(value));
      limits.high = std::max(limits.high, static_cast<double>(value));
    }
  }
  if (limits.low > limits.high) return {output.low, output.high};  // there is no value
  if (limits.low == limits.high) return {limits.low - 0.5, limits.high + 0.5};
  return limits;
}

}  // namespace

ComparisonPlot output_plot(const DiscriminatorOutput& output) {
  constexpr std::size_t kBins = 40;
  const auto [low, high] = limits_of(output);
  const auto counts = [&, low = low, high = high](const std::vector<float>& values) {
    std::vector<std::int64_t> found(kBins);
    for (const float value : values) {
      if (std::isnan(value)) continue;
      const double place = (static_cast<double>(value) - low) / (high - low);
      const double bin = std::floor(place * static_cast<double>(kBins));
      ++found[static_cast<std::size_t>(std::clamp(bin, 0.0, static_cast<double>(kBins - 1)))];
    }
    return found;
  };
  ComparisonPlot plot;
  plot.title = output.title;
  plot.x_label = output.x_label;
  plot.y_label = "share of showers";
  plot.data = shares(counts(output.data));
  plot.generated = shares(counts(output.generated));
  for (std::size_t i = 0; i <= kBins; ++i) {
    plot.edges.push_back(low + (high - low) * static_cast<double>(i) / static_cast<double>(kBins));
  }
  return with_distances(std::move(plot), Values::kDistribution);
}

}  // namespace troupe::model

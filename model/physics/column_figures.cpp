#include "model/physics/column_figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/physics/figure_draws.h"
#include "model/physics/paired_values.h"
#include "model/physics/pearson_sum.h"
#include "model/physics/shower_report.h"
#include "runtime/base/error.h"

namespace troupe::model {
namespace {

using Correlations = std::vector<std::optional<double>>;

constexpr std::string_view kSeparation = "separation";

bool all_finite(const SampledColumn& column) {
  return std::ranges::all_of(column.numbers, [](double number) { return std::isfinite(number); });
}

// Bins over the range of the data and a quarter of it more on either side.
PairedValues paired(const SampledColumn& data, const SampledColumn& generated) {
  const auto [least, most] = std::ranges::minmax(data.numbers);
  const double range = most > least ? most - least : std::max(1.0, std::abs(most));
  return {data.numbers, generated.numbers, least - range / 4.0, most + range / 4.0, kReportBins};
}

Correlations correlations(const SampledColumns& of, Times times) {
  PearsonSum sum(of.columns.size() + 2);
  std::vector<double> features(of.columns.size() + 2);
  for (std::size_t i = 0; i < of.sample.showers().size(); ++i) {
    const SampledShower& shower = of.sample.showers()[i];
    if (!shower.usable()) continue;
    auto feature = features.begin();
    for (const SampledColumn& column : of.columns) *feature++ = column.numbers[i];
    *feature++ = shower.found.ecal_gev / shower.energy_gev;
    *feature = shower.energy_gev;
    sum.add(features, times[i]);
  }
  Correlations found = sum.correlations();
  found.pop_back();  // of response and energy
  return found;
}

// Two samples by their columns, in any draws.
class ColumnComparer {
 public:
  ColumnComparer(const SampledColumns& data, const SampledColumns& generated)
      : data_(data), generated_(generated) {
    for (std::size_t i = 0; i < data.columns.size(); ++i) {
      const SampledColumn &of_data = data.columns[i], &of_generated = generated.columns[i];
      CHECK(of_data.name == of_generated.name &&
                of_data.numbers.size() == data.sample.showers().size() &&
                of_generated.numbers.size() == generated.sample.showers().size(),
            "the same columns, and a number for each shower");
      std::optional<PairedValues>& values = values_.emplace_back();
      if (all_finite(of_data) && all_finite(of_generated)) values = paired(of_data, of_generated);
      all_finite_ = all_finite_ && values.has_value();
    }
  }

  Replicas::Values values(Times data, Times generated) const {
    Replicas::Values found;
    for (const std::optional<PairedValues>& column : values_) {
      for (const DistanceRule& rule : distance_rules()) {
        found.push_back(column ? std::optional((*column.*rule.of)(data, generated)) : std::nullopt);
      }
    }
    found.emplace_back();
    if (all_finite_) {
      found.back() = rms_difference(correlations(data_, data), correlations(generated_, generated));
    }
    return found;
  }

  // The separations alone, where showers have changed sides.
  Replicas::Values separations_of_turned(Turned data, Turned generated) const {
    Replicas::Values found;
    for (const std::optional<PairedValues>& column : values_) {
      for (const DistanceRule& rule : distance_rules()) {
        found.emplace_back();
        if (!column || rule.name != kSeparation) continue;
        found.back() = column->separation_of_turned(data, generated);
      }
    }
    found.emplace_back();
    return found;
  }

 private:
  SampledColumns data_, generated_;
  std::vector<std::optional<PairedValues>> values_;
  bool all_finite_ = true;
};

}  // namespace

std::vector<Figure> compute_column_figures(const SampledColumns& data,
                                           const SampledColumns& generated,
                                           const FigureOptions& options,
                                           runtime::ThreadTeam& team) {
  CHECK(data.columns.size() == generated.columns.size() && options.replicas >= 2 &&
            have_equal_energies(data.sample, generated.sample),
        "columns of showers of the same energies");
  std::vector<Figure> figures;
  for (const SampledColumn& column : data.columns) {
    for (const DistanceRule& rule : distance_rules()) {
      figures.push_back({fmt::format("column.{}.{}", column.name, rule.name),
                         fmt::format("{}: {}", column.name, rule.title),
                         "",
                         rule.source,
                         0.0,
                         {}});
    }
  }
  figures.push_back({"column_correlations",
                     "correlations of columns, response and energy, rms difference",
                     "",
                     "Pearson's r of each pair with a column",
                     0.0,
                     {}});
  const ColumnComparer across(data, generated), within(data, data);
  const auto draws =
      draw_figures(figures.size(), data.sample, generated.sample, across, within, options, team);
  if (!draws) return {};
  const std::vector<std::uint32_t> once(data.sample.showers().size(), 1);
  const Replicas::Values values = across.values(once, once);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    figures[i].value = values[i];
    figures[i].uncertainty = draws->widening * deviation_of(draws->drawn.of(i));
    std::vector<double> floor = draws->turned.of(i);
    if (floor.empty()) {
      floor = draws->floors.of(i);
      for (double& distance : floor) distance *= draws->widening;
    }
    set_floor(figures[i], std::move(floor));
  }
  return figures;
}

}  // namespace troupe::model

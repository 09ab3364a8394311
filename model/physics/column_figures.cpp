#include "model/physics/column_figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/physics/paired_values.h"
#include "model/physics/pearson_sum.h"
#include "model/physics/replicas.h"
#include "model/physics/sample_drawer.h"
#include "model/physics/shower_report.h"
#include "runtime/base/error.h"

namespace troupe::model {
namespace {

using Correlations = std::vector<std::optional<double>>;

// The slots of the streams of numbers: which sample is drawn, and what for.
enum ColumnUse : std::uint8_t { kOfData, kOfGenerated, kFirstOfFloor, kSecondOfFloor, kTurns };

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
  Replicas::Values separations_of_turned(const SampleTurner::Sides& turned) const {
    Replicas::Values found;
    for (const std::optional<PairedValues>& column : values_) {
      for (const DistanceRule& rule : distance_rules()) {
        found.emplace_back();
        if (!column || rule.name != kSeparation) continue;
        found.back() = column->separation_of_turned(turned.data, turned.generated);
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
  const std::size_t size = data.sample.showers().size();
  const SampleDrawer draw_data(data.sample, kStratum);
  const SampleDrawer draw_generated(generated.sample, kStratum);
  const SampleTurner turner(data.sample, generated.sample, true);
  const auto position = [&](std::uint32_t draw, ColumnUse use) {
    return runtime::RandomPosition{options.seed, draw, 0, use, 0};
  };
  const auto replicas = static_cast<std::size_t>(options.replicas);
  Replicas drawn(figures.size(), replicas), floors(figures.size(), replicas);
  Replicas turned(figures.size(), replicas);
  const bool finished = drawn.run(team, options.going_on, 0.0, [&](std::uint32_t draw) {
    return across.values(draw_data.draw(size, position(draw, kOfData)),
                         draw_generated.draw(size, position(draw, kOfGenerated)));
  }) && floors.run(team, options.going_on, 0.5, [&](std::uint32_t draw) {
    return within.values(draw_data.draw(size, position(draw, kFirstOfFloor)),
                         draw_data.draw(size, position(draw, kSecondOfFloor)));
  }) && turned.run(team, {}, 1.0, [&](std::uint32_t draw) {
    return across.separations_of_turned(turner.turn(position(draw, kTurns)));
  });
  if (!finished) return {};
  const std::vector<std::uint32_t> once(size, 1);
  const Replicas::Values values = across.values(once, once);
  const double widening = widening_of(std::min(kStratum, size));
  for (std::size_t i = 0; i < figures.size(); ++i) {
    figures[i].value = values[i];
    figures[i].uncertainty = widening * deviation_of(drawn.of(i));
    std::vector<double> floor = turned.of(i);
    if (floor.empty()) {
      floor = floors.of(i);
      for (double& distance : floor) distance *= widening;
    }
    set_floor(figures[i], std::move(floor));
  }
  return figures;
}

}  // namespace troupe::model

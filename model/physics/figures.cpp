#include "model/physics/figures.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "model/physics/feature_distances.h"
#include "model/physics/figure_rules.h"
#include "model/physics/replicas.h"
#include "model/physics/sample_comparer.h"
#include "model/physics/sample_drawer.h"
#include "model/physics/shower_classifier.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {
namespace {

constexpr double kEqualEnergies = 1e-4;  // relative
constexpr double kNormal95 = 1.96;  // standard deviations that 95 % of normal numbers stay within
constexpr const char* kSamplingFraction = "sampling_fraction";

using Counts = std::vector<std::uint32_t>;
using Values = Replicas::Values;

// The slots of the streams of numbers: which sample is drawn, and what for.
enum Use : std::uint8_t { kOfData, kOfGenerated, kFirstOfFloor, kSecondOfFloor, kTurns };

// From figures of pairs of samples drawn from the data.
void set_floor(Figure& figure, std::vector<double> draws, double widening) {
  if (draws.empty()) return;
  // An intercept has lost the part that grows with 1 / n, which is all that draws of the data have
  // on average.
  double shift = 0.0;
  if (figure.name == "frechet") {
    shift = std::accumulate(draws.begin(), draws.end(), 0.0) / static_cast<double>(draws.size());
  }
  for (double& draw : draws) draw = widening * std::abs(draw - shift - figure.ideal);
  set_floor(figure, std::move(draws));
}

// For a number that equal samples have normally distributed around the ideal.
void set_floor(Figure& figure, double deviation) {
  figure.floor = deviation * std::sqrt(2.0 / std::numbers::pi);
  figure.floor_95 = kNormal95 * deviation;
}

// Null: it takes more than sums.
const FigureRule* find_rule(std::string_view name) {
  for (const FigureRule& rule : figure_rules()) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

double intercept(const SampleComparer& comparer, const FigureOptions& options) {
  return frechet_intercept(comparer.data_features(), comparer.generated_features(), options.seed);
}

}  // namespace

Comparison compare_with_itself(const ShowerSample& data, int replicas, std::uint64_t seed) {
  CHECK(replicas >= 1, "a mean needs a draw");
  const SampleDrawer drawer(data, kStratum);
  std::vector<Comparison> drawn;
  for (std::uint32_t draw = 0; draw < static_cast<std::uint32_t>(replicas); ++draw) {
    const std::size_t size = data.showers().size();
    drawn.push_back(
        compare(data.statistics(drawer.draw(size, {seed, draw, 0, kFirstOfFloor, 0})),
                data.statistics(drawer.draw(size, {seed, draw, 0, kSecondOfFloor, 0}))));
  }
  return mean_of(drawn);
}

bool have_equal_energies(const ShowerSample& data, const ShowerSample& generated) {
  if (data.showers().size() != generated.showers().size()) return false;
  const auto of_data = by_energy(data), of_generated = by_energy(generated);
  for (std::size_t i = 0; i < of_data.size(); ++i) {
    const double a = data.showers()[of_data[i]].energy_gev;
    const double b = generated.showers()[of_generated[i]].energy_gev;
    if (!(std::abs(a - b) <= kEqualEnergies * std::abs(a))) return false;
  }
  return true;
}

std::vector<std::string> figure_words() {
  std::vector<std::string> words{"merit", kSamplingFraction};
  for (const Figure& figure : figure_list(true)) {
    if (figure.name != words.front()) words.push_back(figure.name);
  }
  return words;
}

std::string figure_meant(std::string_view word) {
  if (word == kSamplingFraction) return "response_energy";
  return find_figure(figure_list(true), word) == nullptr ? "" : std::string(word);
}

bool follows_from_sums(std::string_view name) { return find_rule(name) != nullptr; }

Figure compute_figure(std::string_view name, const ShowerSample& data,
                      const ShowerSample& generated, const FigureOptions& options,
                      runtime::ThreadTeam& team) {
  std::vector<Figure> list = figure_list(true);
  const auto found = std::ranges::find(list, name, &Figure::name);
  CHECK(found != list.end(), "no such figure");
  Figure& figure = *found;
  if (const FigureRule* rule = find_rule(name)) {
    const ShowerStatistics of_data = data.statistics(), of_generated = generated.statistics();
    figure.value = rule->of({of_data, of_generated, compare(of_data, of_generated)});
    return figure;
  }
  const Counts all_data(data.showers().size(), 1), all_generated(generated.showers().size(), 1);
  if (name == kAreaFigure) {
    CHECK(options.classifier != nullptr, "a classifier is trained by a backend");
    figure.value = classify(data, generated, options.seed, *options.classifier, team, false)
                       .outputs.area(all_data, all_generated);
    return figure;
  }
  const SampleComparer comparer(data, generated);
  const std::vector<Figure> known = figure_list(data.options().angle);
  const auto place = std::ranges::find(known, name, &Figure::name);
  if (place == known.end()) return figure;
  figure.value = name == "frechet" ? intercept(comparer, options)
                                   : comparer.values(all_data, all_generated)
                                         .at(static_cast<std::size_t>(place - known.begin()));
  return figure;
}

std::vector<Figure> compute_figures(const ShowerSample& data, const ShowerSample& generated,
                                    const FigureOptions& options, runtime::ThreadTeam& team) {
  CHECK(options.replicas >= 2, "an uncertainty needs two draws");
  SampleComparer across(data, generated);
  const SampleComparer within(data, data);
  std::optional<ClassifiedSamples> classified;
  if (options.classifier != nullptr) {
    classified = classify(data, generated, options.seed, *options.classifier, team);
    across.take(classified->outputs);
  }
  const std::size_t of_data = data.showers().size(), of_generated = generated.showers().size();
  const bool equal = have_equal_energies(data, generated);
  const SampleDrawer draw_data(data, equal ? kStratum : of_data);
  const SampleDrawer draw_generated(generated, equal ? kStratum : of_generated);
  const SampleTurner turner(data, generated, equal);
  const double widening = widening_of(equal ? std::min(kStratum, of_data) : of_data);

  std::vector<Figure> figures = figure_list(data.options().angle);
  const auto replicas = static_cast<std::size_t>(options.replicas);
  Replicas drawn(figures.size(), replicas), floors(figures.size(), replicas);
  Replicas turned(figures.size(), replicas);
  const auto position = [&](std::uint32_t draw, Use use) {
    return runtime::RandomPosition{options.seed, draw, 0, use, 0};
  };
  const bool finished = drawn.run(team, options.going_on, 0.0, [&](std::uint32_t draw) {
    return across.values(draw_data.draw(of_data, position(draw, kOfData)),
                         draw_generated.draw(of_generated, position(draw, kOfGenerated)));
  }) && floors.run(team, options.going_on, 0.5, [&](std::uint32_t draw) {
    return within.values(draw_data.draw(of_data, position(draw, kFirstOfFloor)),
                         draw_data.draw(of_generated, position(draw, kSecondOfFloor)));
  }) && turned.run(team, {}, 1.0, [&](std::uint32_t draw) {
    const SampleTurner::Sides sides = turner.turn(position(draw, kTurns));
    return across.separations_of_turned(sides.data, sides.generated);
  });
  if (!finished) return {};
  const Values values = across.values(Counts(of_data, 1), Counts(of_generated, 1));
  for (std::size_t i = 0; i < figures.size(); ++i) {
    Figure& figure = figures[i];
    figure.value = figure.name == "frechet" ? intercept(across, options) : values[i];
    figure.uncertainty = widening * deviation_of(drawn.of(i));
    if (figure.name == kAreaFigure) {
      // Nothing says how far it is from the ideal by chance then.
      if (!classified || !classified->deviation) figure.value.reset();
      if (figure.value) set_floor(figure, *classified->deviation);
    } else if (!turned.of(i).empty()) {
      set_floor(figure, turned.of(i));
    } else {
      set_floor(figure, floors.of(i), widening);
    }
  }
  return figures;
}

}  // namespace troupe::model

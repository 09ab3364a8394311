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
#include "model/physics/figure_draws.h"
#include "model/physics/figure_rules.h"
#include "model/physics/sample_comparer.h"
#include "model/physics/shower_classifier.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {
namespace {

constexpr double kEqualEnergies = 1e-4;  // relative
constexpr double kNormal95 = 1.96;  // standard deviations that 95 % of normal numbers stay within
constexpr const char* kSamplingFraction = "sampling_fraction";

using Counts = std::vector<std::uint32_t>;

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
  std::vector<Figure> figures = figure_list(data.options().angle);
  const auto draws = draw_figures(figures.size(), data, generated, across, within, options, team);
  if (!draws) return {};
  const Replicas::Values values =
      across.values(Counts(data.showers().size(), 1), Counts(generated.showers().size(), 1));
  for (std::size_t i = 0; i < figures.size(); ++i) {
    Figure& figure = figures[i];
    figure.value = figure.name == "frechet" ? intercept(across, options) : values[i];
    figure.uncertainty = draws->widening * deviation_of(draws->drawn.of(i));
    if (figure.name == kAreaFigure) {
      // Nothing says how far it is from the ideal by chance then.
      if (!classified || !classified->deviation) figure.value.reset();
      if (figure.value) set_floor(figure, *classified->deviation);
    } else if (!draws->turned.of(i).empty()) {
      set_floor(figure, draws->turned.of(i));
    } else {
      set_floor(figure, draws->floors.of(i), draws->widening);
    }
  }
  return figures;
}

}  // namespace troupe::model

#include "model/physics/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/physics/sample_comparer.h"
#include "model/physics/sample_drawer.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {
namespace {

constexpr double kEqualEnergies = 1e-4;  // relative
constexpr double kFloorShare = 0.95;
constexpr std::size_t kDrawsAtOnce = 16;

using Counts = std::vector<std::uint32_t>;
using Values = std::vector<std::optional<double>>;

// The slots of the streams of numbers: which sample is drawn, and what for.
enum Use : std::uint8_t { kOfData, kOfGenerated, kFirstOfFloor, kSecondOfFloor, kIntercept };

double deviation(const std::vector<double>& values) {
  SpreadSum sum;
  for (const double value : values) sum.add(value);
  return sum.spread().deviation;
}

// The draws of one comparer: of the two samples, or of two from the data.
class Replicas {
 public:
  Replicas(std::size_t figures, std::size_t count) : values_(figures), count_(count) {}

  // Calls make(draw) for each; false: ended early.
  template <class Make>
  bool run(runtime::ThreadTeam& team, const std::function<bool(double)>& going_on, double before,
           Make make) {
    std::vector<Values> found(count_);
    for (std::size_t first = 0; first < count_; first += kDrawsAtOnce) {
      const std::size_t some = std::min(kDrawsAtOnce, count_ - first);
      team.run(static_cast<std::int64_t>(some), [&](std::int64_t i, int) {
        const std::size_t draw = first + static_cast<std::size_t>(i);
        found[draw] = make(static_cast<std::uint32_t>(draw));
      });
      const double share = static_cast<double>(first + some) / static_cast<double>(count_);
      if (going_on && !going_on(before + share / 2.0)) return false;
    }
    for (const Values& draw : found) {
      for (std::size_t i = 0; i < values_.size(); ++i) {
        if (draw[i]) values_[i].push_back(*draw[i]);
      }
    }
    return true;
  }

  // The values of a figure in the draws that have it.
  const std::vector<double>& of(std::size_t figure) const { return values_[figure]; }

 private:
  std::vector<std::vector<double>> values_;
  std::size_t count_;
};

void set_floor(Figure& figure, std::vector<double> draws, double widening) {
  if (draws.empty()) return;
  // An intercept has lost the part that grows with 1 / n, which is all that draws of the data have
  // on average.
  double shift = 0.0;
  if (figure.name == "frechet") {
    shift = std::accumulate(draws.begin(), draws.end(), 0.0) / static_cast<double>(draws.size());
  }
  for (double& draw : draws) draw = widening * std::abs(draw - shift - figure.ideal);
  std::sort(draws.begin(), draws.end());
  figure.floor =
      std::accumulate(draws.begin(), draws.end(), 0.0) / static_cast<double>(draws.size());
  const double place = kFloorShare * static_cast<double>(draws.size() - 1);
  figure.floor_95 = draws[static_cast<std::size_t>(std::ceil(place))];
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

std::vector<Figure> compute_figures(const ShowerSample& data, const ShowerSample& generated,
                                    const FigureOptions& options, runtime::ThreadTeam& team) {
  CHECK(options.replicas >= 2, "an uncertainty needs two draws");
  const SampleComparer across(data, generated), within(data, data);
  const std::size_t of_data = data.showers().size(), of_generated = generated.showers().size();
  const bool equal = have_equal_energies(data, generated);
  const SampleDrawer draw_data(data, equal ? kStratum : of_data);
  const SampleDrawer draw_generated(generated, equal ? kStratum : of_generated);
  const auto stratum = static_cast<double>(equal ? std::min(kStratum, of_data) : of_data);
  const double widening = stratum > 1.0 ? std::sqrt(stratum / (stratum - 1.0)) : 1.0;

  std::vector<Figure> figures = figure_list(data.options().angle);
  const auto replicas = static_cast<std::size_t>(options.replicas);
  Replicas drawn(figures.size(), replicas), floors(figures.size(), replicas);
  const auto position = [&](std::uint32_t draw, Use use) {
    return runtime::RandomPosition{options.seed, draw, 0, use, 0};
  };
  const bool finished = drawn.run(team, options.going_on, 0.0, [&](std::uint32_t draw) {
    return across.values(draw_data.draw(of_data, position(draw, kOfData)),
                         draw_generated.draw(of_generated, position(draw, kOfGenerated)));
  }) && floors.run(team, options.going_on, 0.5, [&](std::uint32_t draw) {
    return within.values(draw_data.draw(of_data, position(draw, kFirstOfFloor)),
                         draw_data.draw(of_generated, position(draw, kSecondOfFloor)));
  });
  if (!finished) return {};
  const Values values = across.values(Counts(of_data, 1), Counts(of_generated, 1));
  for (std::size_t i = 0; i < figures.size(); ++i) {
    Figure& figure = figures[i];
    figure.value = values[i];
    if (figure.name == "frechet") {
      figure.value =
          frechet_intercept(across.data_features(), across.generated_features(), options.seed);
    }
    figure.uncertainty = widening * deviation(drawn.of(i));
    set_floor(figure, floors.of(i), widening);
  }
  return figures;
}

}  // namespace troupe::model

#include "model/physics/figure_rules.h"

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

using Value = std::optional<double>;

constexpr const char* kObjective = "3DGAN, keras/misc/TestingObjective.py";
constexpr const char* kSums = "3DGAN, analysis/utils/GANutils.py: get_sums";
constexpr const char* kMoments = "3DGAN, analysis/utils/GANutils.py: get_moments";
constexpr const char* kCalo = "CaloChallenge, code/evaluate.py";

constexpr double kPercent = 100.0;
// Occupancies are compared from 1e-6 GeV on, below which cells are cut, as far as one shower of the
// data in ten has a cell.
constexpr std::size_t kLowestLevel = 7;
constexpr double kFewestCells = 0.1;

Spread spread(const ShowerGroup& group, std::string_view observable) {
  const auto all = shower_observables();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (observable == all[i].name) return group.spread(i);
  }
  CHECK(false, "no such observable");
}

Value ratio(double generated, double data) {
  if (data == 0.0) return std::nullopt;
  return generated / data;
}

Value ratio_of_means(const SummedPair& pair, std::string_view observable) {
  return ratio(spread(pair.generated.all(), observable).mean,
               spread(pair.data.all(), observable).mean);
}

Value ratio_of_spreads(const SummedPair& pair, std::string_view observable) {
  return ratio(spread(pair.generated.all(), observable).deviation,
               spread(pair.data.all(), observable).deviation);
}

Value difference_of_means(const SummedPair& pair, std::string_view observable) {
  return spread(pair.generated.all(), observable).mean - spread(pair.data.all(), observable).mean;
}

// Mean of each(data, generated) over the bins in which the data have energy.
template <class Each>
Value mean_over(const std::vector<ShowerGroup>& data, const std::vector<ShowerGroup>& generated,
                Each each) {
  double sum = 0.0;
  int bins = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i].events() == data[i].empty_events()) continue;
    if (generated[i].events() + generated[i].invalid_events() == 0) continue;
    const Value found = each(data[i], generated[i]);
    if (!found) continue;
    sum += *found;
    ++bins;
  }
  if (bins == 0) return std::nullopt;
  return sum / bins;
}

Value profile(const ShowerGroup& data, const ShowerGroup& generated, std::size_t axis) {
  return kPercent * profile_error(data.mean_profile(axis), generated.mean_profile(axis));
}

Value longitudinal(const ShowerGroup& data, const ShowerGroup& generated) {
  return profile(data, generated, 2);
}

Value transverse(const ShowerGroup& data, const ShowerGroup& generated) {
  return (*profile(data, generated, 0) + *profile(data, generated, 1)) / 2.0;
}

Value resolution(const ShowerGroup& data, const ShowerGroup& generated) {
  const Spread d = data.sampling_fraction(), g = generated.sampling_fraction();
  if (d.deviation == 0.0 || g.mean == 0.0) return std::nullopt;
  return (g.deviation / g.mean) / (d.deviation / d.mean);
}

Value response_error(const ShowerGroup& data, const ShowerGroup& generated) {
  return kPercent *
         relative_error(data.sampling_fraction().mean, generated.sampling_fraction().mean);
}

Value occupancy(const SummedPair& pair) {
  const Extent& space = pair.data.options().space;
  const auto cells = static_cast<double>(space[0] * space[1] * space[2]);
  double sum = 0.0;
  int levels = 0;
  for (std::size_t level = kLowestLevel; level < kSparsityLevels; ++level) {
    const double data = pair.data.all().cells_above(level).mean;
    if (data * cells < kFewestCells) continue;
    sum += relative_error(data, pair.generated.all().cells_above(level).mean);
    ++levels;
  }
  if (levels == 0) return std::nullopt;
  return kPercent * sum / levels;
}

// Standard deviation of the logarithm of the cells' energies, in bins of the spectrum.
double spectrum_width(const std::vector<double>& spectrum) {
  SpreadSum sum;
  for (std::size_t i = 0; i < spectrum.size(); ++i) sum.add(static_cast<double>(i), spectrum[i]);
  return sum.spread().deviation;
}

template <class Term>
Value merit(const SummedPair& pair, Term term) {
  if (!pair.comparison.merit) return std::nullopt;
  return term(*pair.comparison.merit);
}

// Each line: name, title, unit, formula's source, ideal, value.
constexpr FigureRule kRules[] = {
    {"response", "mean response, generated / data", "", "3DGAN: plot_ecal_ratio_profile", 1,
     [](const SummedPair& p) { return ratio_of_means(p, "response"); }},
    {"response_width", "width of the response, generated / data", "",
     "standard deviation of ecal / primary energy", 1,
     [](const SummedPair& p) { return ratio_of_spreads(p, "response"); }},
    {"resolution", "resolution in bins of energy, generated / data", "",
     "mean over energy bins of width / mean of the response", 1,
     [](const SummedPair& p) { return mean_over(p.data.bins(), p.generated.bins(), resolution); }},
    {"response_energy", "error of the response in bins of energy", "%", kObjective, 0,
     [](const SummedPair& p) {
       return mean_over(p.data.bins(), p.generated.bins(), response_error);
     }},
    {"merit", "figure of merit", "", kObjective, 0,
     [](const SummedPair& p) {
       return merit(p, [](const FigureOfMerit& m) { return Value(m.total); });
     }},
    {"merit_moments", "its term of moments", "", kObjective, 0,
     [](const SummedPair& p) {
       return merit(p, [](const FigureOfMerit& m) { return Value(m.moments); });
     }},
    {"merit_profiles", "its term of profiles", "", kObjective, 0,
     [](const SummedPair& p) {
       return merit(p, [](const FigureOfMerit& m) { return Value(m.profiles); });
     }},
    {"merit_angle", "its term of angles", "", kObjective, 0,
     [](const SummedPair& p) { return merit(p, [](const FigureOfMerit& m) { return m.angle; }); }},
    {"longitudinal", "energy missing, extra or misplaced along z", "%", kSums, 0,
     [](const SummedPair& p) { return longitudinal(p.data.all(), p.generated.all()); }},
    {"transverse_x", "the same along x", "%", kSums, 0,
     [](const SummedPair& p) { return profile(p.data.all(), p.generated.all(), 0); }},
    {"transverse_y", "the same along y", "%", kSums, 0,
     [](const SummedPair& p) { return profile(p.data.all(), p.generated.all(), 1); }},
    {"longitudinal_energy", "along z, in bins of energy", "%", kSums, 0,
     [](const SummedPair& p) {
       return mean_over(p.data.bins(), p.generated.bins(), longitudinal);
     }},
    {"transverse_energy", "along x and y, in bins of energy", "%", kSums, 0,
     [](const SummedPair& p) { return mean_over(p.data.bins(), p.generated.bins(), transverse); }},
    {"longitudinal_angle", "along z, in bins of angle", "%", kSums, 0,
     [](const SummedPair& p) {
       return mean_over(p.data.angle_bins(), p.generated.angle_bins(), longitudinal);
     }},
    {"transverse_angle", "along x and y, in bins of angle", "%", kSums, 0,
     [](const SummedPair& p) {
       return mean_over(p.data.angle_bins(), p.generated.angle_bins(), transverse);
     }},
    {"sorted_layers", "along z, layers of each shower sorted by energy", "%",
     "as longitudinal, after sorting", 0,
     [](const SummedPair& p) -> Value {
       return kPercent * profile_error(p.data.all().mean_sorted_layers(),
                                       p.generated.all().mean_sorted_layers());
     }},
    {"maximum", "layer of the shower's maximum, generated - data", "layers", "3DGAN: plot_max", 0,
     [](const SummedPair& p) { return difference_of_means(p, "maximum"); }},
    {"depth", "mean layer, generated - data", "layers", kMoments, 0,
     [](const SummedPair& p) { return difference_of_means(p, "depth"); }},
    {"depth_spread", "its spread over showers, generated / data", "", kMoments, 1,
     [](const SummedPair& p) { return ratio_of_spreads(p, "depth"); }},
    {"length", "length of a shower, generated / data", "", kMoments, 1,
     [](const SummedPair& p) { return ratio_of_means(p, "length"); }},
    {"length_spread", "its spread over showers, generated / data", "", kMoments, 1,
     [](const SummedPair& p) { return ratio_of_spreads(p, "length"); }},
    {"width_x", "width along x, generated / data", "", kMoments, 1,
     [](const SummedPair& p) { return ratio_of_means(p, "width_x"); }},
    {"width_y", "width along y, generated / data", "", kMoments, 1,
     [](const SummedPair& p) { return ratio_of_means(p, "width_y"); }},
    {"width_spread", "its spread over showers along x, generated / data", "", kMoments, 1,
     [](const SummedPair& p) { return ratio_of_spreads(p, "width_x"); }},
    {"hits", "mean number of hits, generated / data", "", "3DGAN: plot_ecal_hits_hist, get_hits", 1,
     [](const SummedPair& p) { return ratio_of_means(p, "hits"); }},
    {"hits_width", "width of the number of hits, generated / data", "",
     "standard deviation of the hits", 1,
     [](const SummedPair& p) { return ratio_of_spreads(p, "hits"); }},
    {"occupancy", "error of the share of cells above 1e-6, 1e-5 ... GeV", "%",
     "3DGAN: plot_sparsity; mean over thresholds of the relative error", 0, occupancy},
    {"hottest", "share of the hottest cell, generated / data", "", "mean of largest cell / ecal", 1,
     [](const SummedPair& p) { return ratio_of_means(p, "hottest"); }},
    {"cell_spectrum", "separation of the spectra of cell energies", "", kCalo, 0,
     [](const SummedPair& p) -> Value {
       return separation_power(p.data.all().mean_spectrum(), p.generated.all().mean_spectrum());
     }},
    {"cell_spread", "width of the logarithm of cell energies, generated / data", "",
     "standard deviation over bins of an octave's half", 1,
     [](const SummedPair& p) {
       return ratio(spectrum_width(p.generated.all().mean_spectrum()),
                    spectrum_width(p.data.all().mean_spectrum()));
     }},
    {"moment_correlations", "correlations of moments, hits and energy, mean difference", "",
     "3DGAN: get_correlation_small", 0,
     [](const SummedPair& p) { return p.comparison.correlation_difference; }},
    {"layer_correlations", "correlations of the layers' energies, rms difference", "",
     "3DGAN: get_correlation, layers alone", 0,
     [](const SummedPair& p) {
       return rms_difference(p.data.all().layer_correlations(),
                             p.generated.all().layer_correlations());
     }},
    {"share_correlations", "the same of layer energy / primary energy", "",
     "3DGAN: get_correlation, layers alone", 0,
     [](const SummedPair& p) {
       return rms_difference(p.data.all().share_correlations(),
                             p.generated.all().share_correlations());
     }},
};

}  // namespace

std::span<const FigureRule> figure_rules() { return kRules; }

}  // namespace troupe::model

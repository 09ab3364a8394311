#include "model/physics/comparison.h"

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

constexpr std::size_t kComparedMoments = 2;
constexpr double kSmallestProfileShare = 1e-6;

// Bounds of Unlikeness.
constexpr double kMostResponseError = 0.5;
constexpr double kMostDisplacement = 0.25;
constexpr double kLeastOfCorrelation = 0.5;  // times the data's
constexpr double kTellingCorrelation = 0.5;  // data below it do not follow the energy themselves

double total(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double moments_error(const ShowerGroup& data, const ShowerGroup& generated) {
  double sum = 0.0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (std::size_t order = 1; order <= kComparedMoments; ++order) {
      sum += relative_error(data.mean_moment(axis, order), generated.mean_moment(axis, order));
    }
  }
  return sum / (3.0 * static_cast<double>(kComparedMoments));
}

// Mean over the cells of the data's profile that are large enough; the others are counted.
double profile_cell_error(const std::vector<double>& data, const std::vector<double>& generated,
                          std::int64_t& skipped) {
  const double smallest = kSmallestProfileShare * total(data);
  double sum = 0.0;
  std::int64_t cells = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] == 0.0 || data[i] < smallest) {
      ++skipped;
      continue;
    }
    sum += relative_error(data[i], generated[i]);
    ++cells;
  }
  return cells == 0 ? 0.0 : sum / static_cast<double>(cells);
}

double profile_displacement(const std::vector<double>& data, const std::vector<double>& generated) {
  const double all_data = total(data), all_generated = total(generated);
  if (all_data == 0.0 || all_generated == 0.0) return all_data == all_generated ? 0.0 : 1.0;
  double difference = 0.0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    difference += std::abs(generated[i] / all_generated - data[i] / all_data);
  }
  return difference / 2.0;
}

// True also where the data themselves hardly follow the energy.
bool follows_energy(const ShowerGroup& data, const ShowerGroup& generated) {
  const std::optional<double> wanted = data.energy_correlation();
  if (!wanted || *wanted < kTellingCorrelation) return true;
  return generated.energy_correlation().value_or(0.0) >= kLeastOfCorrelation * *wanted;
}

std::vector<Unlikeness> unlikenesses(const Comparison& found, const ShowerGroup& data,
                                     const ShowerGroup& generated) {
  std::vector<Unlikeness> unlike;
  const auto add_if = [&](bool holds, Unlikeness what) {
    if (holds) unlike.push_back(what);
  };
  add_if(found.sampling_fraction_error > kMostResponseError, Unlikeness::kResponse);
  add_if(found.longitudinal_displacement > kMostDisplacement, Unlikeness::kLongitudinal);
  add_if(found.transverse_displacement > kMostDisplacement, Unlikeness::kTransverse);
  add_if(!follows_energy(data, generated), Unlikeness::kEnergy);
  return unlike;
}

std::array<double, 3> profile_cell_errors(const ShowerGroup& data, const ShowerGroup& generated,
                                          std::int64_t& skipped) {
  std::array<double, 3> errors{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    errors[axis] =
        profile_cell_error(data.mean_profile(axis), generated.mean_profile(axis), skipped);
  }
  return errors;
}

// A bin in which the generated showers are all empty or invalid is compared, with errors of 1:
// leaving it out would favour a generator that makes none.
bool comparable(const ShowerGroup& data, const ShowerGroup& generated) {
  return data.events() > data.empty_events() && generated.events() + generated.invalid_events() > 0;
}

std::optional<FigureOfMerit> figure_of_merit(const ShowerStatistics& data,
                                             const ShowerStatistics& generated) {
  FigureOfMerit merit;
  double angles = 0.0;
  std::int64_t bins_with_angle = 0;
  for (std::size_t i = 0; i < data.bins().size(); ++i) {
    const ShowerGroup &d = data.bins()[i], &g = generated.bins()[i];
    if (!comparable(d, g)) {
      ++merit.energy_bins_skipped;
      continue;
    }
    ++merit.energy_bins;
    merit.moments += moments_error(d, g);
    const auto errors = profile_cell_errors(d, g, merit.profile_cells_skipped);
    merit.profiles += (errors[0] + errors[1] + errors[2]) / 3.0;
    merit.sampling_fraction +=
        relative_error(d.sampling_fraction().mean, g.sampling_fraction().mean);
    if (const auto angle = g.mean_angle_error()) {
      angles += *angle;
      ++bins_with_angle;
    }
  }
  if (merit.energy_bins == 0) return std::nullopt;
  const auto bins = static_cast<double>(merit.energy_bins);
  merit.moments /= bins;
  merit.profiles /= bins;
  merit.sampling_fraction /= bins;
  if (bins_with_angle > 0) merit.angle = angles / static_cast<double>(bins_with_angle);
  merit.total =
      merit.moments + merit.profiles + merit.sampling_fraction + merit.angle.value_or(0.0);
  return merit;
}

// Over those that are known; nothing where none is.
template <class Of>
std::optional<double> mean_of_known(std::span<const Comparison> comparisons, Of of) {
  double sum = 0.0;
  int known = 0;
  for (const Comparison& each : comparisons) {
    const std::optional<double> value = of(each);
    if (!value) continue;
    sum += *value;
    ++known;
  }
  return known == 0 ? std::nullopt : std::optional<double>(sum / known);
}

}  // namespace

double relative_error(double data, double generated) {
  if (data == 0.0) return generated == 0.0 ? 0.0 : 1.0;
  return std::abs(generated - data) / std::abs(data);
}

std::span<const ComparisonNumber> comparison_numbers() {
  static constexpr ComparisonNumber kNumbers[] = {
      {"sampling_fraction_error", &Comparison::sampling_fraction_error},
      {"sampling_fraction_width_error", &Comparison::sampling_fraction_width_error},
      {"hits_error", &Comparison::hits_error},
      {"moments_error", &Comparison::moments_error},
      {"longitudinal_error", &Comparison::longitudinal_error},
      {"transverse_error", &Comparison::transverse_error},
      {"longitudinal_cell_error", &Comparison::longitudinal_cell_error},
      {"transverse_cell_error", &Comparison::transverse_cell_error},
      {"longitudinal_displacement", &Comparison::longitudinal_displacement},
      {"transverse_displacement", &Comparison::transverse_displacement},
      {"ecal_separation", &Comparison::ecal_separation}};
  return kNumbers;
}

std::span<const OptionalNumber> optional_numbers() {
  static constexpr OptionalNumber kNumbers[] = {
      {"correlation_difference", &Comparison::correlation_difference},
      {"layer_correlation_difference", &Comparison::layer_correlation_difference}};
  return kNumbers;
}

Comparison mean_of(std::span<const Comparison> comparisons) {
  Comparison mean;
  for (const ComparisonNumber& number : comparison_numbers()) {
    for (const Comparison& each : comparisons) {
      mean.*number.value += each.*number.value / static_cast<double>(comparisons.size());
    }
  }
  for (const OptionalNumber& number : optional_numbers()) {
    mean.*number.value =
        mean_of_known(comparisons, [&](const Comparison& each) { return each.*number.value; });
  }
  const auto term = [&](auto of) {
    return mean_of_known(comparisons, [&](const Comparison& each) {
      return each.merit ? std::optional<double>(of(*each.merit)) : std::nullopt;
    });
  };
  const auto total = term([](const FigureOfMerit& merit) { return merit.total; });
  if (!total) return mean;
  mean.merit.emplace();
  mean.merit->total = *total;
  mean.merit->moments = *term([](const FigureOfMerit& merit) { return merit.moments; });
  mean.merit->profiles = *term([](const FigureOfMerit& merit) { return merit.profiles; });
  mean.merit->sampling_fraction =
      *term([](const FigureOfMerit& merit) { return merit.sampling_fraction; });
  return mean;
}

double profile_error(const std::vector<double>& data, const std::vector<double>& generated) {
  double difference = 0.0;
  for (std::size_t i = 0; i < data.size(); ++i) difference += std::abs(generated[i] - data[i]);
  const double energy = total(data);
  if (energy == 0.0) return difference == 0.0 ? 0.0 : 1.0;
  return difference / energy;
}

Comparison compare(const ShowerStatistics& data, const ShowerStatistics& generated) {
  CHECK(data.options() == generated.options(),
        "samples measured with different options do not compare");
  const ShowerGroup &d = data.all(), &g = generated.all();
  std::array<double, 3> energy_errors{}, displacements{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    energy_errors[axis] = profile_error(d.mean_profile(axis), g.mean_profile(axis));
    displacements[axis] = profile_displacement(d.mean_profile(axis), g.mean_profile(axis));
  }
  std::int64_t skipped = 0;
  const auto cell_errors = profile_cell_errors(d, g, skipped);

  Comparison result;
  result.merit = figure_of_merit(data, generated);
  result.sampling_fraction_error =
      relative_error(d.sampling_fraction().mean, g.sampling_fraction().mean);
  result.sampling_fraction_width_error =
      relative_error(d.sampling_fraction().deviation, g.sampling_fraction().deviation);
  result.hits_error = relative_error(d.hits().mean, g.hits().mean);
  result.moments_error = moments_error(d, g);
  result.longitudinal_error = energy_errors[2];
  result.transverse_error = (energy_errors[0] + energy_errors[1]) / 2.0;
  result.longitudinal_cell_error = cell_errors[2];
  result.transverse_cell_error = (cell_errors[0] + cell_errors[1]) / 2.0;
  result.longitudinal_displacement = displacements[2];
  result.transverse_displacement = (displacements[0] + displacements[1]) / 2.0;
  result.unlike = unlikenesses(result, d, g);
  result.correlation_difference = mean_difference(d.correlations(), g.correlations());
  result.layer_correlation_difference =
      rms_difference(d.layer_correlations(), g.layer_correlations());
  result.ecal_separation = separation_power(d.ecal_histogram(), g.ecal_histogram());
  return result;
}

}  // namespace troupe::model

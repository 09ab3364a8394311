#include "model/physics/sample_comparer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/physics/figure_rules.h"
#include "model/physics/shower_report.h"
#include "runtime/base/error.h"

namespace troupe::model {
namespace {

using Value = std::optional<double>;

// Showers of each sample whose kernel is kept.
constexpr std::size_t kMostInKernel = 1000;

// Those that take more than sums, in the order in which values() finds them.
struct FigureText {
  const char* name;
  const char* title;
  const char* unit;
  const char* source;
  double ideal;
};
constexpr FigureText kOfWholeSamples[] = {
    {"layer_separation", "separation of the layers' energies, mean over layers", "",
     "CaloChallenge, code/evaluate.py", 0},
    {"copies", "generated showers that repeat one of the data", "%",
     "nearest neighbours of the shapes", 0},
    {"nearest", "distance to the nearest of the data, generated / data", "",
     "nearest neighbours of the shapes", 1},
    {"diversity", "distance to the nearest of its own, generated / data", "",
     "nearest neighbours of the shapes", 1},
    {"similarity", "structural similarity of two showers, generated - data", "",
     "Wang et al. 2004; 3DGAN: ImageQualityTests", 0},
    {"frechet", "Frechet distance of the observables, for samples without end", "",
     "jetnet, fpd; CaloChallenge", 0},
    {"kernel", "kernel distance of the observables", "", "jetnet, kpd; CaloChallenge", 0},
    {kAreaFigure, "how well a classifier tells the two apart (AUC)", "",
     "CaloChallenge, code/evaluate.py: cls-high", 0.5}};

template <class Number>
std::vector<Number> picked(std::span<const Number> of_all,
                           const std::vector<std::uint32_t>& showers) {
  std::vector<Number> found;
  found.reserve(showers.size());
  for (const std::uint32_t shower : showers) found.push_back(of_all[shower]);
  return found;
}

// Evenly over the sample.
std::vector<std::uint32_t> evenly(std::size_t count, std::size_t most) {
  std::vector<std::uint32_t> chosen;
  const std::size_t size = std::min(count, most);
  for (std::size_t i = 0; i < size; ++i) {
    chosen.push_back(static_cast<std::uint32_t>(i * count / size));
  }
  return chosen;
}

FeatureTable part_of(const FeatureTable& table, const std::vector<std::uint32_t>& chosen) {
  FeatureTable part{table.size, {}};
  for (const std::uint32_t i : chosen) {
    const auto begin = table.values.begin() + static_cast<std::ptrdiff_t>(i * table.size);
    part.values.insert(part.values.end(), begin, begin + static_cast<std::ptrdiff_t>(table.size));
  }
  return part;
}

FeatureTable features(const ShowerSample& sample) {
  FeatureTable table;
  for (const ShowerObservable& observable : shower_observables()) {
    if (observable.is_known(sample.options().angle)) ++table.size;
  }
  for (const SampledShower& shower : sample.showers()) {
    for (const ShowerObservable& observable : shower_observables()) {
      if (!observable.is_known(sample.options().angle)) continue;
      const bool known = shower.usable() && !(observable.of_filled && shower.found.empty());
      table.values.push_back(known ? observable.of(shower) : 0.0);
    }
  }
  return table;
}

}  // namespace

std::vector<Figure> figure_list(bool angle) {
  std::vector<Figure> list;
  const auto add = [&](std::string name, std::string title, std::string unit, std::string source,
                       double ideal) {
    Figure& figure = list.emplace_back();
    figure.name = std::move(name);
    figure.title = std::move(title);
    figure.unit = std::move(unit);
    figure.source = std::move(source);
    figure.ideal = ideal;
  };
  for (const FigureRule& rule : figure_rules()) {
    add(rule.name, rule.title, rule.unit, rule.source, rule.ideal);
  }
  for (const FigureText& text : kOfWholeSamples) {
    add(text.name, text.title, text.unit, text.source, text.ideal);
  }
  for (const ShowerObservable& observable : shower_observables()) {
    if (!observable.is_known(angle)) continue;
    for (const DistanceRule& rule : distance_rules()) {
      add(fmt::format("{}.{}", observable.name, rule.name),
          fmt::format("{}: {}", observable.title, rule.title), "", rule.source, 0.0);
    }
  }
  return list;
}

SampleComparer::SampleComparer(const ShowerSample& data, const ShowerSample& generated)
    : data_(data),
      generated_(generated),
      same_(&data == &generated),
      neighbours_(data, generated, &data == &generated) {
  CHECK(data.options() == generated.options(),
        "samples measured with different options do not compare");
  for (const ShowerObservable& observable : shower_observables()) {
    if (!observable.is_known(data.options().angle)) continue;
    observables_.push_back(pair(observable.of_filled, observable.of));
  }
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(data.options().space[2]); ++layer) {
    layers_.push_back(
        pair(false, [&](const SampledShower& shower) { return shower.found.profile[2][layer]; }));
  }
  make_features();
}

template <class Of>
SampleComparer::Paired SampleComparer::pair(bool of_filled, Of of) const {
  Paired paired;
  const auto take = [&](const ShowerSample& sample, std::vector<std::uint32_t>& showers) {
    std::vector<double> values;
    for (std::uint32_t i = 0; i < sample.showers().size(); ++i) {
      const SampledShower& shower = sample.showers()[i];
      if (!shower.usable() || (of_filled && shower.found.empty())) continue;
      showers.push_back(i);
      values.push_back(of(shower));
    }
    return values;
  };
  const auto of_data = take(data_, paired.data), of_generated = take(generated_, paired.generated);
  const PairedHistogram bins = paired_histogram(of_data, {});
  paired.values.emplace(of_data, of_generated, bins.low, bins.high, kReportBins);
  return paired;
}

void SampleComparer::make_features() {
  data_features_ = features(data_);
  generated_features_ = features(generated_);
  scale_by_data(data_features_, generated_features_);
  kernel_data_ = evenly(data_features_.count(), kMostInKernel);
  kernel_generated_ = evenly(generated_features_.count(), kMostInKernel);
  kernel_.emplace(part_of(data_features_, kernel_data_),
                  part_of(generated_features_, kernel_generated_));
}

template <class Separation>
double SampleComparer::mean_of_layers(Separation separation) const {
  double sum = 0.0;
  for (const Paired& layer : layers_) sum += separation(layer);
  return sum / static_cast<double>(layers_.size());
}

double SampleComparer::spectrum_separation(Turned data, Turned generated) const {
  std::vector<double> first(kSpectrumBins), second(kSpectrumBins);
  const auto add = [](const ShowerSample& sample, Turned turned, std::vector<double>& stayed,
                      std::vector<double>& gone) {
    for (std::size_t i = 0; i < turned.size(); ++i) {
      const SampledShower& shower = sample.showers()[i];
      if (!shower.usable()) continue;
      std::vector<double>& sums = turned[i] != 0 ? gone : stayed;
      for (std::size_t bin = 0; bin < kSpectrumBins; ++bin) sums[bin] += shower.found.spectrum[bin];
    }
  };
  add(data_, data, first, second);
  add(generated_, generated, second, first);
  return separation_power(first, second);
}

std::vector<Value> SampleComparer::distances(Times data, Times generated) const {
  std::vector<Value> found;
  for (const Paired& observable : observables_) {
    const auto of_data = picked(data, observable.data);
    const auto of_generated = picked(generated, observable.generated);
    for (const DistanceRule& rule : distance_rules()) {
      found.emplace_back((*observable.values.*rule.of)(of_data, of_generated));
    }
  }
  return found;
}

std::vector<Value> SampleComparer::values(Times data, Times generated) const {
  std::vector<Value> found;
  const ShowerStatistics of_data = data_.statistics(data);
  const ShowerStatistics of_generated = generated_.statistics(generated);
  const Comparison comparison = compare(of_data, of_generated);
  for (const FigureRule& rule : figure_rules()) {
    found.push_back(rule.of({of_data, of_generated, comparison}));
  }
  found.push_back(mean_of_layers([&](const Paired& layer) {
    return layer.values->separation(picked(data, layer.data), picked(generated, layer.generated));
  }));
  const Value copies = neighbours_.copies(generated);
  found.push_back(copies ? Value(100.0 * *copies) : copies);
  found.push_back(neighbours_.nearest(data, generated));
  found.push_back(neighbours_.diversity(data, generated));
  found.push_back(neighbours_.similarity(data, generated));
  found.emplace_back(frechet_distance(data_features_, data, generated_features_, generated));
  found.emplace_back(
      kernel_->distance(picked(data, kernel_data_), picked(generated, kernel_generated_), same_));
  found.push_back(classified_ == nullptr ? Value() : classified_->area(data, generated));
  const auto distances_found = distances(data, generated);
  found.insert(found.end(), distances_found.begin(), distances_found.end());
  return found;
}

std::vector<Value> SampleComparer::separations_of_turned(Turned data, Turned generated) const {
  const auto separation = [&](const Paired& paired) {
    return paired.values->separation_of_turned(picked(data, paired.data),
                                               picked(generated, paired.generated));
  };
  std::vector<Value> found;
  for (const FigureRule& rule : figure_rules()) {
    const bool of_spectrum = std::string_view(rule.name) == "cell_spectrum";
    found.push_back(of_spectrum ? Value(spectrum_separation(data, generated)) : Value());
  }
  for (const FigureText& text : kOfWholeSamples) {
    const bool of_layers = std::string_view(text.name) == "layer_separation";
    found.push_back(of_layers ? Value(mean_of_layers(separation)) : Value());
  }
  for (const Paired& observable : observables_) {
    for (const DistanceRule& rule : distance_rules()) {
      const bool separates = rule.of == &PairedValues::separation;
      found.push_back(separates ? Value(separation(observable)) : Value());
    }
  }
  return found;
}

}  // namespace troupe::model

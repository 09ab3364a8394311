#include "model/physics/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "model/physics/shower_group.h"
#include "runtime/base/error.h"

namespace troupe::model {
namespace {

// Bounds below which a difference is nothing to be told, however well it is known.
constexpr double kEnergyShare = 0.05;
// Some twenty figures are looked at. Where errors are normal, 95 of 100 equal samples stay within
// a figure's floor, and 99.7 of 100 within one and a half times as much.
constexpr double kSure = 1.5;
// Standard errors of a difference that so many stay within.
constexpr double kErrors = 3.0;
constexpr double kPower = 0.07, kPowerResponse = 0.25;
constexpr double kDisorder = 20.0, kOrderedShare = 1.0 / 3.0;  // %, of it when sorted
constexpr double kCopies = 5.0;                                // %
constexpr double kDiversity = 0.8, kSameness = 0.5;
constexpr double kResponse = 0.05, kEnergyDependence = 5.0;  // share, %
constexpr double kTooWide = 1.2;
constexpr double kProfile = 10.0;  // %
constexpr double kDepth = 0.5;     // layers
constexpr double kHits = 0.1;
constexpr double kSpectrum = 0.02;
constexpr double kCorrelation = 0.1;
constexpr double kSpread = 1.25;
constexpr double kArea = 0.1;  // of a classifier from that of equal samples
// Showers of the data with energy. Figures of equal samples of fewer are often beyond their floors.
constexpr std::int64_t kFewestShowers = 5;

class Finder {
 public:
  explicit Finder(std::span<const Figure> figures) : figures_(figures) {}

  void tell(const char* kind, std::string text) { faults_.push_back({kind, std::move(text)}); }

  // The figure where it is surely beyond its floor, and `bound` from its ideal; else null.
  const Figure* beyond(const char* name, double bound) const {
    const Figure* figure = find_figure(figures_, name);
    CHECK(figure != nullptr, "no such figure");
    const bool told =
        figure->value && figure->distance() > std::max(bound, kSure * figure->floor_95);
    return told ? figure : nullptr;
  }
  // The same of a ratio that is above `times` or below 1 / `times`.
  const Figure* beyond_times(const char* name, double times) const {
    const Figure* figure = beyond(name, 0.0);
    if (figure == nullptr) return nullptr;
    return *figure->value > times || *figure->value < 1.0 / times ? figure : nullptr;
  }
  double value(const char* name) const {
    const Figure* figure = find_figure(figures_, name);
    CHECK(figure != nullptr, "no such figure");
    return figure->value.value_or(0.0);
  }

  std::vector<Fault> take() { return std::move(faults_); }

 private:
  std::span<const Figure> figures_;
  std::vector<Fault> faults_;
};

std::string with_floor(const Figure& figure) {
  return fmt::format("{:.3g}{}, data against data {:.2g}", *figure.value,
                     figure.unit.empty() ? "" : " " + figure.unit, figure.floor);
}

// A mean, and the square of its standard error: without end where there are not two showers.
struct Mean {
  double value = 0.0, squared_error = 0.0;
};

Mean mean_energy(const ShowerSample& sample) {
  SpreadSum sum;
  for (const SampledShower& shower : sample.showers()) {
    if (std::isfinite(shower.energy_gev)) sum.add(shower.energy_gev);
  }
  const Spread spread = sum.spread();
  const double known = spread.deviation * spread.deviation / (sum.count() - 1.0);
  return {spread.mean, sum.count() < 2.0 ? std::numeric_limits<double>::infinity() : known};
}

std::int64_t showers_with_energy(const ShowerGroup& group) {
  return group.events() - group.empty_events();
}

// Showers of a sample that cannot be used, and why.
struct Unusable {
  std::uint64_t cells = 0, energy = 0;  // the primary's
};

Unusable unusable(const ShowerSample& sample) {
  Unusable found;
  for (const SampledShower& shower : sample.showers()) {
    if (!shower.found.valid) {
      ++found.cells;
    } else if (!shower.usable()) {
      ++found.energy;
    }
  }
  return found;
}

std::string unusable_text(std::uint64_t count, std::uint64_t all, const char* why) {
  return fmt::format("{} of {} showers have {}; they are left out", count, all, why);
}

constexpr const char* kNoShower = "cells or a primary energy that no shower has";
constexpr const char* kBadCells = "cells that are not finite, negative or too large";
constexpr const char* kBadEnergy = "a primary energy outside of 0.1 to 1e6 GeV";

double share(std::uint64_t part, std::uint64_t all) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(all, 1));
}

// A generator that is asked for the energies of the data has no part in those that cannot be used.
void find_unusable(Finder& finder, const ShowerSample& data, const ShowerSample& generated,
                   std::uint64_t left_out) {
  const Unusable of_data = unusable(data), found = unusable(generated);
  const std::uint64_t all = generated.showers().size() + left_out;
  if (all == 0) finder.tell("empty", "there are no showers");
  if (left_out > 0) finder.tell("left_out", unusable_text(left_out, all, kNoShower));
  if (found.cells > 0) finder.tell("invalid", unusable_text(found.cells, all, kBadCells));
  if (share(found.energy, all) > share(of_data.energy, data.showers().size())) {
    finder.tell("energies", unusable_text(found.energy, all, kBadEnergy));
  }
}

void find_conditions(Finder& finder, const ShowerSample& data, const ShowerSample& generated) {
  const Mean wanted = mean_energy(data), found = mean_energy(generated);
  const double difference = std::abs(found.value - wanted.value);
  const double error = std::sqrt(wanted.squared_error + found.squared_error);
  if (difference > kEnergyShare * wanted.value && difference > kErrors * error) {
    finder.tell("conditions",
                fmt::format("the primaries have other energies: {:.4g} GeV on average, the data's "
                            "{:.4g}; all figures tell of that too",
                            found.value, wanted.value));
  }
}

void find_empty(Finder& finder, const ShowerGroup& data, const ShowerGroup& generated,
                std::uint64_t all) {
  const auto empty_share = [](const ShowerGroup& group) {
    return share(static_cast<std::uint64_t>(group.empty_events()),
                 static_cast<std::uint64_t>(group.events()));
  };
  const std::int64_t empty = generated.empty_events();
  if (empty_share(generated) > empty_share(data) &&
      (empty > 1 || showers_with_energy(generated) == 0)) {
    finder.tell("empty", fmt::format("{} of {} showers have no energy", empty, all));
  }
}

// Those that explain others.
void find_causes(Finder& finder) {
  const Figure* power = finder.beyond("cell_spread", kPower);
  const Figure* response = finder.beyond("response", kPowerResponse);
  if (power != nullptr && response != nullptr) {
    finder.tell("power", fmt::format("the cells look raised to a power of {:.2f}: their logarithms "
                                     "are spread {:.3g} times as wide, and the response is {:.3g} "
                                     "times the data's; is the power of both the same?",
                                     *power->value, *power->value, *response->value));
  }
  const Figure* layers = finder.beyond("longitudinal", kDisorder);
  const double sorted = finder.value("sorted_layers");
  if (layers != nullptr && sorted < kOrderedShare * *layers->value) {
    finder.tell("layers", fmt::format("the layers are out of order: {:.3g} % of the energy lies in "
                                      "wrong layers, and {:.2g} % where the layers of each shower "
                                      "are sorted",
                                      *layers->value, sorted));
  }
  if (const Figure* copies = finder.beyond("copies", kCopies)) {
    finder.tell("copies",
                fmt::format("{:.3g} % of the showers repeat one of the data", *copies->value));
  }
  const Figure* diversity = finder.beyond("diversity", 1.0 - kDiversity);
  if (diversity != nullptr && *diversity->value < kDiversity) {
    const char* what = *diversity->value < kSameness ? "all alike" : "too much alike";
    finder.tell("alike", fmt::format("the showers are {}: the nearest other one is {:.2g} times as "
                                     "far as in the data",
                                     what, *diversity->value));
  }
}

void find_response(Finder& finder) {
  double off = 0.0;     // %, of the mean
  double factor = 1.0;  // of what is in bins by chance, which grows with the response
  if (const Figure* response = finder.beyond("response", kResponse)) {
    const double error = *response->value - 1.0;
    off = 100.0 * std::abs(error);
    factor = std::max(*response->value, 1.0);
    finder.tell("response",
                fmt::format("the response is {:.3g} % too {}", off, error > 0.0 ? "high" : "low"));
  }
  // A wrong mean is an error in every bin.
  const Figure* trend = finder.beyond("response_energy", kEnergyDependence);
  if (trend != nullptr &&
      *trend->value - off > std::max(kEnergyDependence, factor * kSure * trend->floor_95)) {
    finder.tell("response_energy", fmt::format("the response depends otherwise on the energy: in "
                                               "bins of energy it is off by {}",
                                               with_floor(*trend)));
  }
  if (const Figure* width = finder.beyond_times("response_width", kTooWide)) {
    const double times = *width->value;
    finder.tell(
        "response_width",
        times > 1.0
            ? fmt::format("the response is {:.2g} times too wide", times)
            : fmt::format("the response is too narrow: {:.2g} times the data's width", times));
  }
}

void find_shape(Finder& finder) {
  if (const Figure* depth = finder.beyond("depth", kDepth)) {
    finder.tell("depth",
                fmt::format("the showers lie {:.2g} layers too {}", std::abs(*depth->value),
                            *depth->value > 0.0 ? "deep" : "far in front"));
  }
  if (const Figure* profile = finder.beyond("longitudinal", kProfile)) {
    finder.tell("longitudinal",
                fmt::format("the longitudinal profile is off by {}", with_floor(*profile)));
  }
  for (const char* name : {"transverse_x", "transverse_y"}) {
    const Figure* profile = finder.beyond(name, kProfile);
    if (profile == nullptr) continue;
    finder.tell(name, fmt::format("the transverse profile along {} is off by {}", name + 11,
                                  with_floor(*profile)));
  }
}

void find_cells(Finder& finder) {
  if (const Figure* hits = finder.beyond("hits", kHits)) {
    const double error = *hits->value - 1.0;
    finder.tell("hits", fmt::format("there are {:.2g} % too {} hits", 100.0 * std::abs(error),
                                    error > 0.0 ? "many" : "few"));
  }
  if (const Figure* spectrum = finder.beyond("cell_spectrum", kSpectrum)) {
    finder.tell("cells", fmt::format("the energies of cells are distributed otherwise: separation "
                                     "{}",
                                     with_floor(*spectrum)));
  }
  for (const auto& [name, what] : {std::pair("layer_correlations", "layers"),
                                   std::pair("moment_correlations", "moments, hits and energy")}) {
    const Figure* figure = finder.beyond(name, kCorrelation);
    if (figure == nullptr) continue;
    finder.tell(name,
                fmt::format("the correlations of {} are off by {}", what, with_floor(*figure)));
  }
}

void find_variation(Finder& finder) {
  for (const auto& [name, what] :
       {std::pair("depth_spread", "depth"), std::pair("length_spread", "length"),
        std::pair("width_spread", "width"), std::pair("hits_width", "their number of hits")}) {
    const Figure* figure = finder.beyond_times(name, kSpread);
    if (figure == nullptr) continue;
    finder.tell(name, fmt::format("the showers vary too {} in {}: {:.2g} times as much as the "
                                  "data's",
                                  *figure->value > 1.0 ? "much" : "little", what, *figure->value));
  }
}

void find_classifier(Finder& finder) {
  // Less than the ideal is no finding: a classifier that had learned something would be above it.
  const Figure* area = finder.beyond("auc", kArea);
  if (area != nullptr && *area->value > area->ideal) {
    finder.tell("classifier", fmt::format("a classifier tells them from the data: AUC {:.3g}, data "
                                          "against data 0.5 +- {:.2g}",
                                          *area->value, area->floor));
  }
}

}  // namespace

std::vector<Fault> find_faults(const ShowerSample& data, const ShowerSample& generated,
                               std::span<const Figure> figures, std::uint64_t left_out) {
  Finder finder(figures);
  const ShowerStatistics of_data = data.statistics(), of_generated = generated.statistics();
  find_unusable(finder, data, generated, left_out);
  find_empty(finder, of_data.all(), of_generated.all(), generated.showers().size());
  // The figures of showers without energy tell nothing else, and nor do those against few.
  if (showers_with_energy(of_generated.all()) == 0) return finder.take();
  if (showers_with_energy(of_data.all()) < kFewestShowers) return finder.take();
  find_conditions(finder, data, generated);
  find_causes(finder);
  find_response(finder);
  find_shape(finder);
  find_cells(finder);
  find_variation(finder);
  find_classifier(finder);
  return finder.take();
}

std::vector<Fault> find_remarks(const ShowerSample& data, std::uint64_t left_out) {
  Finder finder({});
  const Unusable found = unusable(data);
  const std::uint64_t all = data.showers().size() + left_out;
  const auto tell = [&](std::uint64_t count, const char* why) {
    if (count > 0) finder.tell("data", "the data: " + unusable_text(count, all, why));
  };
  tell(left_out, kNoShower);
  tell(found.cells, kBadCells);
  tell(found.energy, kBadEnergy);
  const ShowerStatistics statistics = data.statistics();
  const std::int64_t empty = statistics.all().empty_events();
  const std::int64_t filled = showers_with_energy(statistics.all());
  if (empty > 0) {
    finder.tell("data", fmt::format("the data: {} of {} showers have no energy", empty, all));
  }
  if (filled < kFewestShowers) {
    finder.tell("data", fmt::format("the data: {} showers have energy; against fewer than {} "
                                    "nothing is told but showers that are none",
                                    filled, kFewestShowers));
  }
  return finder.take();
}

std::string verdict_line(std::span<const Fault> faults) {
  if (faults.empty()) return "No fault was found.";
  return fmt::format("{} {} found.", faults.size(),
                     faults.size() == 1 ? "fault was" : "faults were");
}

}  // namespace troupe::model

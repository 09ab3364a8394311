// Showers of the built-in generator beside figures of the Geant4 electrons that it is fitted to
// (docs/physics.md): 2,066 of 10 to 100 GeV, uniform, in 25 x 25 x 25 cells.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "pipeline/data/shower_generator.h"

namespace troupe::pipeline {
namespace {

constexpr std::size_t kFitLayers = 25;
constexpr std::size_t kMiddle = 12;

// Means over the showers of a range of energies.
struct Geant4Figures {
  double from_gev, to_gev;
  double response, width;                // of cells' energy / primary energy
  std::array<double, kFitLayers> layer;  // share of the cells' energy, in thousandths
  // The same by the distance from the middle in cells, along x and y alike.
  std::array<double, kMiddle + 1> distance;
  std::array<double, kFitLayers> spread;  // deviation / mean of a layer's energy / primary energy
  double hits;                            // cells above 3e-4 GeV
};

constexpr std::array<Geant4Figures, 3> kGeant4{
    {{10,
      30,
      0.02118,
      0.00121,
      {2.58,  7.49,  17.03, 30.41, 45.84, 60.19, 72.43, 80.95, 83.79, 83.76, 80.23, 73.61, 67.84,
       61.01, 53.77, 47.77, 40.39, 29.30, 20.86, 14.64, 9.71,  6.70,  4.70,  3.19,  1.80},
      {536.44, 258.15, 91.99, 44.35, 24.48, 14.83, 9.74, 6.60, 4.61, 3.41, 2.34, 1.75, 1.31},
      {0.857, 0.746, 0.580, 0.490, 0.425, 0.351, 0.299, 0.264, 0.245, 0.223, 0.210, 0.213, 0.225,
       0.238, 0.272, 0.316, 0.336, 0.415, 0.481, 0.585, 0.708, 0.748, 0.845, 0.998, 1.264},
      264.0},
     {30,
      60,
      0.02049,
      0.00109,
      {1.38,  4.20,  10.54, 20.43, 32.78, 46.28, 59.03, 69.53, 77.27, 81.25, 82.05, 79.67, 75.73,
       70.08, 62.97, 56.63, 49.79, 37.72, 27.52, 19.64, 13.77, 9.21,  6.19,  4.11,  2.22},
      {542.36, 255.41, 91.15, 43.59, 24.03, 14.65, 9.38, 6.35, 4.45, 3.20, 2.34, 1.74, 1.34},
      {0.800, 0.615, 0.532, 0.463, 0.398, 0.359, 0.317, 0.266, 0.234, 0.203, 0.179, 0.163, 0.158,
       0.169, 0.193, 0.214, 0.242, 0.305, 0.365, 0.437, 0.498, 0.566, 0.628, 0.689, 0.855},
      453.4},
     {60,
      100,
      0.01989,
      0.00109,
      {0.88,  2.77,  6.99,  14.23, 24.62, 36.29, 48.81, 60.70, 69.85, 77.03, 80.77, 81.20, 79.27,
       75.37, 70.16, 64.13, 57.73, 44.95, 33.97, 24.44, 17.16, 11.90, 8.20,  5.63,  2.96},
      {545.57, 255.06, 90.00, 42.97, 23.61, 14.39, 9.19, 6.24, 4.34, 3.18, 2.34, 1.77, 1.33},
      {0.746, 0.645, 0.567, 0.490, 0.432, 0.376, 0.331, 0.284, 0.244, 0.211, 0.179, 0.155, 0.142,
       0.139, 0.145, 0.162, 0.190, 0.248, 0.307, 0.364, 0.428, 0.461, 0.519, 0.584, 0.617},
      651.0}}};

// Pearson's r of the shares (layer energy / primary energy) of these layers at 10 to 100 GeV.
constexpr std::array<std::size_t, 7> kLayers{2, 5, 8, 11, 14, 17, 20};
constexpr std::array<double, 21> kCorrelations{0.72,  0.42,  -0.18, -0.55, -0.55, -0.44, 0.65,
                                               -0.04, -0.61, -0.72, -0.60, 0.26,  -0.47, -0.73,
                                               -0.68, 0.15,  -0.25, -0.37, 0.49,  0.27,  0.66};

struct FitMoments {
  double sum = 0, squares = 0;
  int count = 0;
  void add(double value) {
    sum += value;
    squares += value * value;
    ++count;
  }
  double mean() const { return sum / count; }
  double deviation() const { return std::sqrt(squares / count - mean() * mean()); }
};

struct FoundFigures {
  FitMoments response, hits;
  std::array<FitMoments, kFitLayers> share;
  std::array<double, kFitLayers> layer{};
  std::array<double, kMiddle + 1> distance{};
};

struct FoundShowers {
  std::array<FoundFigures, kGeant4.size()> ranges;
  std::vector<std::array<double, kFitLayers>> shares;
};

std::size_t distance(std::size_t cell) { return cell > kMiddle ? cell - kMiddle : kMiddle - cell; }

void add_shower(double energy, const std::vector<float>& cells, FoundShowers& found) {
  std::size_t range = 0;
  while (energy > kGeant4[range].to_gev) ++range;
  FoundFigures& figures = found.ranges[range];
  std::array<double, kFitLayers> layer{};
  double hits = 0, all = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double gev = static_cast<double>(cells[i]);
    layer[i % kFitLayers] += gev;
    figures.distance[distance(i / kFitLayers % kFitLayers)] += gev;
    figures.distance[distance(i / kFitLayers / kFitLayers)] += gev;
    all += gev;
    if (gev > 3e-4) ++hits;
  }
  figures.response.add(all / energy);
  figures.hits.add(hits);
  for (std::size_t i = 0; i < kFitLayers; ++i) {
    figures.layer[i] += layer[i];
    layer[i] /= energy;
    figures.share[i].add(layer[i]);
  }
  found.shares.push_back(layer);
}

const FoundShowers& found() {
  static const FoundShowers all = [] {
    const auto generator = ShowerGenerator::create({.detector = DetectorKind::kFixed25,
                                                    .seed = 4,
                                                    .min_energy_gev = 10,
                                                    .max_energy_gev = 100});
    FoundShowers made;
    std::vector<float> cells(generator.value().detector().cells());
    for (std::uint64_t event = 0; event < 3000; ++event) {
      const Primary primary = generator.value().generate(event, cells);
      add_shower(static_cast<double>(primary.energy_gev), cells, made);
    }
    return made;
  }();
  return all;
}

// Energy in other places, in per cent of all of it: half the sum of the shares' differences.
template <std::size_t kSize>
double misplaced(const std::array<double, kSize>& energies, const std::array<double, kSize>& data) {
  double sum = 0, expected = 0, difference = 0;
  for (const double each : energies) sum += each;
  for (const double each : data) expected += each;
  for (std::size_t i = 0; i < kSize; ++i) {
    difference += std::abs(energies[i] / sum - data[i] / expected);
  }
  return 50.0 * difference;
}

TEST(ShowerFit, ProfilesAreGeant4sWithinTheSpreadOfTheData) {
  for (std::size_t i = 0; i < kGeant4.size(); ++i) {
    const FoundFigures& range = found().ranges[i];
    EXPECT_LT(misplaced(range.layer, kGeant4[i].layer), 1.5) << kGeant4[i].from_gev << " GeV";
    EXPECT_LT(misplaced(range.distance, kGeant4[i].distance), 1.5) << kGeant4[i].from_gev << " GeV";
  }
}

TEST(ShowerFit, ResponseAndItsWidthAreGeant4s) {
  for (std::size_t i = 0; i < kGeant4.size(); ++i) {
    const FoundFigures& range = found().ranges[i];
    EXPECT_NEAR(range.response.mean() / kGeant4[i].response, 1.0, 0.01) << i;
    EXPECT_NEAR(range.response.deviation() / kGeant4[i].width, 1.0, 0.15) << i;
    EXPECT_NEAR(range.hits.mean() / kGeant4[i].hits, 1.0, 0.05) << i;
  }
}

TEST(ShowerFit, LayersFluctuateAsMuchAsGeant4s) {
  for (std::size_t i = 0; i < kGeant4.size(); ++i) {
    for (std::size_t layer = 0; layer < kFitLayers; ++layer) {
      const FitMoments& share = found().ranges[i].share[layer];
      const double ratio = share.deviation() / share.mean() / kGeant4[i].spread[layer];
      // Few electrons reach the first and the last layers with much energy.
      const double bound = layer < 3 ? 0.5 : layer > 19 ? 0.35 : 0.2;
      EXPECT_NEAR(ratio, 1.0, bound) << "layer " << layer << ", " << kGeant4[i].from_gev << " GeV";
    }
  }
}

double correlation(std::size_t a, std::size_t b) {
  FitMoments of_a, of_b, product;
  for (const auto& shares : found().shares) {
    of_a.add(shares[a]);
    of_b.add(shares[b]);
    product.add(shares[a] * shares[b]);
  }
  const double covariance = product.mean() - of_a.mean() * of_b.mean();
  return covariance / (of_a.deviation() * of_b.deviation());
}

TEST(ShowerFit, LayersAreCorrelatedAsGeant4s) {
  double squares = 0;
  std::size_t pair = 0;
  for (std::size_t a = 0; a < kLayers.size(); ++a) {
    for (std::size_t b = a + 1; b < kLayers.size(); ++b, ++pair) {
      const double difference = correlation(kLayers[a], kLayers[b]) - kCorrelations[pair];
      EXPECT_LT(std::abs(difference), 0.15) << kLayers[a] << ", " << kLayers[b];
      squares += difference * difference;
    }
  }
  // Two halves of the data differ by 0.054.
  EXPECT_LT(std::sqrt(squares / static_cast<double>(pair)), 0.07);
}

}  // namespace
}  // namespace troupe::pipeline

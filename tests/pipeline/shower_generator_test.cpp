#include "pipeline/data/shower_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <vector>

#include "pipeline/data/shower_file.h"
#include "runtime/base/hash.h"

namespace troupe::pipeline {
namespace {

constexpr double kRightAngle = std::numbers::pi / 2;
constexpr std::array<double, 7> kEnergies{10, 50, 100, 200, 300, 400, 500};

ShowerGenerator generator_of(const ShowerOptions& options) {
  auto generator = ShowerGenerator::create(options);
  CHECK(generator.ok(), generator.ok() ? "" : generator.error().message);
  return std::move(generator).value();
}

// Mean ECAL sum in GeV of an electron in the LCD calorimeter, E in GeV: fit of the 3DGAN authors to
// their Geant4, of which the showers that the generator is fitted to have 0.97 to 0.99 at 10 to
// 100 GeV.
double reference_response(double energy) {
  const double x = energy / 100;
  return 0.99 * x * (0.0018 * x * x * x * x - 0.023 * x * x * x + 0.11 * x * x - 0.28 * x + 2.21);
}

struct ShowerMeans {
  double sum_gev = 0;
  std::vector<double> layer_gev;  // visible
};

ShowerMeans means(DetectorKind kind, double energy, int events) {
  const ShowerGenerator generator = generator_of(
      {.detector = kind, .seed = 11, .min_energy_gev = energy, .max_energy_gev = energy});
  const Detector& detector = generator.detector();
  std::vector<float> cells(detector.cells());
  ShowerMeans result{0, std::vector<double>(detector.shape[2], 0)};
  for (int event = 0; event < events; ++event) {
    generator.generate(static_cast<std::uint64_t>(event), cells);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const double gev = static_cast<double>(cells[i]) / detector.units_per_gev / events;
      result.sum_gev += gev;
      result.layer_gev[i % detector.shape[2]] += gev;
    }
  }
  return result;
}

// Depth of the maximum in X0: a parabola through the largest energy density per X0 and its
// neighbours. Only for the layers of equal depth, where the maximum always is.
double depth_of_maximum(const Detector& detector, const ShowerMeans& shower) {
  const auto top = std::max_element(shower.layer_gev.begin(), shower.layer_gev.begin() + 17);
  const double before = *(top - 1);
  const double after = *(top + 1);
  const double shift = 0.5 * (before - after) / (before - 2 * *top + after);
  const auto layer = static_cast<double>(top - shower.layer_gev.begin());
  return (layer + 0.5 + shift) * detector.layers[0].depth_x0;
}

TEST(ShowerGenerator, MeanResponseIsThePublishedOneWithinTwoPercentAtAllSevenEnergies) {
  for (const double energy : kEnergies) {
    const ShowerMeans shower = means(DetectorKind::kFixed25, energy, 400);
    EXPECT_NEAR(shower.sum_gev / reference_response(energy), 1.0, 0.02) << energy << " GeV";
  }
}

TEST(ShowerGenerator, SmallDetectorsHaveTheSameResponse) {
  for (const DetectorKind kind : {DetectorKind::kFixed12, DetectorKind::kFixed4}) {
    for (const double energy : {10.0, 100.0, 500.0}) {
      const ShowerMeans shower = means(kind, energy, 400);
      EXPECT_NEAR(shower.sum_gev / reference_response(energy), 1.0, 0.03)
          << detector(kind).name << ", " << energy << " GeV";
    }
  }
}

TEST(ShowerGenerator, MaximumLiesAtTheLogarithmOfTheEnergy) {
  const Detector& lcd = detector(DetectorKind::kFixed25);
  std::map<double, double> depths;
  for (const double energy : {10.0, 100.0, 500.0}) {
    depths[energy] = depth_of_maximum(lcd, means(DetectorKind::kFixed25, energy, 300));
    // ln(E / Ec) - 0.812, the maximum of the average profile of Grindhammer and Peters. A layer's
    // silicon lies half a layer behind its middle, to which depths are counted.
    EXPECT_NEAR(depths[energy] + 0.35, std::log(energy / 8.72e-3) - 0.812, 0.75)
        << energy << " GeV";
  }
  const double growth = (depths[500] - depths[10]) / std::log(50.0);
  // 1.05 of Geant4's from 15 to 90 GeV.
  EXPECT_NEAR(growth, 1.05, 0.2);
}

TEST(ShowerGenerator, EnergyResolutionIsThatOfASamplingCalorimeter) {
  const ShowerGenerator generator = generator_of({.min_energy_gev = 10, .max_energy_gev = 10});
  std::vector<float> cells(generator.detector().cells());
  double sum = 0, squares = 0;
  constexpr int kEvents = 800;
  for (std::uint64_t event = 0; event < kEvents; ++event) {
    generator.generate(event, cells);
    double ecal = 0;
    for (const float cell : cells) ecal += static_cast<double>(cell);
    sum += ecal;
    squares += ecal * ecal;
  }
  const double mean = sum / kEvents;
  const double resolution = std::sqrt(squares / kEvents - mean * mean) / mean;
  // 5.4 % of 42 of Geant4's at 10 to 12 GeV.
  EXPECT_GT(resolution, 0.050);
  EXPECT_LT(resolution, 0.070);
}

// Centre of the core of a profile: the mean within two cells of its largest cell.
double core_of(const std::vector<double>& profile) {
  const auto top = std::max_element(profile.begin() + 2, profile.end() - 2);
  double sum = 0, weighted = 0;
  for (auto cell = top - 2; cell <= top + 2; ++cell) {
    sum += *cell;
    weighted += *cell * (static_cast<double>(cell - profile.begin()) + 0.5);
  }
  return weighted / sum;
}

TEST(ShowerGenerator, TiltedAxisDriftsAcrossYAndStaysCentredInX) {
  const double sixty = std::numbers::pi / 3;
  const ShowerGenerator generator = generator_of({.detector = DetectorKind::kAngle51,
                                                  .min_energy_gev = 400,
                                                  .max_energy_gev = 400,
                                                  .min_angle_rad = sixty,
                                                  .max_angle_rad = sixty});
  const Detector& d = generator.detector();
  std::vector<float> cells(d.cells());
  const std::vector<std::vector<double>> none(25, std::vector<double>(51, 0));
  std::vector<std::vector<double>> x = none, y = none;
  for (std::uint64_t event = 0; event < 60; ++event) {
    generator.generate(event, cells);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      x[i % 25][i / 25 / 51] += static_cast<double>(cells[i]);
      y[i % 25][i / 25 % 51] += static_cast<double>(cells[i]);
    }
  }
  // From the middle of layer 4 to that of layer 16 there are 12 layers of 5.59 mm.
  const double drift = (core_of(y[16]) - core_of(y[4])) * d.cell_mm;
  EXPECT_NEAR(drift, 12 * 0.699 * 8.00 / std::tan(sixty), 3.0);
  for (const int layer : {5, 10, 15, 20}) EXPECT_NEAR(core_of(x[layer]), 25.5, 0.1);
}

TEST(ShowerGenerator, MeasuredAngleFollowsTheTrueOne) {
  for (const double theta : {1.1, kRightAngle, 2.0}) {
    const ShowerGenerator generator = generator_of({.detector = DetectorKind::kAngle51,
                                                    .min_energy_gev = 200,
                                                    .max_energy_gev = 200,
                                                    .min_angle_rad = theta,
                                                    .max_angle_rad = theta});
    std::vector<float> cells(generator.detector().cells());
    double sum = 0;
    for (std::uint64_t event = 0; event < 40; ++event) {
      generator.generate(event, cells);
      sum += measure_angle(cells, generator.detector().shape);
    }
    // Cells are 5.1 mm wide and layers 5.6 and 8.0 mm deep, which magnifies tilts in cell units.
    const double tilt = kRightAngle - theta;
    EXPECT_NEAR(kRightAngle - sum / 40, tilt * 1.15, 0.05 + 0.1 * std::fabs(tilt)) << theta;
  }
}

TEST(ShowerGenerator, EventDependsNeitherOnThreadsNorOnHowManyAreMade) {
  for (const DetectorKind kind : {DetectorKind::kFixed12, DetectorKind::kAngle51}) {
    const ShowerGenerator generator = generator_of({.detector = kind, .seed = 5});
    const std::size_t size = generator.detector().cells();
    std::vector<float> one(12 * size), three(12 * size), alone(size);
    std::vector<Primary> primaries_one(12), primaries_three(12);
    runtime::ThreadTeam team_of_one(1), team_of_three(3);
    generator.generate(100, primaries_one, one, team_of_one);
    generator.generate(100, primaries_three, three, team_of_three);
    EXPECT_EQ(one, three);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(primaries_one[i].energy_gev, primaries_three[i].energy_gev);
      EXPECT_EQ(primaries_one[i].theta_rad, primaries_three[i].theta_rad);
    }
    const Primary last = generator.generate(111, alone);
    EXPECT_EQ(last.energy_gev, primaries_one[11].energy_gev);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), one.end() - static_cast<long>(size)));
  }
}

TEST(ShowerGenerator, SeedsAndEventsDiffer) {
  const ShowerGenerator first = generator_of({.detector = DetectorKind::kFixed12, .seed = 1});
  const ShowerGenerator second = generator_of({.detector = DetectorKind::kFixed12, .seed = 2});
  std::vector<float> a(first.detector().cells()), b(a), c(a);
  first.generate(0, a);
  first.generate(1, b);
  second.generate(0, c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}

// A change of these bits is a change of the generator: raise kShowerVersion with it.
TEST(ShowerGenerator, BitsAreThoseOfVersionTwo) {
  std::map<DetectorKind, std::string> found;
  for (const DetectorKind kind : kDetectorKinds) {
    const ShowerGenerator generator = generator_of({.detector = kind, .seed = 2024});
    std::vector<float> cells(generator.detector().cells());
    runtime::Hasher hasher;
    for (std::uint64_t event = 0; event < 5; ++event) {
      const Primary primary = generator.generate(event, cells);
      hasher.add_value(primary.energy_gev);
      hasher.add_value(primary.theta_rad);
      hasher.add(std::as_bytes(std::span<const float>(cells)));
    }
    found[kind] = hasher.digest().text();
  }
  EXPECT_EQ(kShowerVersion, 2u);
  EXPECT_EQ(found[DetectorKind::kFixed25], "b74b452af26a8788cad0708193993fbe");
  EXPECT_EQ(found[DetectorKind::kAngle51], "87e3bb625ca5a62c7b3987dfafe249bd");
  EXPECT_EQ(found[DetectorKind::kFixed12], "24c14a3f6a1edda0d62a59b5756c1034");
  EXPECT_EQ(found[DetectorKind::kFixed4], "02442f60f33a7336ee81e94bfd689711");
}

TEST(ShowerGenerator, CellsAreZeroOrAboveTheThreshold) {
  const ShowerGenerator generator =
      generator_of({.detector = DetectorKind::kFixed25, .threshold_gev = 1e-4});
  std::vector<float> cells(generator.detector().cells());
  generator.generate(3, cells);
  int occupied = 0;
  for (const float cell : cells) {
    ASSERT_TRUE(cell == 0.0f || cell >= 1e-4f);
    occupied += cell > 0;
  }
  EXPECT_GT(occupied, 100);
}

TEST(ShowerGenerator, ImpossibleOptionsAreRefusedWithTheRange) {
  const auto message = [](const ShowerOptions& options) {
    const auto generator = ShowerGenerator::create(options);
    if (generator.ok()) return std::string("accepted");
    EXPECT_EQ(generator.error().kind, runtime::ErrorKind::kUsage);
    return generator.error().message;
  };
  EXPECT_NE(message({.min_energy_gev = 0}).find("1 <= from"), std::string::npos);
  EXPECT_NE(message({.min_energy_gev = 50, .max_energy_gev = 20}).find("50 to 20"),
            std::string::npos);
  EXPECT_NE(message({.max_energy_gev = NAN}).find("nan"), std::string::npos);
  EXPECT_NE(message({.min_angle_rad = 1.2}).find("lcd-fixed-25 takes 1.5708"), std::string::npos);
  EXPECT_NE(message({.threshold_gev = -1}).find("-1 GeV"), std::string::npos);
  EXPECT_EQ(message({.detector = DetectorKind::kAngle51, .min_angle_rad = 60 * kRightAngle / 90}),
            "accepted");
}

TEST(ShowerDetector, IsFoundByNameOrBySchemaAndShape) {
  for (const DetectorKind kind : kDetectorKinds) {
    const Detector& each = detector(kind);
    EXPECT_EQ(find_detector(each.name), kind);
    EXPECT_EQ(find_detector(each.schema, each.shape), kind);
  }
  EXPECT_EQ(find_detector("lcd-fixed-13"), std::nullopt);
  EXPECT_EQ(find_detector(DataSchema::kLcdFixed, {51, 51, 25}), std::nullopt);
}

TEST(ShowerDetector, EveryOneHasTheSameDepthAndALayerForEachCellAlongIt) {
  for (const DetectorKind kind : kDetectorKinds) {
    double depth = 0;
    for (const DetectorLayer& layer : detector(kind).layers) depth += layer.depth_x0;
    EXPECT_NEAR(depth, 22.95, 0.01) << detector(kind).name;
    EXPECT_EQ(detector(kind).layers.size(), detector(kind).shape[2]) << detector(kind).name;
  }
}

}  // namespace
}  // namespace troupe::pipeline

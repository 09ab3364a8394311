// Made showers of photons and pions beside those of electrons.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "pipeline/data/dataset.h"
#include "pipeline/data/shower_dataset.h"
#include "pipeline/data/shower_generator.h"
#include "tests/support/temporary_folder.h"

namespace troupe::pipeline {
namespace {

struct ParticleShower {
  double sum_gev = 0;
  double depth_x0 = 0;   // of its energy, on average
  double in_middle = 0;  // share of its energy in the 3 x 3 middle columns
};

std::vector<ParticleShower> showers_of(Particle particle, double energy, int events) {
  ShowerOptions options{.seed = 5, .min_energy_gev = energy, .max_energy_gev = energy};
  options.particles = {particle};
  const auto generator = ShowerGenerator::create(options);
  CHECK(generator.ok());
  const Detector& detector = generator->detector();
  const auto [nx, ny, depth] = detector.shape;
  std::vector<double> middles;
  double end = 0;
  for (const DetectorLayer& layer : detector.layers) {
    middles.push_back(end + layer.depth_x0 / 2);
    end += layer.depth_x0;
  }
  std::vector<float> cells(detector.cells());
  std::vector<ParticleShower> showers(static_cast<std::size_t>(events));
  for (std::size_t event = 0; event < showers.size(); ++event) {
    EXPECT_EQ(generator->generate(event, cells).particle, particle);
    ParticleShower& shower = showers[event];
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const double gev = static_cast<double>(cells[i]);
      const std::size_t x = i / depth / ny, y = i / depth % ny;
      shower.sum_gev += gev;
      shower.depth_x0 += gev * middles[i % depth];
      const bool middle = x + 1 >= nx / 2 && x <= nx / 2 + 1 && y + 1 >= ny / 2 && y <= ny / 2 + 1;
      if (middle) shower.in_middle += gev;
    }
    if (shower.sum_gev == 0) continue;
    shower.depth_x0 /= shower.sum_gev;
    shower.in_middle /= shower.sum_gev;
  }
  return showers;
}

double mean_of(const std::vector<ParticleShower>& showers, double ParticleShower::*value) {
  double sum = 0;
  for (const ParticleShower& shower : showers) sum += shower.*value;
  return sum / static_cast<double>(showers.size());
}

double deviation_of(const std::vector<ParticleShower>& showers, double ParticleShower::*value) {
  const double mean = mean_of(showers, value);
  double sum = 0;
  for (const ParticleShower& shower : showers) sum += std::pow(shower.*value - mean, 2);
  return std::sqrt(sum / static_cast<double>(showers.size()));
}

// The pair begins 9/7 deeper, and each of it is shorter, since ln E is less by 1/2 on average where
// the energy is: by 0.6 X0 in all.
TEST(ShowerParticles, PhotonsLeaveWhatElectronsDoDeeper) {
  for (const double energy : {10.0, 50.0}) {
    const auto electrons = showers_of(Particle::kElectron, energy, 400);
    const auto photons = showers_of(Particle::kPhoton, energy, 400);
    const double shift =
        mean_of(photons, &ParticleShower::depth_x0) - mean_of(electrons, &ParticleShower::depth_x0);
    EXPECT_GT(shift, 0.3) << energy;
    EXPECT_LT(shift, 1.1) << energy;
    EXPECT_NEAR(
        mean_of(photons, &ParticleShower::sum_gev) / mean_of(electrons, &ParticleShower::sum_gev),
        1.0, 0.03)
        << energy;
    EXPECT_GT(deviation_of(photons, &ParticleShower::depth_x0),
              deviation_of(electrons, &ParticleShower::depth_x0))
        << energy;
  }
}

// 22.95 X0 are 0.71 interaction lengths, of which exp(-0.71) = 0.49 come through.
TEST(ShowerParticles, HalfOfThePionsCrossTheDetectorAsTracksAndOthersVaryWidely) {
  constexpr double kTracksEnd = 0.02;  // GeV; 25 pieces of silicon see 0.005
  auto pions = showers_of(Particle::kPion, 50.0, 600);
  const auto split = std::partition(pions.begin(), pions.end(), [](const ParticleShower& shower) {
    return shower.sum_gev < kTracksEnd;
  });
  const std::vector<ParticleShower> tracks(pions.begin(), split), hadrons(split, pions.end());
  EXPECT_NEAR(static_cast<double>(tracks.size()) / 600.0, 0.52, 0.06);
  EXPECT_NEAR(mean_of(tracks, &ParticleShower::sum_gev), 25 * 1.94e-4, 8e-4);
  EXPECT_GT(mean_of(tracks, &ParticleShower::in_middle), 0.95);
  const auto electrons = showers_of(Particle::kElectron, 50.0, 200);
  EXPECT_LT(mean_of(hadrons, &ParticleShower::sum_gev),
            0.7 * mean_of(electrons, &ParticleShower::sum_gev));
  EXPECT_GT(
      deviation_of(hadrons, &ParticleShower::sum_gev) / mean_of(hadrons, &ParticleShower::sum_gev),
      5 * deviation_of(electrons, &ParticleShower::sum_gev) /
          mean_of(electrons, &ParticleShower::sum_gev));
}

// The numbers of particles, read as if they were energies.
TEST(ShowerParticles, AreDrawnAnewAndToldByTheFile) {
  const TemporaryFolder folder;
  runtime::ThreadTeam team(1);
  for (const auto& [kind, part, column] : {std::tuple(DetectorKind::kFixed4, "target", 0),
                                           std::tuple(DetectorKind::kAngle51, "pdg", 0)}) {
    const bool small = kind == DetectorKind::kFixed4;
    ShowerDatasetOptions options;
    options.showers.detector = kind;
    options.showers.particles = {kParticles.begin(), kParticles.end()};
    options.events = small ? 300 : 12;
    const std::string path = folder / part;
    ASSERT_TRUE(write_shower_dataset(options, path, team).ok());
    DatasetOptions read;
    read.paths = {path};
    read.schema = DataSchema::kCustom;
    read.names = DatasetNames{.energy = part, .energy_column = column, .energy_unit_gev = 100};
    const auto dataset = Dataset::open(read);
    ASSERT_TRUE(dataset.ok()) << dataset.error().message;
    const auto generator = ShowerGenerator::create(options.showers);
    std::vector<float> cells(generator->detector().cells());
    std::map<float, int> counts;
    for (std::uint64_t i = 0; i < options.events; ++i) {
      ++counts[dataset->energy(i)];
      const auto number = static_cast<float>(generator->generate(i, cells).particle);
      ASSERT_EQ(dataset->energy(i), number);
    }
    if (!small) continue;
    EXPECT_EQ(counts.size(), 3u);
    for (const auto& [number, count] : counts) EXPECT_NEAR(count, 100, 35) << number;
  }
}

TEST(ShowerParticles, ElectronsAloneHaveTheFilesThatTheyHad) {
  SyntheticOptions options;
  const std::string usual = synthetic_path(options);
  options.showers.particles = {Particle::kElectron, Particle::kPion};
  EXPECT_EQ(synthetic_path(options), usual.substr(0, usual.size() - 3) + "-electron+pion.h5");
  options.showers.particles.clear();
  EXPECT_FALSE(ShowerGenerator::create(options.showers).ok());
  EXPECT_EQ(find_particle("muon"), std::nullopt);
  for (const Particle particle : kParticles) EXPECT_EQ(find_particle(text(particle)), particle);
}

}  // namespace
}  // namespace troupe::pipeline

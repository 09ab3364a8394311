// Showers per second and core for each detector, next to the aim of 500 at 25^3. The mean response
// is compared with the Geant4 one before anything is timed.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "bench/measure.h"
#include "pipeline/data/shower_generator.h"

namespace troupe::bench {
namespace {

using pipeline::DetectorKind;
using pipeline::Primary;
using pipeline::ShowerGenerator;

constexpr double kAim = 500;  // events per second and core at 25^3

ShowerGenerator generator_of(const pipeline::ShowerOptions& options) {
  auto generator = ShowerGenerator::create(options);
  CHECK(generator.ok(), generator.ok() ? "" : generator.error().message);
  return std::move(generator).value();
}

// Mean ECAL sum at 100 GeV and 90 degrees over the 1.98 GeV of the Geant4 showers that the
// generator is fitted to.
double response(DetectorKind kind, std::size_t events, runtime::ThreadTeam& team) {
  constexpr double kRightAngle = std::numbers::pi / 2;
  const ShowerGenerator generator = generator_of({.detector = kind,
                                                  .min_energy_gev = 100,
                                                  .max_energy_gev = 100,
                                                  .min_angle_rad = kRightAngle,
                                                  .max_angle_rad = kRightAngle});
  std::vector<Primary> primaries(events);
  std::vector<float> cells(events * generator.detector().cells());
  generator.generate(0, primaries, cells, team);
  double sum = 0;
  for (const float cell : cells) sum += static_cast<double>(cell);
  return sum / generator.detector().units_per_gev / static_cast<double>(events) / 1.98;
}

Spread rates(DetectorKind kind, int repeats, std::size_t events, runtime::ThreadTeam& team) {
  const ShowerGenerator generator = generator_of({.detector = kind});
  std::vector<Primary> primaries(events);
  std::vector<float> cells(events * generator.detector().cells());
  std::vector<double> found;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    generator.generate(0, primaries, cells, team);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    found.push_back(static_cast<double>(events) / taken.count());
  }
  return spread_of(found);
}

int run(bool small) {
  runtime::ThreadTeam one(1);
  runtime::ThreadTeam two(2);
  const std::size_t events = small ? 60 : 1000;
  for (const DetectorKind kind : pipeline::kDetectorKinds) {
    const auto name = pipeline::detector(kind).name;
    const double found = response(kind, small ? 150 : 1000, two);
    if (std::fabs(found - 1) > 0.03) {
      fmt::print(stderr, "{}: response {:.3f} of Geant4's\n", name, found);
      return 1;
    }
    const Spread alone = rates(kind, small ? 3 : 7, events, one);
    const Spread both = rates(kind, small ? 3 : 7, events, two);
    fmt::print("{}: response {:.3f} of Geant4's\n", name, found);
    for (const auto& [threads, rate] : {std::pair{1, alone}, std::pair{2, both}}) {
      fmt::print("  {} thread{} {:8.0f} events/s (min {:.0f}, max {:.0f})", threads,
                 threads == 1 ? " " : "s", rate.median, rate.lowest, rate.highest);
      if (threads == 1 && kind == DetectorKind::kFixed25) {
        fmt::print(", {:.1f} x the aim of {:.0f}", rate.median / kAim, kAim);
      }
      if (threads == 2) fmt::print(", {:.2f} x one thread", rate.median / alone.median);
      fmt::print("\n");
    }
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run(argc > 1 && std::strcmp(argv[1], "--small") == 0);
}

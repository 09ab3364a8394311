#include "pipeline/data/shower_generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/data/hadron_profile.h"
#include "pipeline/data/shower_profile.h"
#include "runtime/base/math.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;
namespace math = runtime::math;

namespace {

// Variance over mean of a layer's visible energy beyond what its spots have.
constexpr double kGrainGev = 1.5e-4;
// Share of the visible energy that the last piece of silicon has, behind which nothing scatters
// back.
constexpr double kLastSilicon = 0.7268;
// Standard deviation along x and y of the shower's axis from the track, at 1 GeV; it falls with the
// root of the energy. Fitted to the spread of the showers' centres.
constexpr double kAxisMm = 1.8;
constexpr double kLongestStepX0 = 0.25;
constexpr std::size_t kMostSteps = 32;
// Electrons of less are not what the profiles are fitted to, and leave nearly nothing.
constexpr double kLeastElectronGev = 0.2;
constexpr double kTrackMm = 0.1;
constexpr double kPerpendicular = std::numbers::pi / 2;

constexpr std::pair<Particle, std::string_view> kParticleNames[] = {
    {Particle::kElectron, "electron"}, {Particle::kPhoton, "photon"}, {Particle::kPion, "pion"}};

}  // namespace

std::string_view text(Particle particle) {
  for (const auto& [each, name] : kParticleNames) {
    if (each == particle) return name;
  }
  CHECK(false, "a particle without a name");
}

std::optional<Particle> find_particle(std::string_view name) {
  for (const auto& [particle, each] : kParticleNames) {
    if (each == name) return particle;
  }
  return std::nullopt;
}

// The parts of one shower share these.
struct ShowerGenerator::Streams {
  ShowerRandom random;
  ShowerRandom spots;
  std::span<double> planes;  // [layer][x][y], visible GeV
};

// The energy that a shower, or a part of it, is to leave, and where: a sum of all that is set.
struct ShowerGenerator::Part {
  double energy_gev = 0;                             // of its kind of profile
  std::optional<LongitudinalProfile> electron = {};  // from `start` on, its halo everywhere
  std::optional<HadronProfile> hadrons = {};         // from `start` on
  double track_end = 0;                              // a track that far
  double start = 0;                                  // X0 along the track
  double crossing_t = 0;  // where the axis crosses the middle of the transverse plane
};

// One part of a shower while it is made: its primary's track, which crosses the middle of the
// transverse plane where showers of its energy have their maximum on average, as Geant4's were
// aimed, and how far along it the shower has come.
struct ShowerGenerator::Development {
  const Part& part;
  ShowerRandom& random;
  ShowerRandom& spot_random;
  std::span<double> planes;  // [layer][x][y], visible GeV
  bool tilted = false;
  double sine = 1.0;
  double cosine = 0.0;
  double x_mm = 0.0;        // axis, from the middle
  double start_y_mm = 0.0;  // where it enters
  double t = 0.0;           // X0 along the track
  double z_mm = 0.0;        // from the front
};

// A piece of the track inside a layer.
struct ShowerGenerator::Step {
  double mean_gev;  // visible
  double silicon_t;
  double y_mm;  // axis, from the middle
  double z_mm;  // axis, from the front
};

// One part (core or tail) of the spots of a step.
struct ShowerGenerator::SpotGroup {
  std::uint32_t count;
  double mean_gev;  // of each
  double radius_mm;
  double y_mm;
  double z_mm;
};

Primary ShowerGenerator::draw_primary(std::uint64_t event) const {
  ShowerRandom random(options_.seed, event, ShowerStream::kPrimary);
  const double energy_range = options_.max_energy_gev - options_.min_energy_gev;
  const double energy = options_.min_energy_gev + energy_range * random.uniform();
  const double angle = min_angle_ + (max_angle_ - min_angle_) * random.uniform();
  Primary primary{static_cast<float>(energy), static_cast<float>(angle)};
  const auto kinds = static_cast<double>(options_.particles.size());
  primary.particle = options_.particles[static_cast<std::size_t>(kinds * random.uniform())];
  return primary;
}

void ShowerGenerator::develop(Primary primary, std::uint64_t event,
                              std::span<double> planes) const {
  Streams streams{ShowerRandom(options_.seed, event, ShowerStream::kProfile),
                  ShowerRandom(options_.seed, event, ShowerStream::kSpots), planes};
  switch (primary.particle) {
    case Particle::kElectron:
      return develop_electron(primary, primary.energy_gev, 0.0, streams);
    case Particle::kPhoton:
      return develop_photon(primary, streams);
    case Particle::kPion:
      return develop_pion(primary, streams);
  }
}

// The two of a pair share the energy evenly in distribution, as they nearly do at high energies.
void ShowerGenerator::develop_photon(Primary primary, Streams& streams) const {
  const double energy = primary.energy_gev;
  const double start = 9.0 / 7.0 * streams.random.exponential();
  const double least = kLeastElectronGev / energy;
  const double share = least + (1.0 - 2.0 * least) * streams.random.uniform();
  develop_electron(primary, share * energy, start, streams);
  develop_electron(primary, (1.0 - share) * energy, start, streams);
}

void ShowerGenerator::develop_pion(Primary primary, Streams& streams) const {
  const double energy = primary.energy_gev;
  const double start = kInteractionX0 * streams.random.exponential();
  const double neutral_gev = energy * draw_neutral_share(energy, streams.random);
  const double crossing_t = detector_->layers.front().depth_x0;
  develop_part(primary, {.energy_gev = energy, .track_end = start, .crossing_t = crossing_t},
               streams);
  // Behind the detector nothing is seen of it, and nothing comes back.
  const double end = detector_->layers.back().mixture->layer_x0 + last_silicon_x0_;
  if (start * math::sin(primary.theta_rad) >= end) return;
  develop_part(primary,
               {.energy_gev = energy,
                .hadrons = hadron_profile(energy, energy - neutral_gev),
                .start = start,
                .crossing_t = crossing_t},
               streams);
  if (neutral_gev > kLeastElectronGev) develop_electron(primary, neutral_gev, start, streams);
}

void ShowerGenerator::develop_electron(Primary primary, double energy_gev, double start,
                                       Streams& streams) const {
  const LongitudinalProfile profile = draw_profile(energy_gev, streams.random);
  develop_part(primary,
               {.energy_gev = energy_gev,
                .electron = profile,
                .start = start,
                .crossing_t = profile.mean_maximum},
               streams);
}

void ShowerGenerator::develop_part(Primary primary, const Part& part, Streams& streams) const {
  Development shower{part, streams.random, streams.spots, streams.planes};
  const double axis_mm = kAxisMm / std::sqrt(part.energy_gev);
  shower.x_mm = axis_mm * shower.random.normal();
  shower.start_y_mm = axis_mm * shower.random.normal();
  shower.tilted = min_angle_ != kPerpendicular || max_angle_ != kPerpendicular;
  if (shower.tilted) {
    shower.sine = math::sin(primary.theta_rad);
    shower.cosine = math::cos(primary.theta_rad);
    const double crossing_mm = part.crossing_t * detector_->layers[0].mixture->radiation_length_mm;
    shower.start_y_mm -= crossing_mm * shower.cosine / shower.sine;
  }
  for (std::uint32_t layer = 0; layer < detector_->layers.size(); ++layer) cross(layer, shower);
}

// The visible energy of a path in silicon at depth t.
double ShowerGenerator::mean_gev(double t, double path, const AbsorberMixture& mixture,
                                 const Development& shower) {
  const Part& part = shower.part;
  const double depth = t - part.start;
  double gev = 0;
  if (part.electron) {
    gev = depth > 0 ? mixture.sampling * visible_density(*part.electron, depth) * path : 0.0;
    gev += part.electron->halo * path * shower.sine / mixture.layer_x0;
  }
  if (part.hadrons && depth > 0) {
    gev += mixture.sampling * visible_density(*part.hadrons, depth) * path;
  }
  if (t < part.track_end) gev += kTrackGev * path / mixture.layer_x0;
  return gev;
}

// Behind the tungsten of its layer silicon sees the shower half a layer deeper than the layer's
// middle, and so for each step in coarser layers that hold several pieces. The deposit lies where
// the silicon does.
ShowerGenerator::Step ShowerGenerator::step_at(double t, double path,
                                               const AbsorberMixture& mixture,
                                               const Development& shower) const {
  Step step{};
  step.silicon_t = t + 0.5 * mixture.layer_x0 / shower.sine;
  step.mean_gev = mean_gev(step.silicon_t, path, mixture, shower);
  if (t * shower.sine > last_silicon_x0_) step.mean_gev *= kLastSilicon;
  const double depth_x0 = (t - shower.t) * shower.sine;  // in the layer
  const double silicon_x0 =
      (std::floor(depth_x0 / mixture.layer_x0) + mixture.silicon_at) * mixture.layer_x0;
  step.z_mm = shower.z_mm + silicon_x0 * mixture.radiation_length_mm;
  step.y_mm = shower.start_y_mm + step.z_mm * shower.cosine / shower.sine;
  return step;
}

void ShowerGenerator::cross(std::uint32_t layer, Development& shower) const {
  const AbsorberMixture& mixture = *detector_->layers[layer].mixture;
  const double path = detector_->layers[layer].depth_x0 / shower.sine;
  const auto count = static_cast<std::size_t>(std::ceil(path / kLongestStepX0));
  CHECK(count <= kMostSteps, "steps of a layer");
  const double dt = path / static_cast<double>(count);
  std::array<Step, kMostSteps> steps;
  double mean_gev = 0;
  for (std::size_t i = 0; i < count; ++i) {
    steps[i] = step_at(shower.t + (static_cast<double>(i) + 0.5) * dt, dt, mixture, shower);
    mean_gev += steps[i].mean_gev;
  }
  if (mean_gev > 0) {
    const double found_gev = kGrainGev * shower.random.gamma(mean_gev / kGrainGev);
    const double scale = found_gev / mean_gev;
    for (std::size_t i = 0; i < count; ++i) {
      scatter(steps[i], steps[i].mean_gev * scale, layer, shower);
    }
  }
  shower.t += path;
  shower.z_mm += path * mixture.radiation_length_mm * shower.sine;
}

// In front of where electrons begin their halo alone is seen, as wide as their beginning.
RadialProfile ShowerGenerator::radial_at(double t, double spread_mm, const Part& part) {
  if (part.electron) {
    const double tau = std::max(0.0, t - part.start) / part.electron->maximum;
    return radial_profile(part.energy_gev, tau);
  }
  if (part.hadrons) return hadron_radial_profile(spread_mm);
  // Nearly all of a track's energy lies in the cell that it crosses.
  return {kTrackMm / spread_mm, kTrackMm / spread_mm, 1.0, kTrackGev, kTrackGev};
}

void ShowerGenerator::scatter(const Step& step, double gev, std::uint32_t layer,
                              Development& shower) const {
  const double spread_mm = detector_->layers[layer].mixture->spread_mm;
  const RadialProfile radial = radial_at(step.silicon_t, spread_mm, shower.part);
  const double core_gev = gev * radial.core_fraction, tail_gev = gev - core_gev;
  const std::uint32_t core = shower.random.poisson(core_gev / radial.core_spot_gev);
  const std::uint32_t tail = shower.random.poisson(tail_gev / radial.tail_spot_gev);
  const SpotGroup groups[] = {
      {core, radial.core_spot_gev, radial.core * spread_mm, step.y_mm, step.z_mm},
      {tail, radial.tail_spot_gev, radial.tail * spread_mm, step.y_mm, step.z_mm}};
  for (const SpotGroup& group : groups) {
    if (shower.tilted) {
      place<true>(group, layer, shower);
    } else {
      place<false>(group, layer, shower);
    }
  }
}

// Radius R sqrt(s / (1 - s)) with s uniform, in direction (u, v) / sqrt(s): a point (u, v) uniform
// in the unit disc has s = u^2 + v^2 uniform and independent of its direction, so that the offset
// is R (u, v) / sqrt(1 - s) and costs no sine. The plane of the offsets is perpendicular to the
// track.
template <bool kTilted>
void ShowerGenerator::place(const SpotGroup& group, std::uint32_t layer,
                            Development& shower) const {
  const std::uint32_t nx = detector_->shape[0];
  const std::uint32_t ny = detector_->shape[1];
  const double to_cells = 1.0 / detector_->cell_mm;
  const double radius = group.radius_mm * to_cells;
  const double centre_x = 0.5 * nx + shower.x_mm * to_cells;
  const double centre_y = 0.5 * ny + group.y_mm * to_cells;
  ShowerRandom& random = shower.spot_random;
  double* plane = shower.planes.data() + std::size_t{layer} * nx * ny;
  for (std::uint32_t i = 0; i < group.count; ++i) {
    double u, v, s;
    do {
      u = static_cast<std::int32_t>(random.word()) * 0x1p-31;
      v = static_cast<std::int32_t>(random.word()) * 0x1p-31;
      s = u * u + v * v;
    } while (s >= 1.0);
    const double r = radius / std::sqrt(1.0 - s);
    const double x = centre_x + r * u;
    const double y = centre_y + r * v * (kTilted ? shower.sine : 1.0);
    if (!(x >= 0.0 && x < nx && y >= 0.0 && y < ny)) continue;
    if constexpr (kTilted) {
      const double z_mm = group.z_mm - r * v * shower.cosine * detector_->cell_mm;
      if (!(z_mm >= 0.0 && z_mm < layer_end_mm_.back())) continue;
      plane = shower.planes.data() + std::size_t{layer_at(z_mm, layer)} * nx * ny;
    }
    plane[static_cast<std::uint32_t>(x) * ny + static_cast<std::uint32_t>(y)] +=
        group.mean_gev * random.exponential();
  }
}

// Most spots of a step stay in its layer, so the search begins there.
std::uint32_t ShowerGenerator::layer_at(double z_mm, std::uint32_t near) const {
  while (z_mm >= layer_end_mm_[near]) ++near;
  while (near > 0 && z_mm < layer_end_mm_[near - 1]) --near;
  return near;
}

void ShowerGenerator::read_out(std::span<const double> planes, std::span<float> cells) const {
  const std::uint32_t depth = detector_->shape[2];
  const std::size_t area = std::size_t{detector_->shape[0]} * detector_->shape[1];
  for (std::uint32_t layer = 0; layer < depth; ++layer) {
    const double* plane = planes.data() + layer * area;
    for (std::size_t i = 0; i < area; ++i) {
      const double gev = plane[i];
      cells[i * depth + layer] =
          gev < options_.threshold_gev ? 0.0f : static_cast<float>(gev * detector_->units_per_gev);
    }
  }
}

Primary ShowerGenerator::make(std::uint64_t event, std::span<double> planes,
                              std::span<float> cells) const {
  const Primary primary = draw_primary(event);
  std::fill(planes.begin(), planes.end(), 0.0);
  develop(primary, event, planes);
  read_out(planes, cells);
  return primary;
}

Result<ShowerGenerator> ShowerGenerator::create(const ShowerOptions& options) {
  const auto refuse = [](std::string message) {
    return Error{ErrorKind::kUsage, std::move(message)};
  };
  if (!(options.min_energy_gev >= 1.0 && options.max_energy_gev <= 1000.0 &&
        options.min_energy_gev <= options.max_energy_gev)) {
    return refuse(fmt::format("shower energies from {} to {} GeV: expected 1 <= from <= to <= 1000",
                              options.min_energy_gev, options.max_energy_gev));
  }
  if (options.particles.empty()) return refuse("no particles are named that make showers");
  ShowerGenerator made(options);
  const double lowest = made.detector_->min_angle_rad;
  const double highest = made.detector_->max_angle_rad;
  const double from = options.min_angle_rad.value_or(lowest);
  const double to = options.max_angle_rad.value_or(highest);
  // The tolerance is for angles that were converted from degrees: 60 degrees may miss pi / 3 by a
  // rounding.
  constexpr double kRounding = 1e-9;
  if (!(from >= lowest - kRounding && to <= highest + kRounding && from <= to + kRounding)) {
    constexpr double kDegrees = 180.0 / std::numbers::pi;
    return refuse(
        fmt::format("shower angles from {:.4g} to {:.4g} rad ({:.4g} to {:.4g} degrees): "
                    "{} takes {:.4f} to {:.4f} rad ({:.4g} to {:.4g} degrees)",
                    from, to, from * kDegrees, to * kDegrees, made.detector_->name, lowest, highest,
                    lowest * kDegrees, highest * kDegrees));
  }
  made.min_angle_ = std::clamp(from, lowest, highest);
  made.max_angle_ = std::clamp(to, made.min_angle_, highest);
  if (!(options.threshold_gev >= 0.0 && options.threshold_gev <= 1.0)) {
    return refuse(fmt::format("cell threshold {} GeV: expected 0 to 1", options.threshold_gev));
  }
  double depth_mm = 0, depth_x0 = 0;
  for (const DetectorLayer& layer : made.detector_->layers) {
    depth_x0 += layer.depth_x0;
    depth_mm += layer.depth_x0 * layer.mixture->radiation_length_mm;
    made.layer_end_mm_.push_back(depth_mm);
  }
  made.last_silicon_x0_ = depth_x0 - made.detector_->layers.back().mixture->layer_x0;
  return made;
}

ShowerGenerator::ShowerGenerator(const ShowerOptions& options)
    : options_(options), detector_(&pipeline::detector(options.detector)) {}

void ShowerGenerator::generate(std::uint64_t first, std::span<Primary> primaries,
                               std::span<float> cells, runtime::ThreadTeam& team) const {
  const std::size_t size = detector_->cells();
  CHECK(cells.size() == primaries.size() * size, "one image per primary");
  std::vector<std::vector<double>> planes(static_cast<std::size_t>(team.threads()));
  team.run(static_cast<std::int64_t>(primaries.size()), [&](std::int64_t index, int thread) {
    std::vector<double>& own = planes[static_cast<std::size_t>(thread)];
    own.resize(size);
    const auto i = static_cast<std::size_t>(index);
    primaries[i] = make(first + i, own, cells.subspan(i * size, size));
  });
}

Primary ShowerGenerator::generate(std::uint64_t event, std::span<float> cells) const {
  CHECK(cells.size() == detector_->cells(), "one image");
  std::vector<double> planes(cells.size());
  return make(event, planes, cells);
}

}  // namespace troupe::pipeline

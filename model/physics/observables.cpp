#include "model/physics/observables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "model/backend/reference/kernels.h"
#include "runtime/base/error.h"
#include "runtime/base/math.h"

namespace troupe::model {
namespace {

constexpr double kLargestEcalGev = 1e6;
constexpr std::array<double, kSparsityLevels> kSparsityThresholdsGev{
    1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0};

// The bin of a cell above 0; negative below the lowest.
int spectrum_bin(float gev) {
  const auto bits = std::bit_cast<std::uint32_t>(gev);
  constexpr std::uint32_t kMantissa = (1U << 23U) - 1;
  const int octave = static_cast<int>(bits >> 23U) - 127;
  const bool upper = (bits & kMantissa) >=
                     (std::bit_cast<std::uint32_t>(std::numbers::sqrt2_v<float>) & kMantissa);
  return std::min(2 * (octave - kSpectrumLowest) + (upper ? 1 : 0), kSpectrumBins - 1);
}

}  // namespace

double spectrum_edge_gev(int bin) {
  const double octave = std::ldexp(1.0, kSpectrumLowest + bin / 2);
  return bin % 2 == 0 ? octave : octave * std::numbers::sqrt2;
}

void to_gev(std::span<const float> cells, const ImageUnits& units, std::span<float> gev) {
  CHECK(cells.size() == gev.size(), "to_gev needs as many results as cells");
  CHECK(units.power > 0.0 && units.units_per_gev > 0.0, "image units must be positive");
  const double exponent = 1.0 / units.power;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    double energy = static_cast<double>(cells[i]);
    if (energy <= 0.0) {
      energy = 0.0;
    } else if (units.power != 1.0) {
      energy = runtime::math::pow(energy, exponent);
    }
    gev[i] = static_cast<float>(energy / units.units_per_gev);
  }
}

ShowerMeter::ShowerMeter(const Extent& space, double hit_threshold_gev, bool with_angle)
    : angle_{1, space}, hit_threshold_gev_(hit_threshold_gev), with_angle_(with_angle) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    CHECK(space[axis] >= 1, "a shower needs at least one cell along each axis");
    found_.profile[axis].resize(static_cast<std::size_t>(space[axis]));
  }
  const std::size_t bytes = reference::scratch_bytes(angle_, sizeof(float));
  angle_scratch_.resize((bytes + sizeof(double) - 1) / sizeof(double));
}

const ShowerObservables& ShowerMeter::measure(std::span<const float> gev) {
  const Extent& space = angle_.space;
  CHECK(static_cast<std::int64_t>(gev.size()) == space[0] * space[1] * space[2],
        "an image does not have the size its statistics were made for");
  found_.valid = sum_cells(gev);
  found_.moments = {};
  found_.depth_fractions = {};
  found_.angle_rad = 0.0;
  if (!found_.valid) return found_;
  if (!found_.empty()) {
    take_moments();
    take_depth_fractions();
  }
  if (with_angle_) found_.angle_rad = measure_angle(gev);
  return found_;
}

// Everything that needs the cells. False, and early, when they make no valid shower.
bool ShowerMeter::sum_cells(std::span<const float> gev) {
  const Extent& space = angle_.space;
  for (auto& profile : found_.profile) std::fill(profile.begin(), profile.end(), 0.0);
  found_.ecal_gev = 0.0;
  found_.hits = 0;
  found_.cells_above = {};
  found_.maximum = {};
  found_.spectrum = {};
  float largest = 0.0F;
  const float* cell = gev.data();
  for (std::int64_t x = 0; x < space[0]; ++x) {
    for (std::int64_t y = 0; y < space[1]; ++y) {
      double row = 0.0;
      for (std::int64_t z = 0; z < space[2]; ++z, ++cell) {
        if (*cell == 0.0F) continue;
        const double energy = static_cast<double>(*cell);
        if (!(energy > 0.0 && energy <= kLargestEcalGev)) return false;
        row += energy;
        found_.profile[2][static_cast<std::size_t>(z)] += energy;
        found_.hits += energy > hit_threshold_gev_ ? 1 : 0;
        for (std::size_t i = 0; i < kSparsityThresholdsGev.size(); ++i) {
          if (energy <= kSparsityThresholdsGev[i]) break;
          ++found_.cells_above[i];
        }
        if (const int bin = spectrum_bin(*cell); bin >= 0) {
          ++found_.spectrum[static_cast<std::size_t>(bin)];
        }
        if (*cell > largest) {
          largest = *cell;
          found_.maximum = {x, y, z};
        }
      }
      found_.profile[0][static_cast<std::size_t>(x)] += row;
      found_.profile[1][static_cast<std::size_t>(y)] += row;
      found_.ecal_gev += row;
    }
  }
  found_.largest_gev = static_cast<double>(largest);
  return found_.ecal_gev <= kLargestEcalGev;
}

void ShowerMeter::take_moments() {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::vector<double>& profile = found_.profile[axis];
    double first = 0.0;
    for (std::size_t i = 0; i < profile.size(); ++i) first += static_cast<double>(i) * profile[i];
    first /= found_.ecal_gev;
    double second = 0.0, third = 0.0;
    for (std::size_t i = 0; i < profile.size(); ++i) {
      const double distance = static_cast<double>(i) - first;
      second += distance * distance * profile[i];
      third += distance * distance * distance * profile[i];
    }
    found_.moments[axis] = {first, second / found_.ecal_gev, third / found_.ecal_gev};
  }
}

void ShowerMeter::take_depth_fractions() {
  const std::vector<double>& profile = found_.profile[2];
  const std::size_t third = profile.size() / 3;
  for (std::size_t z = 0; z < profile.size(); ++z) {
    const std::size_t part = z < third ? 0 : z < 2 * third ? 1 : 2;
    found_.depth_fractions[part] += profile[z];
  }
  for (double& fraction : found_.depth_fractions) fraction /= found_.ecal_gev;
}

double ShowerMeter::measure_angle(std::span<const float> gev) {
  float angle = 0.0F;
  // The operand list is untyped and shared with outputs; the kernel only reads the first.
  void* operands[] = {const_cast<float*>(gev.data()), &angle};
  const runtime::RandomPosition no_randomness;
  const KernelCall call{operands, no_randomness,
                        reinterpret_cast<std::byte*>(angle_scratch_.data())};
  reference::run<float>(angle_, call);
  return static_cast<double>(angle);
}

}  // namespace troupe::model

#include "model/backend/reference/kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "runtime/base/math.h"

namespace troupe::model::reference {
namespace {

constexpr double kEmptyEventAngle = 100.0;  // rad; far from any incidence angle
constexpr double kSmallestSquare = 1e-7;

double centre(std::int64_t index) { return static_cast<double>(index) + 0.5; }

// One event seen along z. The arrays have one entry per layer.
struct Profile {
  double *energy, *x, *y;     // x, y: energy-weighted means, 0 in an empty layer
  double *slope_x, *slope_y;  // d angle / d x_z, d angle / d y_z
  double total = 0.0, mean_x = 0.0, mean_y = 0.0, mean_z = 0.0;
};

Profile profile_in(std::byte* scratch, std::int64_t layers) {
  auto* d = reinterpret_cast<double*>(scratch);
  return {d, d + layers, d + 2 * layers, d + 3 * layers, d + 4 * layers};
}

// Sums come first, and are divided when all cells are added. Where the cells add up to 0 the
// event's means are no numbers, and nobody reads them.
template <class T>
void fill_profile(const T* image, const Extent& space, Profile& p) {
  const std::int64_t layers = space[2];
  std::fill_n(p.energy, 3 * layers, 0.0);
  for (std::int64_t i = 0; i < space[0]; ++i) {
    for (std::int64_t j = 0; j < space[1]; ++j) {
      const T* row = image + (i * space[1] + j) * layers;
      for (std::int64_t z = 0; z < layers; ++z) {
        const double energy = static_cast<double>(row[z]);
        p.energy[z] += energy;
        p.x[z] += energy * centre(i);
        p.y[z] += energy * centre(j);
      }
    }
  }
  p.total = p.mean_x = p.mean_y = p.mean_z = 0.0;
  for (std::int64_t z = 0; z < layers; ++z) {
    p.total += p.energy[z];
    p.mean_x += p.x[z];
    p.mean_y += p.y[z];
    p.mean_z += p.energy[z] * centre(z);
    p.x[z] = p.energy[z] == 0.0 ? 0.0 : p.x[z] / p.energy[z];
    p.y[z] = p.energy[z] == 0.0 ? 0.0 : p.y[z] / p.energy[z];
  }
  p.mean_x /= p.total;
  p.mean_y /= p.total;
  p.mean_z /= p.total;
}

// The direction of one layer from the event's centre.
struct Direction {
  double from_x, from_z;  // x_z - xb, z - zb
  double length;          // zproj
  double sign, slope;     // sign m = tan of the angle from the y axis' normal
  bool clipped;
};

Direction direction(const Profile& p, std::int64_t z) {
  const double dx = p.x[z] - p.mean_x, dz = centre(z) - p.mean_z;
  const double square = dx * dx + dz * dz;
  const bool clipped = square < kSmallestSquare;
  const double length = std::sqrt(clipped ? kSmallestSquare : square);
  return {dx, dz, length, dz < 0.0 ? -1.0 : 1.0, (p.y[z] - p.mean_y) / length, clipped};
}

double weight_of_layers(const Profile& p, std::int64_t layers) {
  double weight = 0.0;
  for (std::int64_t z = 0; z < layers; ++z) weight += p.energy[z] == 0.0 ? 0.0 : centre(z);
  return weight;
}

double incidence_angle(const Profile& p, std::int64_t layers) {
  if (p.total == 0.0) return kEmptyEventAngle;
  double sum = 0.0;
  for (std::int64_t z = 0; z < layers; ++z) {
    if (p.energy[z] == 0.0) continue;
    const Direction d = direction(p, z);
    sum += (std::numbers::pi / 2 - runtime::math::atan(d.sign * d.slope)) * centre(z);
  }
  return sum / weight_of_layers(p, layers);
}

// Derivatives of the angle with respect to the event's means.
struct MeanSlopes {
  double x = 0.0, y = 0.0, z = 0.0;
};

// Fills slope_x and slope_y of every layer. With q = (x_z - xb)^2 + (z - zb)^2, p = sqrt(q) and
// m = (y_z - yb) / p: da/dm = -sign / (1 + m^2), dm/dy_z = 1 / p, dm/dx_z = -m (x_z - xb) / q,
// dm/dzb = m (z - zb) / q; yb and xb take the opposite of y_z and x_z.
MeanSlopes differentiate(Profile& p, std::int64_t layers) {
  MeanSlopes means;
  const double weight = weight_of_layers(p, layers);
  for (std::int64_t z = 0; z < layers; ++z) {
    p.slope_x[z] = p.slope_y[z] = 0.0;
    if (p.energy[z] == 0.0) continue;
    const Direction d = direction(p, z);
    const double by_m = -d.sign / (1.0 + d.slope * d.slope) * (centre(z) / weight);
    const double by_square = d.clipped ? 0.0 : by_m * d.slope / (d.length * d.length);
    p.slope_y[z] = by_m / d.length;
    p.slope_x[z] = -by_square * d.from_x;
    means.y -= p.slope_y[z];
    means.x -= p.slope_x[z];
    means.z += by_square * d.from_z;
  }
  return means;
}

// dx = dy d angle / d cell: a cell moves its layer's means and the event's.
template <class T>
void spread_gradient(const Profile& p, const MeanSlopes& means, const Extent& space, double dy,
                     T* dx) {
  for (std::int64_t i = 0; i < space[0]; ++i) {
    for (std::int64_t j = 0; j < space[1]; ++j) {
      const double event_xy = means.x * (centre(i) - p.mean_x) + means.y * (centre(j) - p.mean_y);
      T* row = dx + (i * space[1] + j) * space[2];
      for (std::int64_t z = 0; z < space[2]; ++z) {
        const double event = (event_xy + means.z * (centre(z) - p.mean_z)) / p.total;
        const double layer =
            p.slope_x[z] * (centre(i) - p.x[z]) + p.slope_y[z] * (centre(j) - p.y[z]);
        const double energy = p.energy[z] == 0.0 ? 1.0 : p.energy[z];
        row[z] = static_cast<T>(dy * (event + layer / energy));
      }
    }
  }
}

}  // namespace

template <class T>
void run(const AngleForward& angle, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  const std::int64_t cells = angle.space[0] * angle.space[1] * angle.space[2];
  Profile profile = profile_in(call.scratch, angle.space[2]);
  for (std::int64_t b = 0; b < angle.batch; ++b) {
    fill_profile(x + b * cells, angle.space, profile);
    y[b] = static_cast<T>(incidence_angle(profile, angle.space[2]));
  }
}

template <class T>
void run(const AngleBackward& angle, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  const std::int64_t cells = angle.space[0] * angle.space[1] * angle.space[2];
  Profile profile = profile_in(call.scratch, angle.space[2]);
  for (std::int64_t b = 0; b < angle.batch; ++b) {
    fill_profile(x + b * cells, angle.space, profile);
    if (profile.total == 0.0) {
      std::fill_n(dx + b * cells, cells, T{0});
      continue;
    }
    const MeanSlopes means = differentiate(profile, angle.space[2]);
    spread_gradient(profile, means, angle.space, static_cast<double>(dy[b]), dx + b * cells);
  }
}

template <class T>
void run(const BinsForward& bins, const KernelCall& call) {
  constexpr std::array<double, 7> kEdges{0.05, 0.03, 0.02, 0.0125, 0.008, 0.003, 0.0};
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  for (std::int64_t b = 0; b < bins.batch; ++b) {
    std::array<std::int64_t, 8> counts{};
    for (std::int64_t i = 0; i < bins.cells; ++i) {
      const T cell = x[b * bins.cells + i];
      if (cell == T{0}) ++counts[7];
      if (!(cell > T{0})) continue;
      std::size_t bin = 0;
      while (!(cell > static_cast<T>(kEdges[bin]))) ++bin;
      ++counts[bin];
    }
    for (std::size_t k = 0; k < counts.size(); ++k) {
      y[b * 8 + static_cast<std::int64_t>(k)] = static_cast<T>(counts[k]);
    }
  }
}

TROUPE_INSTANTIATE_RUN(AngleForward);
TROUPE_INSTANTIATE_RUN(AngleBackward);
TROUPE_INSTANTIATE_RUN(BinsForward);

}  // namespace troupe::model::reference

#pragma once

// The figures measured on one shower. Formulae as 3DGAN's analysis (GANutils.py,
// TestingObjective.py of svalleco/3Dgan, branch Anglegan), so that figures can be set beside
// published ones.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/operation.h"
#include "model/tensor.h"

namespace troupe::model {

// How a stored or generated cell relates to its energy: cell = (units_per_gev x GeV)^power.
struct ImageUnits {
  double power = 1.0;          // > 0; 0.85 for gan3d_51
  double units_per_gev = 1.0;  // > 0; 50 for lcd-angle, 1 for lcd-fixed
};

// gev[i] = cell^(1 / power) / units_per_gev; negative cells, which no energy is, become 0; NaN
// stays. Sizes agree; in place is allowed. The same bits on every machine.
void to_gev(std::span<const float> cells, const ImageUnits& units, std::span<float> gev);

inline constexpr int kMomentOrders = 3;
// Cells are counted above 10^(level - 13) GeV: 1e-13, 1e-12, ... 1 GeV.
inline constexpr int kSparsityLevels = 14;

// The spectrum of cell energies: two bins to an octave from 2^-20 GeV (about 1e-6, where cells are
// cut) to 2^4 GeV; what is above counts in the last bin, what is below in none.
inline constexpr int kSpectrumOctaves = 24;
inline constexpr int kSpectrumLowest = -20;
inline constexpr int kSpectrumBins = 2 * kSpectrumOctaves;
// The lower edge of a bin, or the upper edge of the last for kSpectrumBins.
double spectrum_edge_gev(int bin);

// s_a[i] below is the profile along axis a (x, y, z): the sum of all cells with index i on it.
struct ShowerObservables {
  // Every cell is finite and not negative, and they sum to at most 1e6 GeV. Everything below is
  // meaningless otherwise.
  bool valid = false;
  double ecal_gev = 0.0;                       // sum of all cells
  std::array<std::vector<double>, 3> profile;  // s_a, GeV
  std::int64_t hits = 0;                       // cells above the hit threshold
  std::array<std::int64_t, kSparsityLevels> cells_above{};
  std::array<std::uint32_t, kSpectrumBins> spectrum{};  // cells by their energy
  double largest_gev = 0.0;                             // of the cells

  bool empty() const { return ecal_gev == 0.0; }
  // All 0 in an empty shower (the angle: 100).
  //
  // moments[a][0] = m1 = sum_i i s_a[i] / ecal; moments[a][k - 1] = sum_i (i - m1)^k s_a[i] / ecal.
  // Indices count from 0.
  std::array<std::array<double, kMomentOrders>, 3> moments{};
  // R1, R2, R3: fractions of ecal in layers [0, n), [n, 2n) and [2n, Z) with n = floor(Z / 3).
  std::array<double, 3> depth_fractions{};
  // Index of the largest cell, the first one of equals.
  std::array<std::int64_t, 3> maximum{};
  // Incidence angle as the models' angle head measures it (AngleForward); 0 if not asked for.
  double angle_rad = 0.0;
};

// Measures showers of one shape; keeps its buffers from one to the next. One thread at a time.
class ShowerMeter {
 public:
  // space: cells along x, y, z, all at least 1. The angle costs another pass over the cells.
  ShowerMeter(const Extent& space, double hit_threshold_gev, bool with_angle);

  // gev: [x][y][z], in GeV; its size is CHECKed. The result lives until the next call.
  const ShowerObservables& measure(std::span<const float> gev);

  const Extent& space() const { return angle_.space; }

 private:
  bool sum_cells(std::span<const float> gev);
  void take_moments();
  void take_depth_fractions();
  double measure_angle(std::span<const float> gev);

  AngleForward angle_;
  double hit_threshold_gev_;
  bool with_angle_;
  std::vector<double> angle_scratch_;
  ShowerObservables found_;
};

}  // namespace troupe::model

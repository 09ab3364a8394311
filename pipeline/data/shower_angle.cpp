#include "pipeline/data/shower_angle.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "runtime/base/math.h"

namespace troupe::pipeline {

double measure_angle(std::span<const float> cells, std::array<std::uint32_t, 3> shape) {
  struct Sums {
    double energy = 0, x = 0, y = 0;
  };
  std::vector<Sums> layers(shape[2]);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] == 0.0f) continue;
    const double energy = static_cast<double>(cells[i]);
    Sums& layer = layers[i % shape[2]];
    layer.energy += energy;
    layer.x += energy * (static_cast<double>(i / shape[2] / shape[1]) + 0.5);
    layer.y += energy * (static_cast<double>(i / shape[2] % shape[1]) + 0.5);
  }
  Sums all;
  double all_z = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    all.energy += layers[i].energy;
    all.x += layers[i].x;
    all.y += layers[i].y;
    all_z += layers[i].energy * (static_cast<double>(i) + 0.5);
  }
  if (all.energy == 0) return 100.0;
  double angles = 0;
  double weights = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].energy == 0) continue;
    const double z = static_cast<double>(i) + 0.5;
    const double dx = layers[i].x / layers[i].energy - all.x / all.energy;
    const double dy = layers[i].y / layers[i].energy - all.y / all.energy;
    const double dz = z - all_z / all.energy;
    const double slope = dy / std::sqrt(std::max(dx * dx + dz * dz, 1e-7));
    angles += (std::numbers::pi / 2 - runtime::math::atan(dz < 0 ? -slope : slope)) * z;
    weights += z;
  }
  return angles / weights;
}

}  // namespace troupe::pipeline

#include "model/physics/replicas.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "model/physics/shower_group.h"

namespace troupe::model {

double deviation_of(const std::vector<double>& values) {
  SpreadSum sum;
  for (const double value : values) sum.add(value);
  return sum.spread().deviation;
}

void set_floor(Figure& figure, std::vector<double> distances) {
  constexpr double kFloorShare = 0.95;
  if (distances.empty()) return;
  std::sort(distances.begin(), distances.end());
  figure.floor = std::accumulate(distances.begin(), distances.end(), 0.0) /
                 static_cast<double>(distances.size());
  const double place = kFloorShare * static_cast<double>(distances.size() - 1);
  figure.floor_95 = distances[static_cast<std::size_t>(std::ceil(place))];
}

}  // namespace troupe::model

#include "model/physics/figure.h"

#include <algorithm>
#include <cmath>

namespace troupe::model {

double Figure::distance() const { return value ? std::abs(*value - ideal) : 0.0; }

const Figure* find_figure(std::span<const Figure> figures, std::string_view name) {
  const auto found =
      std::ranges::find_if(figures, [&](const Figure& figure) { return figure.name == name; });
  return found == figures.end() ? nullptr : &*found;
}

}  // namespace troupe::model

#include "model/backend/cpu/winograd.h"

#include <span>

#include "runtime/base/error.h"

namespace troupe::model::cpu {
namespace {

constexpr std::array<double, 7> kPlacesOfEight = {0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5};
constexpr std::array<double, 6> kPlacesOfSeven = {0.25, -0.25, 0.875, -0.875, 1.75, -1.75};

// All points but infinity, which comes last.
std::span<const double> places_of(int points) {
  CHECK(points == kEightPoints || points == kSevenPoints, "a set of points that there is");
  if (points == kEightPoints) return kPlacesOfEight;
  return kPlacesOfSeven;
}

double power(double base, int exponent) {
  double product = 1.0;
  for (int i = 0; i < exponent; ++i) product *= base;
  return product;
}

// The sign that makes the row of point 0 begin with +1.
double sign_of(double place) { return place == 0.0 ? -1.0 : 1.0; }

}  // namespace

std::array<PointRow, kMostTaps> tap_transform(int points, int taps) {
  const auto places = places_of(points);
  std::array<PointRow, kMostTaps> rows{};
  for (std::size_t point = 0; point < places.size(); ++point) {
    double scale = sign_of(places[point]);
    for (std::size_t other = 0; other < places.size(); ++other) {
      if (other != point) scale *= places[point] - places[other];
    }
    for (int tap = 0; tap < taps; ++tap) {
      rows[static_cast<std::size_t>(tap)][point] = power(places[point], tap) / scale;
    }
  }
  rows[static_cast<std::size_t>(taps - 1)][places.size()] = 1.0;
  return rows;
}

std::array<PointRow, kMostPoints> output_transform(int points, int taps) {
  const auto places = places_of(points);
  std::array<PointRow, kMostPoints> rows{};
  const int outputs = tile_outputs(points, taps);
  for (std::size_t point = 0; point < places.size(); ++point) {
    for (int output = 0; output < outputs; ++output) {
      rows[static_cast<std::size_t>(output)][point] = power(places[point], output);
    }
  }
  rows[static_cast<std::size_t>(outputs - 1)][places.size()] = 1.0;
  return rows;
}

std::array<PointRow, kMostPoints> input_transform(int points) {
  const auto places = places_of(points);
  std::array<PointRow, kMostPoints> rows{};
  // The coefficients of the product of (x - place) over all finite points but the row's own.
  for (std::size_t point = 0; point <= places.size(); ++point) {
    rows[point][0] = point < places.size() ? sign_of(places[point]) : 1.0;
    for (std::size_t other = 0; other < places.size(); ++other) {
      if (other == point) continue;
      for (std::size_t degree = places.size(); degree > 0; --degree) {
        rows[point][degree] = rows[point][degree - 1] - places[other] * rows[point][degree];
      }
      rows[point][0] *= -places[other];
    }
  }
  return rows;
}

}  // namespace troupe::model::cpu

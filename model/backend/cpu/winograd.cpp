#include "model/backend/cpu/winograd.h"

namespace troupe::model::cpu {
namespace {

// All points but infinity, which comes last.
constexpr std::array<double, kPoints - 1> kPlaces = {0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5};

double power(double base, int exponent) {
  double product = 1.0;
  for (int i = 0; i < exponent; ++i) product *= base;
  return product;
}

// The sign that makes the row of point 0 begin with +1.
double sign_of(double place) { return place == 0.0 ? -1.0 : 1.0; }

}  // namespace

std::array<PointRow, kMostTaps> tap_transform(int taps) {
  std::array<PointRow, kMostTaps> rows{};
  for (std::size_t point = 0; point < kPlaces.size(); ++point) {
    double scale = sign_of(kPlaces[point]);
    for (std::size_t other = 0; other < kPlaces.size(); ++other) {
      if (other != point) scale *= kPlaces[point] - kPlaces[other];
    }
    for (int tap = 0; tap < taps; ++tap) {
      rows[static_cast<std::size_t>(tap)][point] = power(kPlaces[point], tap) / scale;
    }
  }
  rows[static_cast<std::size_t>(taps - 1)][kPlaces.size()] = 1.0;
  return rows;
}

std::array<PointRow, kPoints> output_transform(int taps) {
  std::array<PointRow, kPoints> rows{};
  const int outputs = tile_outputs(taps);
  for (std::size_t point = 0; point < kPlaces.size(); ++point) {
    for (int output = 0; output < outputs; ++output) {
      rows[static_cast<std::size_t>(output)][point] = power(kPlaces[point], output);
    }
  }
  rows[static_cast<std::size_t>(outputs - 1)][kPlaces.size()] = 1.0;
  return rows;
}

std::array<PointRow, kPoints> input_transform() {
  std::array<PointRow, kPoints> rows{};
  // The coefficients of the product of (x - place) over all finite points but the row's own.
  for (std::size_t point = 0; point <= kPlaces.size(); ++point) {
    rows[point][0] = point < kPlaces.size() ? sign_of(kPlaces[point]) : 1.0;
    for (std::size_t other = 0; other < kPlaces.size(); ++other) {
      if (other == point) continue;
      for (std::size_t degree = kPlaces.size(); degree > 0; --degree) {
        rows[point][degree] = rows[point][degree - 1] - kPlaces[other] * rows[point][degree];
      }
      rows[point][0] *= -kPlaces[other];
    }
  }
  return rows;
}

}  // namespace troupe::model::cpu

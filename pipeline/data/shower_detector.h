#pragma once

// The calorimeters that showers are generated in: tungsten-silicon, CLIC-like, 22.95 radiation
// lengths (X0) in 17 thin and 8 thick layers, or the same depth in coarser ones.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "pipeline/data/dataset_options.h"

namespace troupe::pipeline {

enum class DetectorKind : std::uint8_t {
  kFixed25,  // 25 x 25 x 25 cells of 5.1 mm, showers at 90 degrees, ECAL in GeV
  kAngle51,  // 51 x 51 x 25 cells of 5.1 mm, showers at 60 to 120 degrees, ECAL in GeV x 50
  kFixed12,  // 12 x 12 x 12 cells of 10.6 mm: the volume of kFixed25, for demonstrations and tests
  kFixed4,   // 4 x 4 x 4 cells of 31.9 mm: the same volume, for the toy model
};
inline constexpr std::array kDetectorKinds{DetectorKind::kFixed25, DetectorKind::kAngle51,
                                           DetectorKind::kFixed12, DetectorKind::kFixed4};

// One of the two absorber structures. Its lengths, those of the mixture, convert between mm and X0.
struct AbsorberMixture {
  double radiation_length_mm;
  double layer_x0;    // depth of one layer of tungsten and silicon, which lies behind it
  double silicon_at;  // where in that layer, as a share of its thickness
  double spread_mm;   // length of one unit of shower_profile.h's radii
  double sampling;    // visible fraction per X0 relative to the thin structure
};

struct DetectorLayer {
  double depth_x0;  // along z
  const AbsorberMixture* mixture;
};

struct Detector {
  DetectorKind kind;
  std::string_view name;  // "lcd-fixed-25", "lcd-angle-51", "lcd-fixed-12", "lcd-fixed-4"
  DataSchema schema;
  std::array<std::uint32_t, 3> shape;  // x, y transverse, z along the depth
  double cell_mm;
  std::vector<DetectorLayer> layers;  // shape[2] of them
  double units_per_gev;               // stored ECAL per GeV
  double min_angle_rad;
  double max_angle_rad;

  std::uint32_t cells() const { return shape[0] * shape[1] * shape[2]; }
};

const Detector& detector(DetectorKind kind);
// The detector of that name, or the one whose showers have this schema and shape; nothing if there
// is none.
std::optional<DetectorKind> find_detector(std::string_view name);
std::optional<DetectorKind> find_detector(DataSchema schema, std::array<std::uint32_t, 3> shape);

}  // namespace troupe::pipeline

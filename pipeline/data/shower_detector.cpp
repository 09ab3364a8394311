#include "pipeline/data/shower_detector.h"

#include <numbers>
#include <utility>

namespace troupe::pipeline {
namespace {

constexpr double kThinLayerX0 = 0.699;
constexpr double kThickLayerX0 = 1.384;
// 2.4 mm (thin) and 4.8 mm (thick) tungsten with 0.5 mm silicon. The same silicon sees about half
// as large a part of the energy behind twice the tungsten. The spread of the thin structure is its
// Moliere radius; how much narrower showers are in the thick one, and its sampling, are fitted with
// shower_profile.h, since showers change their width and their response slowly.
constexpr AbsorberMixture kThin{8.00, kThinLayerX0, 0.60, 18.95, 1.0};
constexpr AbsorberMixture kThick{5.77, kThickLayerX0, 0.72, 17.19, 0.5069};
constexpr int kThinLayers = 17;
constexpr int kThickLayers = 8;
constexpr double kCellMm = 5.1;

constexpr double kRightAngle = std::numbers::pi / 2;
constexpr double kLowestAngle = std::numbers::pi / 3;

// `thin` and `thick` layers that share the depth of 17 and 8.
std::vector<DetectorLayer> layers(int thin, int thick) {
  std::vector<DetectorLayer> all;
  for (int i = 0; i < thin; ++i) all.push_back({kThinLayerX0 * kThinLayers / thin, &kThin});
  for (int i = 0; i < thick; ++i) all.push_back({kThickLayerX0 * kThickLayers / thick, &kThick});
  return all;
}

// Showers at 90 degrees in GeV, in a cube of 127.5 mm with so many cells along each axis.
Detector cube(DetectorKind kind, std::string_view name, std::uint32_t cells,
              std::vector<DetectorLayer> layers) {
  return {kind,
          name,
          DataSchema::kLcdFixed,
          {cells, cells, cells},
          kCellMm * 25 / cells,
          std::move(layers),
          1.0,
          kRightAngle,
          kRightAngle};
}

}  // namespace

const Detector& detector(DetectorKind kind) {
  // In the order of the kinds. The coarser cubes keep the boundary of the two structures: each of
  // the last four layers of kFixed12 is two thick layers.
  static const std::array<Detector, kDetectorKinds.size()> detectors{
      cube(DetectorKind::kFixed25, "lcd-fixed-25", 25, layers(kThinLayers, kThickLayers)),
      Detector{DetectorKind::kAngle51,
               "lcd-angle-51",
               DataSchema::kLcdAngle,
               {51, 51, 25},
               kCellMm,
               layers(kThinLayers, kThickLayers),
               50.0,
               kLowestAngle,
               2 * kLowestAngle},
      cube(DetectorKind::kFixed12, "lcd-fixed-12", 12, layers(8, 4)),
      cube(DetectorKind::kFixed4, "lcd-fixed-4", 4, layers(2, 2))};
  return detectors.at(static_cast<std::size_t>(kind));
}

std::optional<DetectorKind> find_detector(std::string_view name) {
  for (const DetectorKind kind : kDetectorKinds) {
    if (detector(kind).name == name) return kind;
  }
  return std::nullopt;
}

std::optional<DetectorKind> find_detector(DataSchema schema, std::array<std::uint32_t, 3> shape) {
  for (const DetectorKind kind : kDetectorKinds) {
    if (detector(kind).schema == schema && detector(kind).shape == shape) return kind;
  }
  return std::nullopt;
}

}  // namespace troupe::pipeline

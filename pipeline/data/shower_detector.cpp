#include "pipeline/data/shower_detector.h"

#include <numbers>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

// 2.4 mm (thin) and 4.8 mm (thick) tungsten with 0.5 mm silicon. The same silicon sees half as
// large a part of the energy behind twice the tungsten.
constexpr AbsorberMixture kThin{8.00, 18.95, 1.0};
constexpr AbsorberMixture kThick{5.77, 14.4, 0.5};
constexpr double kThinLayerX0 = 0.699;
constexpr double kThickLayerX0 = 1.384;
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

}  // namespace

const Detector& detector(DetectorKind kind) {
  static const Detector fixed25{DetectorKind::kFixed25,
                                "lcd-fixed-25",
                                DataSchema::kLcdFixed,
                                {25, 25, 25},
                                kCellMm,
                                layers(kThinLayers, kThickLayers),
                                1.0,
                                kRightAngle,
                                kRightAngle};
  static const Detector angle51{DetectorKind::kAngle51,
                                "lcd-angle-51",
                                DataSchema::kLcdAngle,
                                {51, 51, 25},
                                kCellMm,
                                layers(kThinLayers, kThickLayers),
                                50.0,
                                kLowestAngle,
                                2 * kLowestAngle};
  // Eight layers and four: the boundary of the structures is kept, and each of the last four is two
  // thick layers.
  static const Detector fixed12{DetectorKind::kFixed12,
                                "lcd-fixed-12",
                                DataSchema::kLcdFixed,
                                {12, 12, 12},
                                kCellMm * 25 / 12,
                                layers(8, 4),
                                1.0,
                                kRightAngle,
                                kRightAngle};
  static const Detector fixed4{
      DetectorKind::kFixed4, "lcd-fixed-4", DataSchema::kLcdFixed, {4, 4, 4},  kCellMm * 25 / 4,
      layers(2, 2),          1.0,           kRightAngle,           kRightAngle};
  switch (kind) {
    case DetectorKind::kFixed25:
      return fixed25;
    case DetectorKind::kAngle51:
      return angle51;
    case DetectorKind::kFixed12:
      return fixed12;
    case DetectorKind::kFixed4:
      return fixed4;
  }
  CHECK(false, "no such detector");
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

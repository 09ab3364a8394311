#include "pipeline/data/data_schema.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

// Losses divide by energies and sums of cells, so events without any energy are cut.
constexpr float kAnyEnergy = 0;

const std::array<SchemaFacts, 7>& table() {
  static const std::array<SchemaFacts, 7> facts{{
      {.schema = DataSchema::kLcdFixed,
       .text = "lcd-fixed",
       .format = FileFormat::kHdf5,
       .names = {.energy = "target", .energy_column = 1},
       .preprocessing = {.threshold = 1e-6f, .min_ecal = kAnyEnergy},
       .units_per_gev = 1,
       .parts = "datasets ECAL and target"},
      {.schema = DataSchema::kLcdAngle,
       .text = "lcd-angle",
       .format = FileFormat::kHdf5,
       .names = {.energy = "energy", .angle = "theta"},
       .preprocessing = {.min_ecal = 10, .power = 0.85},
       .units_per_gev = 50,
       .parts = "datasets ECAL, energy, and theta or mtheta"},
      {.schema = DataSchema::kCustom,
       .text = "custom",
       .format = FileFormat::kHdf5,
       .names = {},
       .preprocessing = {},
       .units_per_gev = 1,
       .parts = "datasets of any names"},
      {.schema = DataSchema::kNnlo,
       .text = "nnlo",
       .format = FileFormat::kHdf5,
       .names = {.images = {"X"}, .energy = "y/b", .energy_unit_gev = 100},
       .preprocessing = {.threshold = 1e-6f, .min_ecal = kAnyEnergy},
       .units_per_gev = 1,
       .parts = "datasets X and y/b"},
      {.schema = DataSchema::kCaloChallenge,
       .text = "calochallenge",
       .format = FileFormat::kHdf5,
       .names = {.images = {"showers"}, .energy = "incident_energies", .energy_unit_gev = 0.001},
       .preprocessing = {.min_ecal = kAnyEnergy, .scale = 0.001f},
       .units_per_gev = 1000,
       .parts = "datasets showers and incident_energies"},
      {.schema = DataSchema::kIdx,
       .text = "idx",
       .format = FileFormat::kIdx,
       .names =
           {.images = {"images"}, .energy = "labels", .energy_offset = 1, .energy_unit_gev = 10},
       .preprocessing = {.min_ecal = kAnyEnergy, .scale = 1.0f / 255},
       .units_per_gev = 1,
       .parts = "a file of images and one of labels beside it"},
      {.schema = DataSchema::kTfRecord,
       .text = "tfrecord",
       .format = FileFormat::kTfRecord,
       .names = {.energy = "energy"},
       .preprocessing = {.min_ecal = kAnyEnergy},
       .units_per_gev = 1,
       .parts = "features ECAL and energy"},
  }};
  return facts;
}

}  // namespace

std::span<const SchemaFacts> all_schemas() { return table(); }

const SchemaFacts& facts_of(DataSchema schema) {
  const auto found = std::ranges::find(table(), schema, &SchemaFacts::schema);
  CHECK(found != table().end(), "a schema without facts");
  return *found;
}

std::string_view text(DataSchema schema) { return facts_of(schema).text; }

std::string_view text(FileFormat format) {
  switch (format) {
    case FileFormat::kHdf5:
      return "HDF5";
    case FileFormat::kIdx:
      return "IDX";
    case FileFormat::kTfRecord:
      return "TFRecord";
  }
  CHECK(false, "no such format");
}

std::optional<DataSchema> parse_schema(std::string_view word) {
  for (const SchemaFacts& facts : table()) {
    if (facts.text == word) return facts.schema;
  }
  return std::nullopt;
}

Preprocessing default_preprocessing(DataSchema schema) { return facts_of(schema).preprocessing; }
DatasetNames default_names(DataSchema schema) { return facts_of(schema).names; }

}  // namespace troupe::pipeline

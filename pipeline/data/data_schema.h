#pragma once

// The schemas of data files: which parts hold images and conditions, in which units.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::pipeline {

// Numbers are kept in indices: new ones come at the end.
enum class DataSchema : std::uint8_t {
  kLcdFixed,  // HDF5: ECAL in GeV, target (N,>=2) with the energy in GeV in column 1; 90 degrees
  kLcdAngle,  // HDF5: ECAL in GeV x 50, energy (N) in GeV, theta and/or mtheta (N) in radians
  kCustom,    // HDF5: the names of DatasetNames, nothing assumed about units
  kNnlo,      // HDF5: X in GeV, y/b the energy in 100 GeV; 90 degrees
  kCaloChallenge,  // HDF5: showers (N,voxels) and incident_energies in MeV; 90 degrees
  kIdx,            // IDX images, and their labels in a file beside them
  kTfRecord,       // TFRecord of tf.train.Example: ECAL, energy, by default in GeV
};

// The formats of files.
enum class FileFormat : std::uint8_t { kHdf5, kIdx, kTfRecord };

// The names of the parts of a file. "group/name" reaches into groups of HDF5.
struct DatasetNames {
  // Rows of numbers. The image of an event has those of several parts one behind the other.
  std::vector<std::string> images = {"ECAL"};
  std::string energy = {};     // (N), (N,1) or (N,C)
  int energy_column = 0;       // which of the C columns
  double energy_offset = 0;    // added to the stored number before the unit
  double energy_unit_gev = 1;  // GeV per stored unit: 100 where E/100 is stored
  std::string angle = {};      // (N) in radians; empty: every event at pi/2

  bool operator==(const DatasetNames&) const = default;
};

// The steps from a stored image to what a model sees, in this order.
struct Preprocessing {
  float threshold = 0;  // cells under it become 0; stored units
  float min_ecal = -1;  // events whose sum of the remaining cells is not above it are cut; stored
                        // units; negative: no cut
  float scale = 1;      // factor on every cell; ecal is the sum after it and before the power
  double power = 1;     // exponent of every cell, by runtime/base/math.h
};

// The facts about one schema.
struct SchemaFacts {
  DataSchema schema;
  std::string_view text;  // the word of topology files and reports
  FileFormat format;
  DatasetNames names;           // no energy: the user has to give them
  Preprocessing preprocessing;  // as the literature has it
  double units_per_gev;         // stored units of a cell in a GeV
  std::string_view parts;       // for people: what a file must have
};

std::span<const SchemaFacts> all_schemas();
const SchemaFacts& facts_of(DataSchema schema);

std::string_view text(DataSchema schema);
std::string_view text(FileFormat format);  // "HDF5", "IDX", "TFRecord"
// The schema with that text, or nothing.
std::optional<DataSchema> parse_schema(std::string_view word);

// facts_of(schema).preprocessing and .names.
Preprocessing default_preprocessing(DataSchema schema);
DatasetNames default_names(DataSchema schema);

}  // namespace troupe::pipeline

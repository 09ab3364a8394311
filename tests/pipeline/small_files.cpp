#include "tests/pipeline/small_files.h"

#include <cstddef>
#include <ostream>

#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/format_fixture.h"

namespace troupe::pipeline {
namespace {

// As lcd-fixed in this layout.
auto stored_as(const StorageLayout& layout) {
  return [layout](const std::string& folder, DatasetOptions& options) {
    SmallData data(12);
    data.images = layout;
    data.write(folder + "/a.h5");
    options.paths = {folder + "/a.h5"};
    return options.paths[0];
  };
}

std::string write_angles(const std::string& folder, DatasetOptions& options) {
  const SmallData data(6);
  Hdf5Scribe file(folder + "/a.h5");
  file.add("ECAL", {6, 3, 4, 5}, data.cells, {.chunk = {2, 3, 4, 5}, .gzip = 1});
  file.add("energy", {6}, {50, 60, 70, 80, 90, 100});
  file.add("mtheta", {6}, {1.1f, 1.2f, 1.3f, 1.4f, 1.5f, 1.6f}, {.type = StoredType::kFloat64});
  options.paths = {folder + "/a.h5"};
  return options.paths[0];
}

std::string write_nnlo(const std::string& folder, DatasetOptions& options) {
  const SmallData data(4);
  Hdf5Scribe file(folder + "/a.h5");
  file.add("X", {4, 3, 4, 5, 1}, data.cells, {.chunk = {2, 3, 4, 5, 1}, .gzip = 1});
  file.add("y/b", {4, 1}, {0.5f, 1.0f, 1.5f, 2.0f});
  options.paths = {folder + "/a.h5"};
  return options.paths[0];
}

std::string write_custom(const std::string& folder, DatasetOptions& options) {
  const SmallData data(4);
  Hdf5Scribe file(folder + "/a.h5");
  file.add("deep/cells", {4, 3, 4, 5}, data.cells, {.type = StoredType::kHalf});
  file.add("truth/e", {4}, {1, 2, 3, 4}, {.type = StoredType::kInteger});
  options.paths = {folder + "/a.h5"};
  options.names = DatasetNames{.images = {"deep/cells"}, .energy = "truth/e"};
  return options.paths[0];
}

std::string write_joined(const std::string& folder, DatasetOptions& options) {
  const SmallData data(6);
  Hdf5Scribe file(folder + "/a.h5");
  file.add("ECAL", {6, 3, 4, 5}, data.cells, {.chunk = {2, 3, 4, 5}, .gzip = 1});
  file.add("HCAL", {6, 2, 2}, std::vector<float>(24, 1.5f), {.chunk = {4, 2, 2}, .gzip = 1});
  file.add("target", {6, 2}, data.target);
  options.names = default_names(DataSchema::kLcdFixed);
  options.names->images = {"ECAL", "HCAL"};
  options.paths = {folder + "/a.h5"};
  return options.paths[0];
}

std::string write_voxels(const std::string& folder, DatasetOptions& options) {
  Hdf5Scribe file(folder + "/a.h5");
  std::vector<float> showers(5 * 8);
  for (std::size_t i = 0; i < showers.size(); ++i) showers[i] = static_cast<float>(i % 7);
  file.add("showers", {5, 8}, showers, {.chunk = {2, 8}, .gzip = 1});
  file.add("incident_energies", {5, 1}, {1000, 2000, 4000, 8000, 16000});
  write_text(folder + "/binning.xml", small_binning());
  options.paths = {folder + "/a.h5"};
  options.binning = folder + "/binning.xml";
  return options.paths[0];
}

std::string write_binning(const std::string& folder, DatasetOptions& options) {
  write_voxels(folder, options);
  return options.binning;
}

auto digits(bool packed) {
  return [packed](const std::string& folder, DatasetOptions& options) {
    options.paths = {SmallDigits{5}.write(folder, "train", packed)};
    return options.paths[0];
  };
}

std::string write_labels(const std::string& folder, DatasetOptions& options) {
  options.paths = {SmallDigits{5}.write(folder, "train")};
  return folder + "/train-labels-idx1-ubyte";
}

auto records(bool packed) {
  return [packed](const std::string& folder, DatasetOptions& options) {
    options.paths = {folder + "/a.tfrecord"};
    write_text(options.paths[0], packed ? gzip_text(small_records(3)) : small_records(3));
    return options.paths[0];
  };
}

}  // namespace

void PrintTo(const SmallFile& file, std::ostream* out) { *out << file.name; }

std::vector<SmallFile> small_files() {
  return {SmallFile{"gzip", DataSchema::kLcdFixed, stored_as({.chunk = {4, 3, 4, 5}, .gzip = 2})},
          SmallFile{"pieces", DataSchema::kLcdFixed,
                    stored_as({.chunk = {5, 2, 2, 3}, .shuffle = true, .gzip = 2})},
          SmallFile{"by_the_library", DataSchema::kLcdFixed,
                    stored_as({.chunk = {4, 3, 4, 5}, .fletcher = true, .nbit = true})},
          SmallFile{"contiguous", DataSchema::kLcdFixed, stored_as({})},
          SmallFile{"angles", DataSchema::kLcdAngle, write_angles},
          SmallFile{"nnlo", DataSchema::kNnlo, write_nnlo},
          SmallFile{"custom", DataSchema::kCustom, write_custom},
          SmallFile{"joined", DataSchema::kLcdFixed, write_joined},
          SmallFile{"voxels", DataSchema::kCaloChallenge, write_voxels},
          SmallFile{"binning", DataSchema::kCaloChallenge, write_binning},
          SmallFile{"idx", DataSchema::kIdx, digits(false)},
          SmallFile{"packed_idx", DataSchema::kIdx, digits(true)},
          SmallFile{"labels", DataSchema::kIdx, write_labels},
          SmallFile{"records", DataSchema::kTfRecord, records(false)},
          SmallFile{"packed_records", DataSchema::kTfRecord, records(true)}};
}

}  // namespace troupe::pipeline

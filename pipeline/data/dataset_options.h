#pragma once

// How a dataset is named, cut, split and kept: plain options, composed and parsed by config.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::pipeline {

// The datasets that a file holds, and their units.
enum class DataSchema : std::uint8_t {
  kLcdFixed,  // ECAL (N,X,Y,Z) in GeV, target (N,>=2) with the energy in GeV in column 1; 90
              // degrees
  kLcdAngle,  // ECAL (N,X,Y,Z) in GeV x 50, energy (N) in GeV, theta and/or mtheta (N) in radians
  kCustom,    // the names of DatasetNames, nothing assumed about units
};

enum class DataSplit : std::uint8_t { kAll, kTrain, kTest };
enum class CacheMode : std::uint8_t { kNone, kMemory };
enum class BadEventPolicy : std::uint8_t { kFail, kSkip };

// The words used in topology files and reports: "lcd-fixed", "train", "memory", "skip", ...
std::string_view text(DataSchema schema);
std::string_view text(DataSplit split);
std::string_view text(CacheMode mode);
std::string_view text(BadEventPolicy policy);
// The schema with that text, or nothing.
std::optional<DataSchema> parse_schema(std::string_view word);

// The names of the datasets in a file; "group/name" reaches into groups.
struct DatasetNames {
  std::string image = "ECAL";  // (N,X,Y,Z) or (N,X,Y,Z,1), floating point
  std::string energy;          // (N), (N,1) or (N,C)
  int energy_column = 0;       // which of the C columns
  double energy_unit_gev = 1;  // GeV per stored unit: 100 where E/100 is stored
  std::string angle;           // (N) in radians; empty: every event at pi/2
};

// The steps from a stored image to what a model sees, in this order.
struct Preprocessing {
  float threshold = 0;  // cells under it become 0; stored units
  float min_ecal = -1;  // events whose sum of the remaining cells is not above it are cut; stored
                        // units; negative: no cut
  float scale = 1;      // factor on every cell; ecal is the sum after it and before the power
  double power = 1;     // exponent of every cell, by runtime/base/math.h
};

// The preprocessing that the literature uses for the schema: lcd-fixed (threshold 1e-6; events
// without any energy are cut, as losses divide by it), lcd-angle (keep ecal > 10, power 0.85),
// custom (nothing).
Preprocessing default_preprocessing(DataSchema schema);
// ECAL and target column 1; ECAL, energy and theta; nothing.
DatasetNames default_names(DataSchema schema);

struct DatasetOptions {
  // Files or glob patterns (*, ?, [..]), sorted bytewise and without repeats they are one dataset.
  std::vector<std::string> paths;
  DataSchema schema = DataSchema::kLcdFixed;
  // Unset: default_names(schema). With lcd-angle, mtheta is taken where theta is missing.
  std::optional<DatasetNames> names;
  // Unset: default_preprocessing(schema).
  std::optional<Preprocessing> preprocessing;
  // X, Y, Z that the images must have; all 0: whatever the first file has.
  std::array<std::uint32_t, 3> expected_shape{};
  DataSplit split = DataSplit::kAll;
  // One file (or event) in `test_one_in` is for testing: the last of the files with the same name
  // up to the first '_' where there are `test_one_in` or more of them, else the last events of each
  // file. 0: no event is.
  std::uint32_t test_one_in = 10;
  // kMemory: every event is read once at opening and kept, zeros packed. kNone: the chunks of the
  // last `window_bytes` are kept; sample by blocks then (sampler.h).
  CacheMode cache = CacheMode::kMemory;
  // Bytes of decoded images that a shuffling window may cover when cache is kNone.
  std::uint64_t window_bytes = 256ULL << 20;
  // Threads that decompress and preprocess, the caller of open() and read() being one of them.
  int threads = 1;
  // An event with a NaN, an infinite or a negative cell, an energy not above 0, an angle outside
  // (0, pi), or values that no float holds once preprocessed: an Error from open(), or left out and
  // counted.
  BadEventPolicy on_bad_event = BadEventPolicy::kFail;
  // Folder for the index of each file, found again by path, size and modification time; created
  // if missing. Empty: nothing is kept.
  std::string index_folder;
};

}  // namespace troupe::pipeline

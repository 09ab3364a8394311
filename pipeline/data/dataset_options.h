#pragma once

// How a dataset is named, cut, split and kept: plain options, composed and parsed by config.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/data/data_schema.h"

namespace troupe::pipeline {

enum class DataSplit : std::uint8_t { kAll, kTrain, kTest };
enum class CacheMode : std::uint8_t { kNone, kMemory, kDisk, kShard };
enum class BadEventPolicy : std::uint8_t { kFail, kSkip };

// The words used in topology files and reports: "train", "memory", "skip", ...
std::string_view text(DataSplit split);
std::string_view text(CacheMode mode);
std::string_view text(BadEventPolicy policy);
// The cells of an image along its axes, and the channels of each cell.
struct ImageShape {
  std::array<std::uint32_t, 3> space{};  // X, Y, Z; an image without depth has Z = 1
  std::uint32_t channels = 1;

  bool is_known() const { return space != std::array<std::uint32_t, 3>{}; }
  // Numbers of one image.
  std::size_t size() const { return std::size_t{space[0]} * space[1] * space[2] * channels; }
  std::string text() const;  // "25 x 25 x 25", "32 x 32 x 1 x 3" with three channels
  bool operator==(const ImageShape&) const = default;
};

// Further numbers of events, one each.
struct DataColumn {
  // The part that holds them: NAME of (N) or (N,C), whose first column it is, NAME.K for column K,
  // or NAME.largest for the number of the row's largest column, the first of equal ones: the class
  // that a row of one-hot labels tells. A part whose own name ends like that comes first.
  std::string name;
  // What they may be, an event with another number being bad; empty: any finite one.
  std::vector<double> values = {};
  bool is_probability = false;  // a number beyond 0 to 1 makes an event bad, too
  std::int64_t classes = 0;     // above 0: only whole numbers from 0 to below it are good

  bool operator==(const DataColumn&) const = default;
};

struct DatasetOptions {
  // Files or glob patterns (*, ?, [..]), sorted bytewise and without repeats they are one dataset.
  std::vector<std::string> paths;
  // The addresses that paths are copies of, by path: these sort by their addresses, so that the
  // order of files is the same on every machine.
  std::map<std::string, std::string> origins = {};
  DataSchema schema = DataSchema::kLcdFixed;
  // Unset: default_names(schema). With lcd-angle, mtheta is taken where theta is missing.
  std::optional<DatasetNames> names;
  // Numbers that come with every event (Batch::column), in this order.
  std::vector<DataColumn> columns = {};
  // Unset: default_preprocessing(schema).
  std::optional<Preprocessing> preprocessing;
  // With calochallenge: the XML file of the binning. Showers are then boxes of angles, radii and
  // layers (calo_binning.h), else vectors.
  std::string binning;
  // The shape that images must have; not known: that of the first file.
  ImageShape expected_shape;
  DataSplit split = DataSplit::kAll;
  // One file (or event) in `test_one_in` is for testing: the last of the files with the same name
  // up to the first '_' where there are `test_one_in` or more of them, else the last events of each
  // file. 0: no event is.
  std::uint32_t test_one_in = 10;
  // Which of the parts it is that are as large, counted from 0, the last one first.
  std::uint32_t test_part = 0;
  // The split ends with so many accepted events, and files behind them are not read; 0: no bound.
  std::uint64_t events = 0;
  // kMemory: every event is read once at opening and kept, zeros packed. kDisk: the same in files
  // of `cache_folder`, which the processes of a machine share (packed_file.h). kNone: the chunks of
  // the last `window_bytes` are kept; sample by blocks then (sampler.h). kShard: of those events
  // that Dataset::want() has named, `shard_bytes` are kept, in any order.
  CacheMode cache = CacheMode::kMemory;
  // For kDisk, created if missing; and what all files there may take, 0: no bound (shared_file.h).
  std::string cache_folder;
  std::uint64_t cache_limit = 0;
  // Bytes of decoded images that a shuffling window may cover when cache is kNone.
  std::uint64_t window_bytes = 256ULL << 20;
  // For kShard.
  std::uint64_t shard_bytes = 256ULL << 20;
  // Threads that decompress and preprocess, the caller of open() and read() being one of them; 0:
  // one, until Dataset::set_threads() says otherwise.
  int threads = 1;
  // An event with a NaN, an infinite or a negative cell, an energy not above 0, an angle outside
  // (0, pi), a number in a column that may not be there, or values that no float holds once
  // preprocessed: an Error from open(), or left out and counted.
  BadEventPolicy on_bad_event = BadEventPolicy::kFail;
  // Folder for the index of each file, found again by path, size and modification time; created
  // if missing. Empty: nothing is kept.
  std::string index_folder;
};

}  // namespace troupe::pipeline

#pragma once

// Events of files as preprocessed micro-batches. Opening decides once which events there are, so
// reading never meets a bad one.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/data/dataset_options.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"

namespace troupe::pipeline {

// b events as a model takes them. Three Buffers, so that a message can carry them as they are.
struct Batch {
  std::uint32_t events = 0;
  ImageShape shape;
  runtime::Buffer images;  // float [events][X][Y][Z][channels]
  // float [3 + columns][events]: E / 100 GeV, theta in rad, ecal, DatasetOptions::columns as stored
  runtime::Buffer conditions;
  runtime::Buffer event_ids;  // uint64 [events]

  std::span<const float> energies() const { return conditions.as<float>().subspan(0, events); }
  // pi/2 throughout where the schema has no angle.
  std::span<const float> angles() const { return conditions.as<float>().subspan(events, events); }
  // Sum of the event's cells after threshold and scale, before the power.
  std::span<const float> ecals() const {
    return conditions.as<float>().subspan(2 * events, events);
  }
  // CHECKs that there are so many.
  std::span<const float> column(std::size_t index) const {
    CHECK((4 + index) * events <= conditions.as<float>().size(), "no such column");
    return conditions.as<float>().subspan((3 + index) * events, events);
  }
};

// The result of opening.
struct DatasetReport {
  std::uint64_t files = 0;
  std::uint64_t rows = 0;               // stored events of all files
  std::uint64_t bad = 0;                // left out as bad (on_bad_event: skip)
  std::uint64_t cut = 0;                // not above min_ecal
  std::uint64_t other_split = 0;        // belong to the other split
  std::uint64_t beyond = 0;             // behind the last event of DatasetOptions::events
  std::uint64_t events = 0;             // rows - bad - cut - other_split - beyond
  std::uint64_t bytes_in_memory = 0;    // packed events held at the end of opening
  std::uint64_t bytes_on_disk = 0;      // packed events in files of the cache folder
  std::vector<std::string> bad_events;  // the first few, as file: dataset, event: what
  std::vector<std::string> notes;       // what is slower or other than one may think
};

// How far opening is. With a memory cache, or without a kept index, opening takes as long as
// reading all files.
struct OpeningProgress {
  std::uint64_t rows = 0;             // stored events done with
  std::uint64_t all_rows = 0;         // of the files that have some of the split
  std::uint64_t bytes_in_memory = 0;  // of the packed events so far
};
// Told after each block, by any thread of the team, one at a time. An Error ends the opening.
using OpeningWatch = std::function<runtime::Result<void>(const OpeningProgress& progress)>;

// Owned and used by one thread at a time; its own ThreadTeam helps inside open() and read().
class Dataset {
 public:
  // Expands the paths, checks every file against the schema, scans (or finds in index_folder) the
  // index, applies the cuts, fills the memory cache. Every Error but those of `watch` is kData and
  // names file, dataset and event where there is one, and what was expected.
  static runtime::Result<Dataset> open(const DatasetOptions& options,
                                       const OpeningWatch& watch = {});
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  ~Dataset();

  // Accepted events of the split; the valid event ids are 0 .. size() - 1, in the order of the
  // sorted files and their rows. At least 1.
  std::uint64_t size() const;
  const ImageShape& shape() const;

  // Fills `out` with the events in the order of `ids`; its buffers are new ones, so an earlier
  // batch may still be in use. CHECKs the ids. An Error (file vanished, became unreadable) leaves
  // `out` unspecified.
  runtime::Result<void> read(std::span<const std::uint64_t> ids, Batch& out);

  // From now on so many threads read, the caller of read() being one of them; from 1.
  void set_threads(int threads);
  // How many events want() takes at a time, from 1; 0 without CacheMode::kShard. Grows when events
  // turn out to be small once packed.
  std::uint64_t most_wanted() const;
  // With CacheMode::kShard: read() will be asked for these, for those in front first, so they are
  // kept and all others are let go. Those of the first `front` that are not here yet are read from
  // their files now, or a part of them with each of the next `reads` calls of read(); and with them
  // what else of `ids` stands in the same blocks. An event that is not here when read() is asked
  // for it is read then. CHECKs the ids. Errors as read().
  runtime::Result<void> want(std::span<const std::uint64_t> ids, std::size_t front,
                             std::size_t reads);

  // E in GeV / 100 of an event, without reading its image. CHECKs the id.
  float energy(std::uint64_t id) const;

  // Accepted events of each stored block (a row of chunks), in order of ids: what the sampler's
  // block order needs. Blocks without accepted events are left out.
  const std::vector<std::uint32_t>& blocks() const;
  // How many blocks a shuffling window covers: 0 (all; any order is cheap) but with kNone.
  std::uint32_t window_blocks() const;

  // Hash of everything the values, ids and order of the events depend on: content of the files (not
  // their names or compression), which of their rows are taken, schema, preprocessing and split;
  // without a memory cache also blocks() and window_blocks(), and with them the files' chunks.
  runtime::Hash128 fingerprint() const;
  const DatasetReport& report() const;

 private:
  struct State;
  explicit Dataset(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::pipeline

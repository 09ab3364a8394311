#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"
#include "pipeline/data/dataset_state.h"
#include "pipeline/data/shared_file.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::size_t kMostBadEvents = 8;
constexpr std::uint64_t kFingerprintVersion = 2;

Result<void> check_options(const DatasetOptions& options, const DatasetNames& names) {
  if (!options.binning.empty() && options.schema != DataSchema::kCaloChallenge) {
    return Error{ErrorKind::kData, fmt::format("data.binning acts only with schema calochallenge; "
                                               "the schema is {}",
                                               text(options.schema))};
  }
  if (options.cache == CacheMode::kDisk && options.cache_folder.empty()) {
    return Error{ErrorKind::kData, "data.cache: disk needs a data.cache_folder"};
  }
  if (options.threads < 0 || options.threads > 1024) {
    return Error{ErrorKind::kData,
                 fmt::format("data: {} loader threads; expected 0 to 1024", options.threads)};
  }
  if (names.images.empty() || std::ranges::count(names.images, "") > 0 || names.energy.empty() ||
      names.energy_column < 0) {
    return Error{ErrorKind::kData,
                 "data: the custom schema needs the names of the datasets that "
                 "hold the images and the energies"};
  }
  return {};
}

void hash_rules(const DatasetOptions& options, const Preprocessing& preprocessing,
                runtime::Hasher& hasher) {
  hasher.add_value(kFingerprintVersion);
  hasher.add(text(options.schema));
  hasher.add(text(options.split));
  hasher.add_value(options.test_one_in);
  if (options.test_part > 0) hasher.add_value(options.test_part);
  hasher.add_value(preprocessing.threshold);
  hasher.add_value(preprocessing.min_ecal);
  hasher.add_value(preprocessing.scale);
  hasher.add_value(preprocessing.power);
}

}  // namespace

Dataset::State::State(const DatasetOptions& given)
    : options(given),
      layout{given.schema, given.names.value_or(default_names(given.schema)), given.binning,
             given.columns},
      preprocessing(given.preprocessing.value_or(default_preprocessing(given.schema))),
      team(std::make_unique<runtime::ThreadTeam>(std::max(1, given.threads))),
      shape(given.expected_shape) {}

Result<Dataset> Dataset::open(const DatasetOptions& options, const OpeningWatch& watch) {
  const DatasetNames names = options.names.value_or(default_names(options.schema));
  RETURN_IF_ERROR(check_options(options, names));
  auto state = std::make_unique<State>(options);
  RETURN_IF_ERROR(state->open_all(watch));
  return Dataset(std::move(state));
}

Result<void> Dataset::State::Opening::add(std::uint64_t rows, std::uint64_t packed_bytes) {
  const std::scoped_lock lock(mutex);
  progress.rows += rows;
  progress.bytes_in_memory += packed_bytes;
  return watch ? watch(progress) : Result<void>{};
}

BlockVisitor Dataset::State::Opening::counter() {
  return [this](std::uint32_t, std::span<const EventState> states, std::span<const float>) {
    return add(states.size(), 0);
  };
}

Result<void> Dataset::State::open_all(const OpeningWatch& watch) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   expand_paths(options.paths, options.origins));
  // Every file is opened before one is read, because the split depends on the rows of all of them,
  // and a file that does not fit is refused at once.
  std::vector<std::uint64_t> rows;
  std::vector<FileStamp> stamps;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const DatasetFile opened,
                     DatasetFile::open(path, layout, options.expected_shape));
    RETURN_IF_ERROR(check_shape(opened, paths.front()));
    if (!opened.images().note().empty()) report.notes.push_back(opened.images().note());
    rows.push_back(opened.rows());
    stamps.push_back(opened.stamp());
  }
  report.files = paths.size();
  report.rows = std::accumulate(rows.begin(), rows.end(), report.rows);
  report.other_split = report.rows;
  Opening opening{watch, {}, {}, {}};
  for (const auto& [file, range] :
       split_rows(paths, rows, options.split, {options.test_one_in, options.test_part})) {
    files.push_back({paths[file], stamps[file], range});
    report.other_split -= range.end - range.first;
    if (range.first != range.end) opening.progress.all_rows += rows[file];
  }
  hash_rules(options, preprocessing, content);
  for (std::uint32_t i = 0; i < files.size(); ++i) {
    const std::uint64_t in_split = files[i].rows.end - files[i].rows.first;
    if (events_left() == 0) {
      report.beyond += in_split;
    } else if (in_split > 0) {
      RETURN_IF_ERROR(open_file(i, opening));
    }
  }
  report.events = energies.size();
  if (energies.empty()) return nothing_left();
  const std::uint64_t window =
      std::max<std::uint64_t>(1, options.window_bytes / largest_block_bytes);
  if (options.cache == CacheMode::kNone && window < blocks.size()) {
    // A sampler shuffles by windows of blocks, so both decide the order of the events.
    window_blocks = static_cast<std::uint32_t>(window);
    content.add_value(window_blocks);
    content.add(std::as_bytes(std::span(block_events)));
  }
  fingerprint = content.digest();
  // There is room for two windows, as a batch may begin in one and end in the next.
  store.reset(blocks.size(), options.cache == CacheMode::kNone ? 2 * window : 0);
  if (options.cache == CacheMode::kShard) shard.emplace(options.shard_bytes);
  for (std::uint32_t i = 0; i < opening.packed.size(); ++i) {
    store.put(i, std::move(opening.packed[i]));
  }
  report.bytes_in_memory = store.bytes();
  return {};
}

// With a memory cache, appends the packed events of each of the file's blocks that has any.
Result<void> Dataset::State::open_file(std::uint32_t file, Opening& opening) {
  File& entry = files[file];
  ASSIGN_OR_RETURN(const DatasetFile opened, DatasetFile::open(entry.path, layout, shape));
  const BlockReader& images = opened.images();
  const bool keeps = options.cache == CacheMode::kMemory;
  std::vector<std::unique_ptr<PackedEvents>> in_file(keeps ? images.blocks() : 0);
  const BlockVisitor keep = [&](std::uint32_t block, std::span<const EventState> states,
                                std::span<const float> values) {
    in_file[block] = pack(entry.rows, images.first_row(block), states, values);
    return opening.add(states.size(), in_file[block] ? in_file[block]->bytes().size() : 0);
  };
  const std::uint64_t rows_before = opening.progress.rows;
  FileIndex index;
  if (options.cache == CacheMode::kDisk) {
    ASSIGN_OR_RETURN(index, index_with_packed(entry, opened, opening));
  } else {
    ASSIGN_OR_RETURN(index, index_of(opened, entry.rows, keeps ? keep : opening.counter(), keeps));
  }
  opening.progress.rows = rows_before + index.rows();  // those that were not read, too
  const std::size_t blocks_before = blocks.size();
  take_index(file, index);
  if (index.bad > 0 && options.on_bad_event == BadEventPolicy::kFail) {
    return Error{ErrorKind::kData,
                 fmt::format("{} ({} of {} events of the file are bad; on_bad_event: skip leaves "
                             "them out)",
                             index.bad_events.front(), index.bad, index.rows())};
  }
  // Nothing is kept of blocks that no event is taken from.
  for (std::size_t i = blocks_before; keeps && i < blocks.size(); ++i) {
    opening.packed.push_back(std::move(in_file[blocks[i].number]));
  }
  return {};
}

// The index comes from the cache or from a scan. With `all`, `visitor` sees every block that has
// some of `rows` either way, else those that are read.
Result<FileIndex> Dataset::State::index_of(const DatasetFile& opened, RowRange rows,
                                           const BlockVisitor& visitor, bool all) {
  const IndexKey key = key_of(opened);
  if (options.index_folder.empty())
    return scan_file(opened, preprocessing, *team, scratch, visitor);
  auto kept = load_index(options.index_folder, key, opened.path(), opened.stamp());
  const BlockReader& images = opened.images();
  if (kept && kept->shape == opened.shape() && kept->rows() == opened.rows() &&
      kept->block_rows == images.block_rows()) {
    if (!all) return *std::move(kept);
    // The kept index replaces the scan, but a cache needs the images, so the blocks that hold rows
    // of the split are read all the same.
    std::vector<std::uint32_t> needed;
    for (std::uint32_t i = 0; i < images.blocks(); ++i) {
      const std::uint64_t first = images.first_row(i);
      if (first < rows.end && first + images.rows_of(i) > rows.first) needed.push_back(i);
    }
    const auto visit = [&](std::uint32_t block, std::span<float> values, int) {
      const auto states = std::span<const EventState>(kept->states);
      return visitor(block, states.subspan(images.first_row(block), images.rows_of(block)), values);
    };
    RETURN_IF_ERROR(images.read(needed, *team, scratch, visit));
    return *std::move(kept);
  }
  ASSIGN_OR_RETURN(FileIndex index, scan_file(opened, preprocessing, *team, scratch, visitor));
  const Result<void> saved =
      save_index(options.index_folder, key, opened.path(), opened.stamp(), index);
  if (!saved.ok()) report.notes.push_back("the index is not kept: " + saved.error().message);
  return index;
}

IndexKey Dataset::State::key_of(const DatasetFile& opened) const {
  return {layout.schema, layout.names, preprocessing, opened.box_text(), layout.columns};
}

// Processes that open the same file wait for the one that writes.
Result<FileIndex> Dataset::State::index_with_packed(File& entry, const DatasetFile& opened,
                                                    Opening& opening) {
  const BlockReader& images = opened.images();
  const IndexKey key = key_of(opened);
  const std::string path =
      kept_path(options.cache_folder + "/packed", key, opened.path(), ".events");
  const std::string identity =
      fmt::format("{}\n{} {}", index_identity(key, opened.path(), opened.stamp()),
                  images.block_rows(), shape.text());
  const auto map = [&] {
    entry.packed = PackedFile::open(path, identity, images.blocks(), shape.size());
  };
  ASSIGN_OR_RETURN(const FileTurn turn, FileTurn::wait(path));
  map();
  FileIndex index;
  if (entry.packed) {
    ASSIGN_OR_RETURN(index, index_of(opened, entry.rows, opening.counter(), false));
  } else {
    ASSIGN_OR_RETURN(PackedFileWriter writer, PackedFileWriter::create(path, images.blocks()));
    const BlockVisitor write = [&](std::uint32_t block, std::span<const EventState> states,
                                   std::span<const float> values) -> Result<void> {
      const auto events = pack({0, images.rows()}, images.first_row(block), states, values);
      if (events) RETURN_IF_ERROR(writer.add(block, *events));
      return opening.add(states.size(), 0);
    };
    ASSIGN_OR_RETURN(index, index_of(opened, {0, images.rows()}, write, true));
    if (opened.stamp_now() != opened.stamp()) return changed_data(entry.path);
    RETURN_IF_ERROR(writer.finish(identity));
    map();
    if (!entry.packed) return data_error(path + ": cannot be mapped into memory");
  }
  ASSIGN_OR_RETURN(entry.held, turn.use());
  if (!is_there_before(entry)) report.bytes_on_disk += entry.packed->bytes();
  RETURN_IF_ERROR(make_room({options.cache_folder, options.cache_limit}, 0));
  return index;
}

Result<void> Dataset::State::check_shape(const DatasetFile& opened, const std::string& first) {
  if (!shape.is_known()) shape = opened.shape();
  if (shape == opened.shape()) return {};
  return Error{ErrorKind::kData,
               fmt::format("{}: {}; expected images of {} as in {}", opened.images().place(),
                           opened.images().shape_text(), shape.text(), first)};
}

void Dataset::State::take_index(std::uint32_t file, const FileIndex& index) {
  File& entry = files[file];
  const bool is_told = is_there_before(entry);
  entry.states = index.states;
  const bool packed = entry.packed.has_value();
  const std::uint64_t last = entry.rows.end;
  end_rows(entry, index);
  report.beyond += last - entry.rows.end;
  // The number and the names of the files decide which rows are taken.
  content.add_value(entry.rows.first);
  content.add_value(entry.rows.end);
  content.add_value(index.content.high);
  content.add_value(index.content.low);
  for (std::uint64_t first = 0; first < index.rows(); first += index.block_rows) {
    const std::uint64_t end = std::min(first + index.block_rows, index.rows());
    Block block{file,
                static_cast<std::uint32_t>(first / index.block_rows),
                first,
                energies.size(),
                static_cast<std::uint32_t>(end - first),
                0,
                0};
    for (std::uint64_t row = first; row < end; ++row) {
      const EventState state = index.states[row];
      const bool is_accepted = state == EventState::kAccepted;
      block.skipped += packed && is_accepted && row < entry.rows.first;
      if (!entry.rows.has(row)) continue;
      report.bad += state == EventState::kBad;
      report.cut += state == EventState::kCut;
      if (!is_accepted) continue;
      energies.push_back(index.energies[row]);
      angles.push_back(index.angles[row]);
      ecals.push_back(index.ecals[row]);
      const auto numbers = index.columns_of(row);
      columns.insert(columns.end(), numbers.begin(), numbers.end());
      ++block.events;
    }
    if (block.events == 0) continue;
    blocks.push_back(block);
    block_events.push_back(block.events);
  }
  largest_block_bytes =
      std::max<std::uint64_t>(largest_block_bytes, index.block_rows * shape.size() * sizeof(float));
  for (const std::string& event : index.bad_events) {
    if (!is_told && report.bad_events.size() < kMostBadEvents) report.bad_events.push_back(event);
  }
}

bool Dataset::State::is_there_before(const File& entry) const {
  const auto at = static_cast<std::size_t>(&entry - files.data());
  return at > 0 && files[at - 1].path == entry.path && !files[at - 1].states.empty();
}

std::uint64_t Dataset::State::events_left() const {
  return options.events == 0 ? UINT64_MAX : options.events - energies.size();
}

void Dataset::State::end_rows(File& entry, const FileIndex& index) const {
  std::uint64_t left = events_left();
  for (std::uint64_t row = entry.rows.first; row < entry.rows.end; ++row) {
    if (left == 0) {
      entry.rows.end = row;
      return;
    }
    left -= index.states[row] == EventState::kAccepted ? 1 : 0;
  }
}

Error Dataset::State::nothing_left() const {
  return {
      ErrorKind::kData,
      fmt::format("{}{}: no events are left of {}: {} bad, {} cut (sum of cells not above {}), "
                  "{} in the other split{}",
                  files.front().path,
                  files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "",
                  report.rows, report.bad, report.cut, preprocessing.min_ecal, report.other_split,
                  report.bad_events.empty() ? "" : "; the first bad one: " + report.bad_events[0])};
}

}  // namespace troupe::pipeline

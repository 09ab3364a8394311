#include "pipeline/data/dataset.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/dataset_state.h"

namespace troupe::pipeline {

using runtime::Buffer;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

// File handles are few (the usual limit is 1024), and a window seldom spans many files.
constexpr std::size_t kOpenFiles = 16;

}  // namespace

Error Dataset::State::changed_data(const std::string& path) {
  return {ErrorKind::kData, fmt::format("{}: changed since the run opened it; start again", path)};
}

std::unique_ptr<PackedEvents> Dataset::State::pack(RowRange rows, std::uint64_t first_row,
                                                   std::span<const EventState> states,
                                                   std::span<const float> images) const {
  const std::size_t cells = images.size() / states.size();
  std::vector<std::span<const float>> taken;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool takes = states[i] == EventState::kAccepted && rows.has(first_row + i);
    if (takes) taken.push_back(images.subspan(i * cells, cells));
  }
  if (taken.empty()) return nullptr;
  return std::make_unique<PackedEvents>(taken, preprocessing);
}

std::uint32_t Dataset::State::block_of(std::uint64_t id) const {
  const auto after =
      std::upper_bound(blocks.begin(), blocks.end(), id,
                       [](std::uint64_t value, const Block& b) { return value < b.first_id; });
  return static_cast<std::uint32_t>(after - blocks.begin() - 1);
}

Result<void> Dataset::State::load(std::span<const std::uint64_t> ids) {
  std::vector<std::uint32_t> needed;
  for (const std::uint64_t id : ids) {
    CHECK(id < energies.size(), "no such event");
    needed.push_back(block_of(id));
  }
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  // Blocks are read file by file, so that each file is opened once. Blocks in memory are touched,
  // so that the next trim() keeps them.
  std::vector<std::uint32_t> missing;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    store.touch(needed[i]);
    if (!store.has(needed[i])) missing.push_back(needed[i]);
    const bool last =
        i + 1 == needed.size() || blocks[needed[i + 1]].file != blocks[needed[i]].file;
    if (!last || missing.empty()) continue;
    RETURN_IF_ERROR(load_blocks(blocks[needed[i]].file, missing));
    missing.clear();
  }
  return {};
}

Result<void> Dataset::State::load_blocks(std::uint32_t file,
                                         std::span<const std::uint32_t> wanted) {
  if (files[file].packed) return load_packed(files[file], wanted);
  ASSIGN_OR_RETURN(const DatasetFile* reader, opened(file));
  // Blocks without accepted events are left out of `blocks`, so numbers and places there differ.
  std::vector<std::uint32_t> numbers;
  for (const std::uint32_t index : wanted) numbers.push_back(blocks[index].number);
  const auto keep = [&](std::uint32_t number, std::span<float> images, int) -> Result<void> {
    const auto place = std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin();
    const std::uint32_t index = wanted[static_cast<std::size_t>(place)];
    const Block& block = blocks[index];
    auto events = pack(files[file].rows, block.first_row,
                       std::span(files[file].states).subspan(block.first_row, block.rows), images);
    store.put(index, std::move(events));
    return {};
  };
  RETURN_IF_ERROR(reader->images().read(numbers, team, scratch, keep));
  // The check comes after the reading, so that it also sees a write during the reading.
  if (reader->stamp_now() != files[file].stamp) return changed_data(files[file].path);
  return {};
}

Result<void> Dataset::State::load_packed(const File& file, std::span<const std::uint32_t> wanted) {
  for (const std::uint32_t index : wanted) {
    const Block& block = blocks[index];
    const auto states = std::span(file.states).subspan(block.first_row, block.rows);
    const auto events = std::ranges::count(states, EventState::kAccepted);
    ASSIGN_OR_RETURN(auto packed,
                     file.packed->block(block.number, static_cast<std::uint64_t>(events)));
    store.put(index, std::move(packed));
  }
  return {};
}

Result<const DatasetFile*> Dataset::State::opened(std::uint32_t file) {
  const auto found = std::find_if(open_files.begin(), open_files.end(),
                                  [file](const auto& entry) { return entry.first == file; });
  if (found != open_files.end()) {
    std::rotate(open_files.begin(), found, found + 1);
    return &open_files.front().second;
  }
  const File& entry = files[file];
  ASSIGN_OR_RETURN(DatasetFile reader, DatasetFile::open(entry.path, layout, shape));
  if (reader.stamp() != entry.stamp) return changed_data(entry.path);
  if (open_files.size() == kOpenFiles) open_files.pop_back();
  open_files.emplace(open_files.begin(), file, std::move(reader));
  return &open_files.front().second;
}

Dataset::Dataset(std::unique_ptr<State> state) : state_(std::move(state)) {}
Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

std::uint64_t Dataset::size() const { return state_->energies.size(); }
const ImageShape& Dataset::shape() const { return state_->shape; }

Result<void> Dataset::read(std::span<const std::uint64_t> ids, Batch& out) {
  State& state = *state_;
  RETURN_IF_ERROR(state.load(ids));
  const std::size_t events = ids.size();
  const std::size_t cells = state.shape.size();
  out.events = static_cast<std::uint32_t>(events);
  out.shape = state.shape;
  out.images = Buffer::allocate(events * cells * sizeof(float));
  const std::size_t columns = state.layout.columns.size();
  out.conditions = Buffer::allocate((3 + columns) * events * sizeof(float));
  out.event_ids = Buffer::copy_of(std::as_bytes(ids));
  const std::span<float> images = out.images.mutable_as<float>();
  const std::span<float> conditions = out.conditions.mutable_as<float>();
  state.team.run(static_cast<std::int64_t>(events), [&](std::int64_t index, int) {
    const auto i = static_cast<std::size_t>(index);
    const std::uint32_t block = state.block_of(ids[i]);
    const State::Block& from = state.blocks[block];
    state.store.get(block).unpack(from.skipped + ids[i] - from.first_id,
                                  images.subspan(i * cells, cells));
    conditions[i] = state.energies[ids[i]];
    conditions[events + i] = state.angles[ids[i]];
    conditions[2 * events + i] = state.ecals[ids[i]];
    for (std::size_t k = 0; k < columns; ++k) {
      conditions[(3 + k) * events + i] = state.columns[ids[i] * columns + k];
    }
  });
  // Blocks are let go when no thread reads them any more.
  state.store.trim();
  return {};
}

float Dataset::energy(std::uint64_t id) const {
  CHECK(id < size(), "no such event");
  return state_->energies[id];
}

const std::vector<std::uint32_t>& Dataset::blocks() const { return state_->block_events; }

std::uint32_t Dataset::window_blocks() const { return state_->window_blocks; }
runtime::Hash128 Dataset::fingerprint() const { return state_->fingerprint; }
const DatasetReport& Dataset::report() const { return state_->report; }

}  // namespace troupe::pipeline

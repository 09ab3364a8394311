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

Error changed_data(const std::string& path) {
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

// Kept blocks are touched, so that the next trim() keeps them.
Result<std::vector<Dataset::State::Asked>> Dataset::State::load(
    std::span<const std::uint64_t> ids) {
  std::vector<Asked> asked;
  for (const std::uint64_t id : ids) asked.push_back({id, asked.size()});
  std::ranges::sort(asked);
  CHECK(asked.empty() || asked.back().id < energies.size(), "no such event");
  if (shard) {
    RETURN_IF_ERROR(gather());
    std::erase_if(asked, [&](const Asked& each) { return shard->has(each.id); });
    return asked;
  }
  std::vector<Asked> straight;
  std::vector<std::uint32_t> missing;
  for (std::span<const Asked> left = asked; !left.empty();) {
    const std::uint32_t index = block_of(left.front().id);
    const Block& block = blocks[index];
    const std::uint64_t end = block.first_id + block.events;
    const auto next =
        std::ranges::find_if(left, [end](const Asked& each) { return each.id >= end; });
    const auto here = left.first(static_cast<std::size_t>(next - left.begin()));
    left = left.subspan(here.size());
    store.touch(index);
    if (store.has(index)) continue;
    // Nothing of a block is left to be kept when all of its events are asked for at once.
    const bool is_whole = here.size() == block.events &&
                          std::ranges::adjacent_find(here, {}, &Asked::id) == here.end();
    if (is_whole && !files[block.file].packed) {
      straight.insert(straight.end(), here.begin(), here.end());
    } else {
      missing.push_back(index);
    }
  }
  RETURN_IF_ERROR(by_file(missing, [&](std::uint32_t file, std::span<const std::uint32_t> here) {
    return load_blocks(file, here);
  }));
  return straight;
}

Result<void> Dataset::State::load_blocks(std::uint32_t file,
                                         std::span<const std::uint32_t> wanted) {
  if (files[file].packed) return load_packed(files[file], wanted);
  return read_blocks(file, wanted, [&](const Block& block, std::span<const float> images) {
    const auto states = std::span(files[file].states).subspan(block.first_row, block.rows);
    store.put(static_cast<std::uint32_t>(&block - blocks.data()),
              pack(files[file].rows, block.first_row, states, images));
  });
}

// So that each file is opened once.
Result<void> Dataset::State::by_file(
    std::span<const std::uint32_t> wanted,
    const std::function<Result<void>(std::uint32_t, std::span<const std::uint32_t>)>& work) const {
  while (!wanted.empty()) {
    const std::uint32_t file = blocks[wanted.front()].file;
    const auto end = std::ranges::find_if(
        wanted, [&](std::uint32_t index) { return blocks[index].file != file; });
    const auto here = wanted.first(static_cast<std::size_t>(end - wanted.begin()));
    wanted = wanted.subspan(here.size());
    RETURN_IF_ERROR(work(file, here));
  }
  return {};
}

Result<void> Dataset::State::read_blocks(std::uint32_t file, std::span<const std::uint32_t> wanted,
                                         const BlockSink& sink) {
  ASSIGN_OR_RETURN(const DatasetFile* reader, opened(file));
  // Blocks without accepted events are left out of `blocks`, so numbers and places there differ.
  std::vector<std::uint32_t> numbers;
  for (const std::uint32_t index : wanted) numbers.push_back(blocks[index].number);
  const auto keep = [&](std::uint32_t number, std::span<float> images, int) -> Result<void> {
    const auto place = std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin();
    sink(blocks[wanted[static_cast<std::size_t>(place)]], images);
    return {};
  };
  RETURN_IF_ERROR(reader->images().read(numbers, *team, scratch, keep));
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

std::vector<std::uint32_t> Dataset::State::blocks_of(std::span<const std::uint64_t> ids) const {
  std::vector<std::uint32_t> found;
  for (const std::uint64_t id : ids) {
    if (found.empty() || id >= blocks[found.back()].first_id + blocks[found.back()].events) {
      found.push_back(block_of(id));
    }
  }
  return found;
}

Result<void> Dataset::State::read_events(std::span<const std::uint32_t> wanted,
                                         const EventSink& sink) {
  const std::size_t cells = shape.size();
  const BlockSink each = [&](const Block& block, std::span<const float> images) {
    const File& file = files[block.file];
    std::uint64_t id = block.first_id;
    for (std::uint32_t i = 0; i < block.rows; ++i) {
      const std::uint64_t row = block.first_row + i;
      const bool is_taken = file.states[row] == EventState::kAccepted && file.rows.has(row);
      if (is_taken) sink(id++, images.subspan(i * cells, cells));
    }
  };
  return by_file(wanted, [&](std::uint32_t file, std::span<const std::uint32_t> here) {
    return read_blocks(file, here, each);
  });
}

Result<void> Dataset::State::read_straight(std::span<const Asked> asked, std::span<float> images) {
  if (asked.empty()) return {};
  std::vector<std::uint64_t> ids;
  for (const Asked& each : asked) ids.push_back(each.id);
  return read_events(blocks_of(ids), [&](std::uint64_t id, std::span<const float> stored) {
    auto each = std::ranges::lower_bound(asked, id, {}, &Asked::id);
    for (; each != asked.end() && each->id == id; ++each) {
      preprocess_cells(stored, preprocessing,
                       images.subspan(each->place * stored.size(), stored.size()));
    }
  });
}

Result<void> Dataset::State::gather() {
  const std::size_t left = coming.blocks.size() - coming.next;
  if (left == 0) return {};
  // One for each thread at least.
  const std::size_t part = coming.reads > 1 ? (left - 1) / coming.reads + 1 : left;
  const std::size_t threads = static_cast<std::size_t>(team->threads());
  const std::size_t count = std::min(left, (part + threads - 1) / threads * threads);
  if (coming.reads > 0) --coming.reads;
  const auto now = std::span<const std::uint32_t>(coming.blocks).subspan(coming.next, count);
  coming.next += count;
  std::mutex mutex;  // of the shard
  return read_events(now, [&](std::uint64_t id, std::span<const float> stored) {
    if (!std::ranges::binary_search(coming.ids, id)) return;
    PackedEvents event({&stored, 1}, preprocessing);
    const std::scoped_lock lock(mutex);
    shard->put(id, std::move(event));
  });
}

void Dataset::State::unpack(std::uint64_t id, std::span<float> out) const {
  if (shard) return shard->get(id).unpack(0, out);
  const std::uint32_t block = block_of(id);
  const Block& from = blocks[block];
  store.get(block).unpack(from.skipped + id - from.first_id, out);
}

Dataset::Dataset(std::unique_ptr<State> state) : state_(std::move(state)) {}
Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

std::uint64_t Dataset::size() const { return state_->energies.size(); }
const ImageShape& Dataset::shape() const { return state_->shape; }

Result<void> Dataset::read(std::span<const std::uint64_t> ids, Batch& out) {
  State& state = *state_;
  ASSIGN_OR_RETURN(const auto straight, state.load(ids));
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
  RETURN_IF_ERROR(state.read_straight(straight, images));
  std::vector<bool> is_there(events);
  for (const State::Asked& each : straight) is_there[each.place] = true;
  state.team->run(static_cast<std::int64_t>(events), [&](std::int64_t index, int) {
    const auto i = static_cast<std::size_t>(index);
    if (!is_there[i]) state.unpack(ids[i], images.subspan(i * cells, cells));
    conditions[i] = state.energies[ids[i]];
    conditions[events + i] = state.angles[ids[i]];
    conditions[2 * events + i] = state.ecals[ids[i]];
    for (std::size_t k = 0; k < columns; ++k) {
      conditions[(3 + k) * events + i] = state.columns[ids[i] * columns + k];
    }
  });
  // Blocks are let go when no thread reads them any more.
  if (!state.shard) state.store.trim();
  return {};
}

void Dataset::set_threads(int threads) {
  state_->team = std::make_unique<runtime::ThreadTeam>(threads);
}

std::uint64_t Dataset::most_wanted() const {
  if (!state_->shard) return 0;
  return std::max<std::uint64_t>(1, state_->shard->capacity(state_->shape.size() * sizeof(float)));
}

Result<void> Dataset::want(std::span<const std::uint64_t> ids, std::size_t front,
                           std::size_t reads) {
  State& state = *state_;
  CHECK(state.shard, "only a shard is told what is wanted");
  std::vector<std::uint64_t> wanted(ids.begin(), ids.end());
  const auto first = ids.first(front);
  std::vector<std::uint64_t> coming(first.begin(), first.end());
  std::ranges::sort(wanted);
  std::ranges::sort(coming);
  CHECK(wanted.empty() || wanted.back() < size(), "no such event");
  state.shard->keep_only(wanted);
  for (auto* some : {&wanted, &coming}) {
    std::erase_if(*some, [&](std::uint64_t id) { return state.shard->has(id); });
  }
  auto blocks = state.blocks_of(coming);
  state.coming = {std::move(wanted), std::move(blocks), 0, reads};
  return reads > 0 ? Result<void>{} : state.gather();
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

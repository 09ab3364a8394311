#include "pipeline/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/random.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::mix64;
using runtime::Result;

namespace {

// The smallest a with a x a >= value; 2^32 at most.
std::uint64_t root_above(std::uint64_t value) {
  std::uint64_t low = 1;
  std::uint64_t high = std::uint64_t{1} << 32;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    if (middle * middle >= value) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Number 0 orders the whole dataset or its blocks, number w + 1 the events of window w.
Permutation permutation_of(std::uint64_t count, std::uint64_t seed, std::uint64_t epoch,
                           std::uint64_t number) {
  return {count, seed, mix64(mix64(epoch) + number)};
}

std::uint64_t parts(const SamplerOptions& options) {
  return options.window_blocks == 0 ? options.events : options.blocks.size();
}

}  // namespace

Permutation::Permutation(std::uint64_t count, std::uint64_t key, std::uint64_t tweak)
    : count_(count) {
  CHECK(count >= 1 && count <= std::uint64_t{1} << 62, "a permutation of 1 to 2^62 things");
  width_ = root_above(count);
  height_ = (count + width_ - 1) / width_;
  std::uint64_t chain = mix64(key);
  for (std::uint64_t& round_key : round_keys_) {
    chain = mix64(chain + tweak);
    round_key = chain;
  }
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  CHECK(index < count_, "beyond the permutation");
  do {
    index = encrypt(index);
  } while (index >= count_);
  return index;
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  std::uint64_t left = value % width_;
  std::uint64_t right = value / width_;
  for (std::size_t round = 0; round < round_keys_.size(); round += 2) {
    left = (left + mix64(right ^ round_keys_[round]) % width_) % width_;
    right = (right + mix64(left ^ round_keys_[round + 1]) % height_) % height_;
  }
  return right * width_ + left;
}

EpochOrder::EpochOrder(const SamplerOptions& options, std::uint64_t epoch)
    : events_(options.events),
      seed_(options.seed),
      epoch_(epoch),
      window_blocks_(options.window_blocks),
      shuffle_(options.shuffle),
      order_(permutation_of(parts(options), options.seed, epoch, 0)) {
  if (window_blocks_ == 0 || !shuffle_) return;
  std::vector<std::uint64_t> first_of(options.blocks.size());
  std::exclusive_scan(options.blocks.begin(), options.blocks.end(), first_of.begin(),
                      std::uint64_t{0});
  std::uint64_t position = 0;
  for (std::size_t slot = 0; slot < options.blocks.size(); ++slot) {
    const std::uint64_t block = order_(slot);
    first_ids_.push_back(first_of[block]);
    first_positions_.push_back(position);
    position += options.blocks[block];
  }
  first_positions_.push_back(position);
}

// The block, by its place in this epoch's order, that holds the position before windows are
// shuffled.
std::size_t EpochOrder::slot_of(std::uint64_t position) const {
  const auto after = std::upper_bound(first_positions_.begin(), first_positions_.end(), position);
  return static_cast<std::size_t>(after - first_positions_.begin()) - 1;
}

std::uint64_t EpochOrder::event(std::uint64_t position) const {
  CHECK(position < events_, "beyond the epoch");
  if (!shuffle_) return position;
  if (window_blocks_ == 0) return order_(position);
  // Two permutations make the order: one of blocks, and one of the positions inside each window of
  // blocks. So a reader needs only the blocks of one window at a time.
  const std::size_t window = slot_of(position) / window_blocks_;
  const std::size_t end_slot = std::min((window + 1) * window_blocks_, first_ids_.size());
  const std::uint64_t first = first_positions_[window * window_blocks_];
  const std::uint64_t count = first_positions_[end_slot] - first;
  const Permutation inside = permutation_of(count, seed_, epoch_, window + 1);
  const std::uint64_t shuffled = first + inside(position - first);
  const std::size_t slot = slot_of(shuffled);
  return first_ids_[slot] + (shuffled - first_positions_[slot]);
}

Result<Sampler> Sampler::create(SamplerOptions options) {
  CHECK(options.micro_batch >= 1 && options.micro_batches >= 1, "an iteration takes events");
  CHECK(options.micro_batch % (std::uint64_t{options.parts} * options.runs) == 0, "whole pieces");
  const std::uint64_t needed = std::uint64_t{options.micro_batch} * options.micro_batches;
  if (options.events < needed) {
    return Error{ErrorKind::kData,
                 fmt::format("the dataset has {} events, and one iteration takes {} ({} "
                             "micro-batches of {}); use more data or a smaller batch",
                             options.events, needed, options.micro_batches, options.micro_batch)};
  }
  if (options.window_blocks > 0) {
    const std::uint64_t sum =
        std::accumulate(options.blocks.begin(), options.blocks.end(), std::uint64_t{0});
    CHECK(sum == options.events, "the blocks hold all events");
  }
  return Sampler(std::move(options));
}

Sampler::Sampler(SamplerOptions options) : options_(std::move(options)), order_(options_, 0) {
  if (options_.remainder != Remainder::kPartial) return;
  const std::uint64_t left = options_.events % events_per_iteration() / options_.micro_batch;
  if (left == 0) return;
  short_iteration_ = {options_.events / events_per_iteration() + 1,
                      static_cast<std::uint32_t>(left)};
}

std::uint64_t Sampler::events_per_iteration() const {
  return std::uint64_t{options_.micro_batch} * options_.micro_batches;
}

std::uint64_t Sampler::iterations_per_epoch() const {
  return short_iteration_.every > 0 ? short_iteration_.every
                                    : options_.events / events_per_iteration();
}

std::uint64_t Sampler::dropped_per_epoch() const {
  if (options_.remainder == Remainder::kCarry) return 0;
  const bool is_partial = options_.remainder == Remainder::kPartial;
  return options_.events % (is_partial ? options_.micro_batch : events_per_iteration());
}

void Sampler::event_ids(std::uint64_t iteration, std::uint32_t index,
                        std::span<std::uint64_t> out) {
  const std::uint32_t parts = options_.parts;
  CHECK(index < parts_in(iteration) && out.size() == options_.micro_batch / parts);
  // Orders follow each other after so many positions.
  const std::uint64_t length = options_.events - dropped_per_epoch();
  std::uint64_t first = iteration * events_per_iteration();
  if (short_iteration_.every > 0) {
    first = iteration / short_iteration_.every * length +
            iteration % short_iteration_.every * events_per_iteration();
  }
  const std::uint64_t run = options_.micro_batch / options_.runs, piece = run / parts;
  first += std::uint64_t{index / parts} * options_.micro_batch + index % parts * piece;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t position = first + i / piece * run + i % piece;
    if (const std::uint64_t epoch = position / length; epoch != epoch_) {
      order_ = EpochOrder(options_, epoch);
      epoch_ = epoch;
    }
    out[i] = order_.event(position % length);
  }
}

}  // namespace troupe::pipeline

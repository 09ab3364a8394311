#pragma once

// Chooses the events that an iteration trains on, by integer arithmetic on (seed, epoch, events
// consumed) and nothing else. So every event comes once per epoch, whichever members join, leave or
// die.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/data/short_iteration.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// A bijection of [0, count) that looks random: a Feistel network over the smallest rectangle a x b
// that covers the range, walked until it lands inside (Black and Rogaway, "Ciphers with arbitrary
// finite domains", CT-RSA 2002). No memory, any index on its own, a few dozen nanoseconds.
class Permutation {
 public:
  // `count` >= 1; (key, tweak) choose the permutation.
  Permutation(std::uint64_t count, std::uint64_t key, std::uint64_t tweak);
  // CHECKs index < count.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  static constexpr int kRounds = 8;

  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t count_;
  std::uint64_t width_;   // a
  std::uint64_t height_;  // b; a x b >= count > a x (b - 1)
  std::array<std::uint64_t, kRounds> round_keys_;
};

// The fate of events at the end of an epoch's order that fill no iteration.
enum class Remainder : std::uint8_t {
  kDrop,   // they are left out; the next epoch orders all events anew
  kCarry,  // the next iteration begins with them, and goes on with the next order
  // A last iteration of the epoch takes the micro-batches that they fill. Those that fill none are
  // left out, because statistics of batch norm are those of b events.
  kPartial,
};

struct SamplerOptions {
  std::uint64_t events = 0;         // size of the dataset
  std::uint64_t seed = 1;           // the run's
  std::uint32_t micro_batch = 1;    // b, events per micro-batch
  std::uint32_t micro_batches = 1;  // M, micro-batches per iteration
  // With 0 the whole dataset is permuted. Else `blocks` (Dataset::blocks()) are permuted, every
  // `window_blocks` of them in that order make a window, and events are shuffled inside windows.
  std::uint32_t window_blocks = 0;
  std::vector<std::uint32_t> blocks = {};
  // false: the order of every epoch is that of the dataset.
  bool shuffle = true;
  Remainder remainder = Remainder::kDrop;
  // A micro-batch is read in so many parts, and is so many runs of events one behind the other, of
  // which each part has its share: of each run, the p-th of these many pieces. b / parts / runs is
  // a whole number.
  std::uint32_t parts = 1;
  std::uint32_t runs = 1;
};

// The order of one epoch. Immutable; any thread.
class EpochOrder {
 public:
  EpochOrder(const SamplerOptions& options, std::uint64_t epoch);
  // The event at position 0 <= position < events of the epoch.
  std::uint64_t event(std::uint64_t position) const;

 private:
  std::size_t slot_of(std::uint64_t position) const;

  std::uint64_t events_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  std::uint32_t window_blocks_;
  bool shuffle_;
  Permutation order_;  // of events, or of blocks
  // Per block, in this epoch's order, its first event id and its first position. Both are empty if
  // the whole dataset is permuted.
  std::vector<std::uint64_t> first_ids_;
  std::vector<std::uint64_t> first_positions_;  // and the end
};

// One thread: it remembers the order of the last epoch asked for.
class Sampler {
 public:
  // Errors (kData): fewer events than one iteration takes. CHECKs that blocks, if used, add up.
  static runtime::Result<Sampler> create(SamplerOptions options);

  const SamplerOptions& options() const { return options_; }
  std::uint64_t events_per_iteration() const;
  // With kCarry as many as with kDrop, though every event comes once in each order, which lasts a
  // part of an iteration longer; with kPartial the short one, too.
  std::uint64_t iterations_per_epoch() const;
  // Events at the end of each epoch's order that are left out; to be reported.
  std::uint64_t dropped_per_epoch() const;
  // The iteration that takes fewer micro-batches than M; only with kPartial is there one.
  const ShortIteration& short_iteration() const { return short_iteration_; }
  // M, or the number of the short one.
  std::uint32_t micro_batches_in(std::uint64_t iteration) const {
    return short_iteration_.micro_batches_in(iteration, options_.micro_batches);
  }

  // How many parts an iteration has, all micro-batches together.
  std::uint32_t parts_in(std::uint64_t iteration) const {
    return micro_batches_in(iteration) * options_.parts;
  }

  // The b / parts events of part `index` < parts_in(iteration) of the iteration, counted from 0
  // over all epochs; out.size() is their number.
  void event_ids(std::uint64_t iteration, std::uint32_t index, std::span<std::uint64_t> out);

 private:
  explicit Sampler(SamplerOptions options);

  SamplerOptions options_;
  ShortIteration short_iteration_;
  std::uint64_t epoch_ = 0;
  EpochOrder order_;
};

}  // namespace troupe::pipeline

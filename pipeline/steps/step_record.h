#pragma once

// The result of a reduction. Every member reads the same record and so decides the same after the
// same step. A header's fields are combined by order-free operations only (sum, minimum, maximum,
// or), so that any grouping and order of members gives the same header.
//
// Pure functions; any thread.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/backend.h"
#include "model/gan.h"
#include "pipeline/steps/spot_check.h"
#include "pipeline/steps/sum_layout.h"
#include "pipeline/steps/worker_set.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"
#include "runtime/base/fields.h"
#include "runtime/base/hash.h"

namespace troupe::pipeline {

struct TrainingOptions;

// A NaN or infinity. The least (micro_batch, tensor) is named.
struct NonFinite {
  std::uint32_t micro_batch = UINT32_MAX;
  std::uint32_t tensor = UINT32_MAX;
  bool found() const { return tensor != UINT32_MAX; }
  auto operator<=>(const NonFinite&) const = default;
};

// A worker that may have the next turn (pipeline/steps/strategy.h), and in how many milliseconds it
// is thought to be ready. The least of all are taken.
struct TurnOffer {
  std::uint32_t ready_in = 0;
  std::uint32_t worker = 0;
  auto operator<=>(const TurnOffer&) const = default;
};

void fields(auto& archive, runtime::Like<TurnOffer> auto& offer) {
  archive.number("ready_in", offer.ready_in);
  archive.number("worker", offer.worker);
}
inline const char* fault_of(const TurnOffer& offer) {
  return offer.worker < kMostWorkersInTurns ? nullptr : "a turn of a worker beyond the last";
}

// The defaults of all fields but step, attempt and exponents are neutral in combine(): a member
// without micro-batches contributes them and the hash of its state.
struct StepHeader {
  std::uint64_t step = 0;     // iteration x slots + slot
  std::uint32_t attempt = 0;  // 0, or 1 after a flag
  std::vector<std::int16_t>
      exponents;  // per contribution tensor, maximum; model::kNoExponent for none
  bool flagged = false;
  NonFinite non_finite;
  std::uint32_t micro_batches = 0;  // how many are in the sum
  std::uint64_t events = 0;
  std::uint64_t event_sum = 0;  // sum of event_mix over the events really fed, mod 2^64
  runtime::Hash128 state_minimum{UINT64_MAX, UINT64_MAX};  // of the state before the step
  runtime::Hash128 state_maximum{0, 0};
  // Least and greatest hash of what the micro-batch of the step's spot check adds; the first above
  // the second: there is none.
  runtime::Hash128 check_minimum{UINT64_MAX, UINT64_MAX};
  runtime::Hash128 check_maximum{0, 0};
  // The Validator has judged the state before the step, and how far from its ideal it has found the
  // figure that train.stop reads; infinite where the showers do not have it. The leader says so.
  bool judged = false;
  double distance = std::numeric_limits<double>::infinity();  // minimum
  std::vector<TurnOffer> next;  // where workers take turns: those of all members, ascending
  bool stop_requested = false;
  bool checkpoint_requested = false;
  bool operator==(const StepHeader&) const = default;
};

// One event's part of the ledger: mix64(event_id ^ mix64(iteration ^ mix64(slot + 1))), so that an
// event fed twice in a step, or in the place of another, changes the sum.
std::uint64_t event_mix(std::uint64_t event_id, std::uint64_t iteration, std::uint32_t slot);

// Adds one micro-batch's contribution vector, on the host, to `sums`, whose parts together have its
// size, and what was seen on the way to the header: exponents, flag, non_finite, micro_batches (not
// the ledger). scales[i] is the k of tensor i, the same for all micro-batches of an attempt. Floats
// have no scale, and their exponents are not noted. `seed`, of the run: numbers are rounded at
// random by it, the step, the micro-batch and the element. header.exponents has an entry per
// tensor.
void add_micro_batch(const model::ContributionLayout& layout, std::span<const float> values,
                     std::uint32_t micro_batch, std::uint32_t micro_batches, std::uint64_t seed,
                     const std::vector<std::int16_t>& scales, const MutableSums& sums,
                     StepHeader& header);

// The contribution vectors of some micro-batches, where a backend's memory has them.
struct Contributions {
  const model::ContributionLayout& layout;
  model::Memory& memory;
  const model::VectorSums& sums;  // of that memory
  std::span<const model::Vectors> vectors;
  std::span<const std::uint32_t> micro_batches;  // the indices of theirs, in their order
  std::uint64_t seed = 0;                        // of the run
};

// The same for the elements of one bucket alone, of all of these micro-batches; its sums are of its
// kind and size. Does not count the micro-batches. Vectors may be added in any pieces.
void add_part(const Contributions& contributions, const Bucket& part, std::uint32_t micro_batches,
              const std::vector<std::int16_t>& scales, const MutableSums& sums, StepHeader& header);

// The workers whose turn the step behind this one is: those of the least offers. Fewer than that
// takes if there are not as many.
WorkerSet turn_behind(const StepHeader& header, const TrainingOptions& options);

// into = into with from. CHECKs that both are of the same step and attempt.
void combine(const StepHeader& from, StepHeader& into);

// The decision of all members on a header that holds all M micro-batches. True: the step is to be
// applied. False: it is measured again with the header's exponents, in attempt 1. An Error
// (kDiverged) ends the run, and names step, micro-batch (or worker) and tensor, or the states that
// differ.
// `tensors` names the contribution's tensors. A flag in attempt 1 means that memory has changed
// between the two attempts. States that differ come before a NaN, which they may explain, and a
// NaN, or a gradient too large for an optimiser (model/optimiser.h), before a retry. `checks` names
// the members whose spot check does not agree.
runtime::Result<bool> judge(const StepHeader& header, const model::ContributionLayout& tensors,
                            const TrainingOptions& options, const SpotChecks& checks = {});

// The scales that a step's header has measured, unchanged for tensors that are all zero: 6 - e for
// each of the first `rounded` tensors, or the state's where that is less (or one more, in every
// fourth step), and 50 - ceil(log2 M) - e for the others. With the header of attempt 0 they are the
// scales of attempt 1, with that of a commit the state's for the next step.
std::vector<std::int16_t> scales_after(const std::vector<std::int16_t>& state_scales,
                                       const StepHeader& header, std::uint32_t micro_batches,
                                       std::size_t rounded = 0);
// How many tensors of a step with these contributions are rounded at random.
std::size_t rounded_tensors(const model::ContributionLayout& tensors,
                            const TrainingOptions& options);

struct StepRecord {
  StepHeader header;
  std::vector<std::int16_t> scales;  // the k each tensor was quantised with
  runtime::Buffer sums;  // of the contribution vector, as pipeline/steps/sum_layout.h has it
  SumFront front;        // of these
};

// Finds what judge() cannot see in floats, which have no exponents: a sum of finite values that
// overflows, as it may in a narrow format, or a mean that is too large for an optimiser. kDiverged,
// naming step and tensor; nothing for a record that can be applied. All members have the same sums.
std::optional<runtime::Error> overflow(const StepRecord& record, const SumLayout& sums,
                                       const model::ContributionLayout& tensors);

}  // namespace troupe::pipeline

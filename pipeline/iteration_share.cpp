#include "pipeline/iteration_share.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/exact_sum.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

using model::SlotKind;

model::GanParameters parameters_of(const TrainingState& state) {
  return {state.generator.weights.data(), state.generator.moving.data(),
          state.discriminator.weights.data(), state.discriminator.moving.data()};
}

model::EventBatch events_of(const Batch& batch) {
  return {batch.images.as<float>().data(), batch.energies().data(), batch.angles().data(),
          batch.ecals().data()};
}

}  // namespace

IterationShare::IterationShare(const model::Gan& gan, const TrainingOptions& options,
                               runtime::ThreadTeam& team)
    : gan_(gan), options_(options), team_(team) {
  CHECK(gan.data_type() == model::DataType::kFloat32, "training is in float");
  CHECK(static_cast<std::uint32_t>(gan.batch()) == options.micro_batch);
  for (int i = 0; i < team.threads(); ++i) {
    streams_.push_back(std::make_unique<model::GanStream>(gan));
  }
}

void IterationShare::begin(std::uint64_t iteration, std::vector<MicroBatch> micro_batches) {
  CHECK(iteration <= std::numeric_limits<std::uint32_t>::max(), "iterations have 32 bits");
  work_.resize(micro_batches.size());
  const auto image_elements =
      static_cast<std::size_t>(gan_.batch() * gan_.discriminator().input_shape().elements());
  for (std::size_t i = 0; i < work_.size(); ++i) {
    CHECK(micro_batches[i].events.events == options_.micro_batch);
    CHECK(micro_batches[i].events.images.as<float>().size() == image_elements,
          "the data's images are not what the discriminator reads");
    work_[i].micro_batch = std::move(micro_batches[i]);
  }
  iteration_ = iteration;
  slot_ = 0;
  computed_ = 0;
  prepared_slot_ = 0;
  prepared_ = 0;
}

runtime::RandomPosition IterationShare::position(std::uint32_t slot, const Work& work) const {
  return {options_.seed, work.micro_batch.index, static_cast<std::uint32_t>(iteration_),
          static_cast<std::uint8_t>(slot), 0};
}

bool IterationShare::prepare(const TrainingState& state, std::uint32_t slot) {
  if (prepared_slot_ != slot) {
    prepared_slot_ = slot;
    prepared_ = 0;
  }
  const SlotKind kind = options_.schedule[slot];
  const auto threads = static_cast<std::size_t>(team_.threads());
  std::size_t limit = 0;
  if (kind == SlotKind::kDFake) limit = work_.size();
  // A generator's forward pass stays in its thread's stream, which holds one.
  if (kind == SlotKind::kG) limit = std::min(threads, work_.size());
  if (prepared_ >= limit) return false;
  const std::size_t count = std::min(threads, limit - prepared_);
  team_.run(static_cast<std::int64_t>(count), [&](std::int64_t i, int) {
    // Which stream holds a generator's pass must not depend on which thread was free.
    prepare_one(state, slot, work_[prepared_ + static_cast<std::size_t>(i)], static_cast<int>(i));
  });
  prepared_ += count;
  return true;
}

void IterationShare::prepare_one(const TrainingState& state, std::uint32_t slot, Work& work,
                                 int stream) {
  const model::EventBatch events = events_of(work.micro_batch.events);
  const runtime::RandomPosition where = position(slot, work);
  if (options_.schedule[slot] == SlotKind::kG) {
    gan_.begin_generator(parameters_of(state), events, where, *streams_[stream]);
    return;
  }
  work.images.resize(
      static_cast<std::size_t>(gan_.batch() * gan_.generator().output_shape(0).elements()));
  gan_.make_fakes(parameters_of(state), events, where, *streams_[stream], work.images.data());
}

bool IterationShare::compute(const TrainingState& state, std::uint32_t slot) {
  if (slot_ != slot) {
    slot_ = slot;
    computed_ = 0;
  }
  if (computed_ == work_.size()) return false;
  const std::size_t count =
      std::min(static_cast<std::size_t>(team_.threads()), work_.size() - computed_);
  const std::size_t prepared = prepared_slot_ == slot ? prepared_ : 0;
  team_.run(static_cast<std::int64_t>(count), [&](std::int64_t i, int) {
    const std::size_t index = computed_ + static_cast<std::size_t>(i);
    compute_one(state, work_[index], static_cast<int>(i), index < prepared);
  });
  computed_ += count;
  return true;
}

void IterationShare::compute_one(const TrainingState& state, Work& work, int stream,
                                 bool prepared) {
  const SlotKind kind = options_.schedule[slot_];
  const model::ContributionLayout& layout = gan_.contributions(kind);
  work.contributions.resize(static_cast<std::size_t>(layout.size));
  const model::EventBatch events = events_of(work.micro_batch.events);
  if (kind != SlotKind::kDReal && !prepared) prepare_one(state, slot_, work, stream);
  switch (kind) {
    case SlotKind::kDReal:
      gan_.d_real(parameters_of(state), events, position(slot_, work), *streams_[stream],
                  work.contributions.data());
      break;
    case SlotKind::kDFake:
      gan_.d_fake(parameters_of(state), events, work.images.data(), position(slot_, work),
                  *streams_[stream], work.contributions.data());
      break;
    case SlotKind::kG:
      gan_.finish_generator(parameters_of(state), events, position(slot_, work), *streams_[stream],
                            work.contributions.data());
      break;
  }
}

Contribution IterationShare::contribution(std::uint32_t slot, std::uint32_t attempt,
                                          const std::vector<std::int16_t>& scales,
                                          runtime::Hash128 state_hash) const {
  CHECK(slot == slot_ && computed_ == work_.size(), "the step is not computed");
  const model::ContributionLayout& layout = gan_.contributions(options_.schedule[slot]);
  CHECK(scales.size() == layout.tensors.size());
  Contribution result;
  result.sums =
      runtime::Buffer::zeroed(static_cast<std::size_t>(layout.size) * sizeof(std::int64_t));
  StepHeader& header = result.header;
  header.step = iteration_ * options_.schedule.size() + slot;
  header.attempt = attempt;
  header.exponents.assign(layout.tensors.size(), model::kNoExponent);
  header.state_minimum = state_hash;
  header.state_maximum = state_hash;
  const std::span<std::int64_t> sums = result.sums.mutable_as<std::int64_t>();
  for (const Work& work : work_) {
    add_micro_batch(layout, work.contributions, work.micro_batch.index, options_.micro_batches,
                    scales, sums, header);
    for (const std::uint64_t id : work.micro_batch.events.event_ids.as<std::uint64_t>()) {
      header.event_sum += event_mix(id, iteration_, slot);
    }
    header.events += work.micro_batch.events.events;
  }
  return result;
}

}  // namespace troupe::pipeline

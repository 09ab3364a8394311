#include "pipeline/steps/step_computer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

using model::SlotKind;

model::EventBatch events_of(const Batch& batch) {
  return {batch.images.as<float>().data(), batch.energies().data(), batch.angles().data(),
          batch.ecals().data(),
          batch.conditions.as<float>().data() + std::size_t{3} * batch.events};
}

// A step and its rounds draw the same numbers.
runtime::RandomPosition position(const TrainingOptions& options, const StepShare& step) {
  return {options.seed, 0, static_cast<std::uint32_t>(step.iteration()->iteration()),
          static_cast<std::uint8_t>(step.work().number), 0};
}

// Collects, over several threads, from which element on the contributions of all of a turn's own
// micro-batches are final.
class Finality {
 public:
  Finality(std::size_t micro_batches, std::int64_t size) : from_(micro_batches), told_(size) {
    for (auto& from : from_) from.store(size, std::memory_order_relaxed);
  }

  // False: the micro-batch is not one of them.
  bool falls_to(std::size_t micro_batch, std::int64_t element) {
    if (micro_batch >= from_.size()) return false;
    from_[micro_batch].store(element, std::memory_order_release);
    return true;
  }

  // The element for all of them, if it has fallen since the last call. One thread.
  std::optional<std::int64_t> news() {
    std::int64_t all = 0;
    for (const auto& from : from_) all = std::max(all, from.load(std::memory_order_acquire));
    if (all >= told_) return std::nullopt;
    return told_ = all;
  }

 private:
  std::vector<std::atomic<std::int64_t>> from_;
  std::int64_t told_;
};

}  // namespace

StepComputer::StepComputer(const model::Gan& gan, const TrainingOptions& options,
                           runtime::ThreadTeam& team)
    : gan_(gan), options_(options), team_(team), group_(static_cast<std::size_t>(gan.group())) {
  CHECK(gan.data_type() == model::DataType::kFloat32, "training is in float");
  CHECK(static_cast<std::uint32_t>(gan.batch()) == options.micro_batch);
  for (const SlotKind kind : options.schedule) {
    const auto elements = static_cast<std::size_t>(gan.contributions(kind).size);
    contribution_bytes_ = std::max(contribution_bytes_, elements * sizeof(float));
  }
  for (int i = 0; i < team.threads(); ++i) {
    streams_.push_back(std::make_unique<model::GanStream>(gan));
  }
}

void StepComputer::place(const TrainingState& state) {
  // The weights of all networks are placed, or none.
  if (model::takes_norms(options_.generator_optimiser) ||
      model::takes_norms(options_.discriminator_optimiser)) {
    return;
  }
  const auto place = [&](std::size_t network, const NetworkState& values,
                         const model::OptimiserOptions& options) {
    if (values.weights.empty()) return;
    auto& optimiser = optimisers_[network];
    if (optimiser == nullptr) {
      optimiser = gan_.backend().place_optimiser(options, std::ssize(values.weights));
    }
    if (optimiser != nullptr) optimiser->place(values.weights, values.optimiser_arrays);
  };
  place(kGenerator, state.generator, options_.generator_optimiser);
  place(kDiscriminator, state.discriminator, options_.discriminator_optimiser);
}

model::GanParameters StepComputer::parameters_of(const TrainingState& state) const {
  model::GanParameters parameters{state.generator.weights.data(), state.generator.moving.data(),
                                  state.discriminator.weights.data(),
                                  state.discriminator.moving.data()};
  if (state.shared) {
    parameters.generator_shared = state.shared->values[kGenerator].data();
    parameters.discriminator_shared = state.shared->values[kDiscriminator].data();
  }
  if (optimisers_[kDiscriminator] == nullptr) return parameters;
  if (optimisers_[kGenerator] != nullptr) {
    parameters.generator_weights = optimisers_[kGenerator]->weights();
  }
  parameters.discriminator_weights = optimisers_[kDiscriminator]->weights();
  parameters.weights_placed = true;
  return parameters;
}

template <class Work>
void StepComputer::take_turn(const Part& turn, const Work& work) {
  const std::size_t end = turn.first + turn.count;
  const auto part = [&](std::size_t i) {
    const std::size_t first = turn.first + i * group_;
    return Part{first, std::min(group_, end - first)};
  };
  const std::size_t parts = (turn.count + group_ - 1) / group_;
  if (parts > 1 || team_.threads() == 1) {
    return team_.run(static_cast<std::int64_t>(parts), [&](std::int64_t i, int thread) {
      work(part(static_cast<std::size_t>(i)), thread);
    });
  }
  model::GanStream& stream = stream_of(part(0));
  std::vector<model::GanStream*> others;
  for (std::size_t i = 0; std::ssize(others) + 1 < team_.threads(); ++i) {
    if (streams_[i].get() != &stream) others.push_back(streams_[i].get());
  }
  stream.compute_with(&team_, others);
  // The other streams are given back however `work` ends.
  const std::shared_ptr<void> alone_again(nullptr,
                                          [&](void*) { stream.compute_with(nullptr, {}); });
  work(part(0), 0);
}

void StepComputer::make_room_for_images(std::size_t micro_batches) {
  const auto bytes = static_cast<std::size_t>(gan_.fake_elements()) * sizeof(float);
  while (images_.size() < micro_batches) images_.push_back(gan_.memory().allocate(bytes));
}

// A device has room for the micro-batches of a group, which is as large as its memory allows.
void StepComputer::make_room_for_rounds(std::size_t micro_batches) {
  while (gan_.memory().is_of_host() && streams_.size() < micro_batches) {
    streams_.push_back(std::make_unique<model::GanStream>(gan_));
  }
}

bool StepComputer::prepare(const TrainingState& state, const StepShare& step) {
  if (prepared_step_ != step.step()) {
    prepared_step_ = step.step();
    prepared_ = 0;
  }
  const std::size_t all = step.to_compute();
  std::size_t limit = 0;
  if (model::makes_fakes(step.kind())) limit = all;
  // The forward passes of a group of generators stay in its thread's stream, which holds one group.
  if (step.kind() == SlotKind::kG) limit = std::min(at_once(), all);
  if (prepared_ >= limit) return false;
  CHECK(prepared_ % group_ == 0, "forget what was prepared before more is asked for");
  const std::size_t count = std::min(at_once(), limit - prepared_);
  if (model::makes_fakes(step.kind())) make_room_for_images(all);
  // The stream that holds a generator's pass follows from the micro-batch, never from the thread
  // that was free.
  take_turn({prepared_, count}, [&](const Part& part, int) { prepare_part(state, step, part); });
  prepared_ += count;
  return true;
}

std::vector<model::GanMicroBatch> StepComputer::micro_batches_of(const StepShare& step,
                                                                 const Part& part) const {
  const auto elements = static_cast<std::size_t>(gan_.batch() * gan_.image_shape().elements());
  std::vector<model::GanMicroBatch> micro_batches;
  for (std::size_t i = part.first; i < part.first + part.count; ++i) {
    const MicroBatch& micro_batch = step.iteration_->micro_batch(i);
    CHECK(micro_batch.events.events == options_.micro_batch);
    CHECK(micro_batch.events.images.as<float>().size() == elements,
          "the data's images are not what the model reads");
    micro_batches.push_back({.events = events_of(micro_batch.events),
                             .index = micro_batch.index,
                             .images = i < images_.size() ? images_[i].get() : nullptr});
  }
  return micro_batches;
}

void StepComputer::prepare_part(const TrainingState& state, const StepShare& step,
                                const Part& part) {
  const auto micro_batches = micro_batches_of(step, part);
  const model::GanParameters parameters = parameters_of(state);
  const model::ScheduledWork scheduled = step.work();
  const model::GanWork work{parameters,      micro_batches, position(options_, step),
                            stream_of(part), nullptr,       scheduled.round};
  gan_.prepare(scheduled.slot, work);
}

bool StepComputer::compute(const TrainingState& state, StepShare& step,
                           const model::FinalFrom& final_from) {
  if (step.complete()) return false;
  if (prepared_step_ != step.step()) prepared_step_.reset();
  const std::size_t first = step.computed();
  const std::size_t all = step.to_compute();
  const std::size_t count = std::min(at_once(), all - first);
  if (model::makes_fakes(step.work().slot)) make_room_for_images(all);
  if (step.kind() == SlotKind::kStatistics) make_room_for_rounds(all);
  for (std::size_t i = 0; i < count; i += group_) {
    step.add_memory(take_memory(), std::min(group_, count - i));
  }
  // Elements become final in the turn that completes the replica's own micro-batches. In turns
  // before it some of these are not computed at all, and micro-batches behind them are only
  // compared.
  const bool completes_own = first < step.own() && first + count >= step.own();
  model::Memory& memory = gan_.memory();
  // A device is told what to compute, all at once, and gets there later.
  std::vector<std::pair<std::int64_t, void*>> told;
  Finality finality(completes_own ? step.own() - first : 0, step.layout().size);
  take_turn({first, count}, [&](const Part& part, int thread) {
    const model::FinalFrom tell = [&](std::int64_t element) {
      bool own = false;
      for (std::size_t i = 0; i < part.count; ++i) {
        own |= finality.falls_to(part.first - first + i, element);
      }
      if (!own || thread != 0) return;
      const auto all = finality.news();
      if (!all) return;
      if (memory.is_of_host()) return final_from(step.final_from_ = *all);
      told.emplace_back(*all, memory.mark());
    };
    compute_part(state, step, part, final_from ? &tell : nullptr);
  });
  for (const auto& [element, mark] : told) {
    memory.wait_for(mark);
    final_from(step.final_from_ = element);
  }
  if (completes_own) memory.wait_for(memory.mark());
  for (std::size_t i = 0; i < count; ++i) step.note_computed();
  return true;
}

void StepComputer::compute_part(const TrainingState& state, StepShare& step, const Part& part,
                                const model::FinalFrom* final_from) {
  const bool prepared = prepared_step_.has_value() && part.first + part.count <= prepared_;
  // The rest that prepare() has not made is made here, in the stream that is the part's own.
  const model::ScheduledWork scheduled = step.work();
  const bool prepares = model::slot_access(scheduled.slot).prepare_reads != 0;
  if (prepares && !prepared) prepare_part(state, step, part);
  auto micro_batches = micro_batches_of(step, part);
  for (std::size_t i = 0; i < part.count; ++i) {
    micro_batches[i].contributions = step.contribution(part.first + i);
  }
  const model::GanParameters parameters = parameters_of(state);
  const model::GanWork work{parameters,      micro_batches, position(options_, step),
                            stream_of(part), final_from,    scheduled.round};
  gan_.learn(scheduled.slot, work);
}

std::shared_ptr<float> StepComputer::take_memory() {
  if (!spare_.empty()) {
    auto memory = std::move(spare_.back());
    spare_.pop_back();
    return memory;
  }
  auto memory = gan_.memory().allocate(group_ * contribution_bytes_);
  auto* const first = reinterpret_cast<float*>(memory.get());
  return {std::move(memory), first};
}

void StepComputer::retire(StepShare step) {
  for (StepShare::Block& block : step.blocks_) spare_.push_back(std::move(block.memory));
}

}  // namespace troupe::pipeline

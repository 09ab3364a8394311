#include "pipeline/steps/worker_steps.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "model/exact_sum.h"
#include "model/optimiser.h"
#include "pipeline/steps/step_record.h"
#include "pipeline/steps/worker_tensors.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

using model::ContributionTensor;
using Role = ContributionTensor::Role;

// Events [first, first + count) of a batch.
Batch part_of(const Batch& batch, std::uint32_t first, std::uint32_t count) {
  Batch part;
  part.events = count;
  part.shape = batch.shape;
  const auto piece = [&](const runtime::Buffer& all) {
    const std::size_t each = all.size() / batch.events;
    return all.slice(first * each, count * each);
  };
  part.images = piece(batch.images);
  part.event_ids = piece(batch.event_ids);
  const std::span<const float> conditions = batch.conditions.as<float>();
  const std::size_t columns = conditions.size() / batch.events;
  part.conditions = runtime::Buffer::allocate(columns * count * sizeof(float));
  for (std::size_t column = 0; column < columns; ++column) {
    std::ranges::copy(conditions.subspan(column * batch.events + first, count),
                      part.conditions.mutable_as<float>().subspan(column * count).begin());
  }
  return part;
}

}  // namespace

WorkerSteps::WorkerSteps(const model::Gan& gan, const TrainingOptions& options,
                         const TrainingOptions& of_worker, StepComputer& computer)
    : gan_(gan), options_(options), of_worker_(of_worker), computer_(computer), layout_(gan) {}

bool WorkerSteps::compute(const TrainingState& state, StepShare& share) {
  if (share.complete()) return false;
  const MicroBatch& first = share.iteration()->micro_batch(share.computed());
  std::size_t count = 1;
  while (share.computed() + count < share.to_compute() &&
         number_of(*(&first + count)) == number_of(first)) {
    ++count;
  }
  const auto contributions = advance(state, share.step(), {&first, count});
  if (contributions == nullptr) return true;
  if (first.index % options_.parts() == 0) share.add_memory(contributions, 1);
  for (std::size_t i = 0; i < count; ++i) share.note_computed();
  return true;
}

std::shared_ptr<float> WorkerSteps::compute(const TrainingState& state, std::uint64_t iteration,
                                            std::span<const MicroBatch> parts) {
  return advance(state.turns->workers.at(number_of(parts.front())), iteration, parts);
}

template <class From>
std::shared_ptr<float> WorkerSteps::advance(const From& from, std::uint64_t iteration,
                                            std::span<const MicroBatch> parts) {
  const std::uint32_t number = number_of(parts.front());
  if (!is_at(iteration, number)) begin(from, iteration, number);
  if (!is_done()) {
    if (!worker_->under_way) begin_step(parts);
    if (computer_.compute(worker_->state, *worker_->under_way) || worker_->shared) return nullptr;
    end_step();
  }
  if (!is_done()) return nullptr;
  const std::vector<float> values = contributions_of(from);
  const std::size_t bytes = values.size() * sizeof(float);
  model::Memory& memory = gan_.memory();
  const auto place = memory.allocate(bytes);
  memory.write(values.data(), place.get(), bytes);
  memory.wait_for(memory.mark());  // sums wait for nothing
  worker_.reset();
  return {place, reinterpret_cast<float*>(place.get())};
}

void WorkerSteps::forget() {
  if (worker_ && worker_->under_way) computer_.retire(std::move(*worker_->under_way));
  worker_.reset();
}

std::optional<WorkerSteps::SharedStep> WorkerSteps::take_shared() {
  if (!worker_ || !worker_->shared || !worker_->under_way || !worker_->under_way->complete()) {
    return std::nullopt;
  }
  StepShare step = std::move(*std::exchange(worker_->under_way, std::nullopt));
  return SharedStep{worker_->step, worker_->number, std::move(step),
                    worker_->state.scales[worker_->state.slot], hash_of_state(worker_->state)};
}

runtime::Result<WorkerSteps::Again> WorkerSteps::end_shared(const StepRecord& record) {
  CHECK(worker_ && !worker_->under_way, "a shared step");
  if (record.header.state_minimum != record.header.state_maximum) {
    const auto& layout = gan_.contributions(of_worker_.schedule[worker_->state.slot]);
    return judge(record.header, layout, of_worker_).error();
  }
  return judge_and_apply(record);
}

// The worker begins with no scales, which are measured in its own steps, so that its bits are the
// same wherever it is computed.
template <class From>
void WorkerSteps::begin(const From& from, std::uint64_t iteration, std::uint32_t number) {
  forget();
  Worker& worker = worker_.emplace();
  worker.step = iteration;
  worker.number = number;
  const std::size_t losses = model::told_losses(gan_.description()).size();
  worker.losses.assign(losses, 0.0);
  worker.counts.assign(losses, 0);
  TrainingState& own = worker.state;
  own.generator = from.generator;
  own.discriminator = from.discriminator;
  own.seed = of_worker_.seed;
  own.iteration = iteration * options_.strategy.steps;
  own.micro_batch = of_worker_.micro_batch;
  own.micro_batches = of_worker_.micro_batches;
  for (const model::SlotKind slot : of_worker_.schedule) {
    own.scales.emplace_back(layout_.of(slot).tensors.size(), model::kNoExponent);
  }
  computer_.place(own);
}

// Random numbers belong to an iteration and a micro-batch, as those of any run.
void WorkerSteps::begin_step(std::span<const MicroBatch> parts) {
  Worker& worker = *worker_;
  worker.shared = parts.size() < options_.parts();
  if (worker.state.slot == 0) {
    std::vector<MicroBatch> micro_batches;
    const std::uint32_t each = of_worker_.micro_batch;
    const std::uint32_t count = of_worker_.micro_batches / options_.parts();
    for (const MicroBatch& part : parts) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t first = (worker.iteration * count + i) * each;
        micro_batches.push_back({part.index * count + i, part_of(part.events, first, each)});
      }
    }
    worker.events =
        std::make_shared<IterationShare>(worker.state.iteration, std::move(micro_batches));
  }
  worker.under_way.emplace(gan_, of_worker_, worker.events, worker.state.slot);
}

// A flag asks for the same at the scales that were measured.
void WorkerSteps::end_step() {
  StepShare step = std::move(*std::exchange(worker_->under_way, std::nullopt));
  Again scales = worker_->state.scales[worker_->state.slot];
  for (std::uint32_t attempt = 0; scales; ++attempt) {
    CHECK(attempt < 2, "a second attempt is never flagged");
    StepRecord record;
    record.header = step.begin_header(attempt);
    record.scales = *scales;
    record.sums = step.add_up({0, step.sums().elements}, *scales, record.header);
    step.finish_header(*scales, record.header);
    record.header.state_minimum = record.header.state_maximum = {};
    scales = judge_and_apply(record);
  }
  computer_.retire(std::move(step));
}

double WorkerSteps::progress() const {
  if (!worker_) return 0.0;
  const auto slots = static_cast<double>(of_worker_.schedule.size());
  return (worker_->iteration * slots + worker_->state.slot) / (options_.strategy.steps * slots);
}

bool WorkerSteps::is_done() const {
  return worker_->spoiled || worker_->iteration == options_.strategy.steps;
}

WorkerSteps::Again WorkerSteps::judge_and_apply(const StepRecord& record) {
  Worker& worker = *worker_;
  const std::uint32_t slot = worker.state.slot;
  const auto good = judge(record.header, gan_.contributions(of_worker_.schedule[slot]), of_worker_);
  if (!good.ok()) {
    spoil(record.header);
    return std::nullopt;
  }
  if (!*good) return scales_after(record.scales, record.header, of_worker_.micro_batches);
  note_losses(record, slot);
  // A state with few or empty fakes is judged when the workers' changes are applied.
  const auto applied = apply(layout_, of_worker_, record, worker.state, computer_.optimisers());
  CHECK(applied.ok(), "nothing ends a worker");
  if (worker.state.slot == 0) ++worker.iteration;
  return std::nullopt;
}

// The step of all workers is judged as the worker's is here: a number that is none, or a gradient
// that is too large.
void WorkerSteps::spoil(const StepHeader& header) {
  const model::SlotKind kind = of_worker_.schedule[worker_->state.slot];
  const bool is_number = !header.non_finite.found();
  const auto largest = std::ranges::max_element(header.exponents) - header.exponents.begin();
  const std::size_t found =
      is_number ? static_cast<std::size_t>(largest) : header.non_finite.tensor;
  const auto& layout = gan_.contributions(model::SlotKind::kWorkers);
  std::string name = gan_.contributions(kind).tensors.at(found).name;
  if (layout.find(name) < 0) {
    name.insert(name.find('/') + 1, updated_network(kind) == kGenerator ? "g/" : "d/");
  }
  worker_->spoiled = {
      static_cast<std::size_t>(layout.find(name)),
      is_number ? std::numeric_limits<float>::max() : std::numeric_limits<float>::quiet_NaN()};
}

// A loss is the mean over those of its network's steps in which it acts.
void WorkerSteps::note_losses(const StepRecord& record, std::uint32_t slot) {
  const model::SlotKind kind = of_worker_.schedule[slot];
  const auto losses = step_losses(gan_.contributions(kind), record);
  const bool both = worker_->losses.size() > losses.size();
  const std::size_t first = both ? updated_network(kind) * losses.size() : 0;
  for (std::size_t term = 0; term < losses.size(); ++term) {
    if (layout_.of_fakes[term] && !model::makes_fakes(kind)) continue;
    worker_->losses[first + term] += losses[term];
    ++worker_->counts[first + term];
  }
}

template <class From>
std::vector<float> WorkerSteps::contributions_of(const From& from) const {
  const Worker& worker = *worker_;
  const auto& layout = gan_.contributions(model::SlotKind::kWorkers);
  std::vector<float> values(static_cast<std::size_t>(layout.size));
  for (const ContributionTensor& tensor : layout.tensors) {
    const auto index = static_cast<std::size_t>(tensor.index);
    float* const to = values.data() + tensor.offset;
    if (tensor.role == Role::kLoss) {
      const auto count = static_cast<double>(std::max<std::uint64_t>(worker.counts[index], 1));
      *to = static_cast<float>(worker.losses[index] / count);
    } else if (tensor.role == Role::kEmptyImages) {
      const bool all = worker.state.empty_iterations == options_.strategy.steps;
      *to = all ? static_cast<float>(options_.micro_batch) : 0.0f;
    } else {
      std::ranges::copy(values_of(layout_, worker.state, tensor), to);
    }
    const bool is_change =
        tensor.role == Role::kGeneratorGradient || tensor.role == Role::kDiscriminatorGradient;
    if (!is_change) continue;
    const std::span<const float> before = values_of(layout_, from, tensor);
    for (std::size_t i = 0; i < before.size(); ++i) to[i] = before[i] - to[i];
  }
  if (worker.spoiled) {
    const auto& [tensor, number] = *worker.spoiled;
    values[static_cast<std::size_t>(layout.tensors.at(tensor).offset)] = number;
  }
  return values;
}

}  // namespace troupe::pipeline

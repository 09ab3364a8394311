#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "model/exact_sum.h"
#include "model/moving_statistics.h"
#include "model/rounded_sum.h"
#include "pipeline/steps/outer_optimiser.h"
#include "pipeline/steps/state_layout.h"
#include "pipeline/steps/sum_layout.h"
#include "pipeline/steps/training_state.h"
#include "pipeline/steps/turn_update.h"
#include "pipeline/steps/worker_tensors.h"

namespace troupe::pipeline {
namespace {

using model::ContributionTensor;
using Role = model::ContributionTensor::Role;

bool is_gradient(const ContributionTensor& tensor) {
  return tensor.role == Role::kGeneratorGradient || tensor.role == Role::kDiscriminatorGradient;
}

// One record on its way into a state; its members are the parts of apply().
class Application {
 public:
  Application(const StateLayout& layout, const TrainingOptions& options, const StepRecord& record,
              TrainingState& state, const PlacedOptimisers& placed)
      : layout_(layout),
        options_(options),
        record_(record),
        state_(state),
        slot_(options.schedule.at(state.slot)),
        placed_(placed.at(updated_network(slot_)).get()),
        tensors_(layout.of(slot_)),
        sums_{tensors_.size, record.front},
        turn_(state.turns ? state.turns->next.numbers() : std::vector<std::uint32_t>()) {}

  void check() const;
  // A round leaves what it has found for the step behind it.
  void take_round();
  void update_parameters();
  void update_from_workers();
  void update_from_turn();
  void update_mean();
  void note_losses();
  void note_losses_of_workers();
  // `network` is in front of a term's name where a step tells those of both.
  void note_stopping_loss(const std::vector<double>& losses, double total,
                          const std::string& network = "");
  void note_judgement();
  void note_empty_images();
  void note_exponents_and_events();
  runtime::Result<void> advance();
  // Behind that: the workers whose turn it was go on from here.
  void end_turn();

 private:
  // The iterations that the record stands for, of each worker or of all.
  std::uint64_t iterations() const { return options_.worker ? options_.strategy.steps : 1; }
  // The n-th of them.
  model::TrainingTime time(std::uint64_t n = 0) const {
    const std::uint64_t events =
        options_.worker
            ? std::uint64_t{options_.worker->micro_batch} * options_.worker->micro_batches
            : std::uint64_t{options_.micro_batch} * options_.micro_batches;
    return {state_.iteration * iterations() + n, options_.iterations_per_epoch * iterations(),
            events};
  }
  NetworkState& network(std::size_t number) const { return state_.network(number); }
  // The first of those whose turn it is. The others become as it is in the end.
  WorkerState& worker() const { return state_.turns->workers.at(turn_.front()); }
  // A network's learning rate behind these iterations.
  model::LearningRateState rate_after(std::size_t number, model::LearningRateState from) const;
  // The updates that a worker's optimisers make in its iterations.
  template <class State>
  void count_updates(State& state) const;
  std::int16_t scale(const ContributionTensor& tensor) const {
    return record_.scales[static_cast<std::size_t>(&tensor - tensors_.tensors.data())];
  }
  void update_weights(const ContributionTensor& tensor, std::span<const float> mean,
                      double learning_rate) const;
  std::size_t weights_offset(const ContributionTensor& tensor) const;
  void update_moving(std::size_t number, const ContributionTensor& tensor,
                     std::span<const float> mean) const;
  void end_epoch();
  void restore_mean(const ContributionTensor& tensor, std::span<float> mean) const;

  const StateLayout& layout_;
  const TrainingOptions& options_;
  const StepRecord& record_;
  TrainingState& state_;
  const model::SlotKind slot_;
  model::PlacedOptimiser* const placed_;  // of the network that the step updates; null: on the host
  const model::ContributionLayout& tensors_;
  const SumLayout sums_;
  const std::vector<std::uint32_t> turn_;  // the workers whose turn it is
};

const model::OptimiserOptions& optimiser(const TrainingOptions& options, std::size_t network) {
  return network == kGenerator ? options.generator_optimiser : options.discriminator_optimiser;
}

const model::LearningRateOptions& rate(const TrainingOptions& options, std::size_t network) {
  return network == kGenerator ? options.generator_rate : options.discriminator_rate;
}

void Application::check() const {
  const StepHeader& header = record_.header;
  CHECK(header.step == state_.step(options_.schedule.size()),
        "a record of another step than the state's next one");
  CHECK(state_.micro_batch == options_.micro_batch &&
        state_.micro_batches == options_.micro_batches);
  CHECK(header.micro_batches == options_.micro_batches_of_step(state_.iteration, state_.slot) &&
            header.events == options_.events_of_step(state_.iteration, state_.slot),
        "a record that does not hold all micro-batches");
  CHECK(!header.flagged && !header.non_finite.found(), "a record that is not to be committed");
  CHECK(says_next_turn(header, options_, state_), "a turn that does not say whose is the next");
  CHECK(record_.scales.size() == tensors_.tensors.size() &&
        header.exponents.size() == tensors_.tensors.size() && record_.sums.size() == sums_.bytes());
}

// Tensor by tensor, so that the means of one at a time are in memory. Their order does not matter:
// no tensor's update reads another's. A placed optimiser gets all of them at once.
void Application::update_parameters() {
  if (options_.has_turns()) return update_from_turn();
  if (options_.worker) return update_from_workers();
  const std::size_t updated = updated_network(slot_);
  NetworkState& state = network(updated);
  const double learning_rate =
      model::learning_rate(rate(options_, updated), state.learning_rate, time());
  model::begin_update(optimiser(options_, updated), state.counters);
  std::vector<float> mean;
  for (const ContributionTensor& tensor : tensors_.tensors) {
    if (tensor.role == Role::kLoss || tensor.role == Role::kEmptyImages) continue;
    const auto size = static_cast<std::size_t>(tensor.size);
    const bool is_moving =
        tensor.role == Role::kGeneratorMoving || tensor.role == Role::kDiscriminatorMoving;
    if (!is_moving && placed_ != nullptr) {
      restore_mean(tensor, placed_->gradients().subspan(weights_offset(tensor), size));
      continue;
    }
    mean.resize(size);
    restore_mean(tensor, mean);
    if (is_moving) {
      update_moving(tensor.role == Role::kGeneratorMoving ? kGenerator : kDiscriminator, tensor,
                    mean);
    } else {
      update_weights(tensor, mean, learning_rate);
    }
  }
  if (placed_ == nullptr) return;
  placed_->update(
      model::update_factors(optimiser(options_, updated), state.counters, learning_rate),
      state.weights, state.optimiser_arrays);
}

// Only the tensors of the layer in which the round ended tell something.
void Application::take_round() {
  const model::ScheduledWork work = model::work_at(options_.schedule, state_.slot);
  const model::StatisticsRound& round =
      layout_.rounds[static_cast<std::size_t>(work.slot)].at(static_cast<std::size_t>(work.round));
  const std::size_t number = round.of_generator ? kGenerator : kDiscriminator;
  const StateLayout::Network& own = layout_.networks[number];
  const Role role = round.of_generator ? Role::kGeneratorShares : Role::kDiscriminatorShares;
  std::vector<float> means(
      static_cast<std::size_t>(model::kShareArrays * own.parameters.moving_size));
  std::size_t offset = 0;
  for (const ContributionTensor& tensor : tensors_.tensors) {
    if (tensor.role != role) continue;
    restore_mean(tensor, std::span(means).subspan(offset, static_cast<std::size_t>(tensor.size)));
    offset += static_cast<std::size_t>(tensor.size);
  }
  const auto norm = std::ranges::find(own.shared_norms, round.layer, &model::SharedNorm::layer);
  CHECK(norm != own.shared_norms.end(), "a round is of a layer that shares");
  const std::int64_t events =
      std::int64_t{options_.micro_batch} * (work.slot == model::SlotKind::kDBoth ? 2 : 1);
  const std::span<float> shared = state_.shared->values[number];
  if (round.forward) {
    model::take_statistics<float>(*norm, events * norm->cells, record_.header.micro_batches, means,
                                  shared);
  } else {
    model::take_slopes<float>(*norm, events * norm->cells, means, shared);
  }
}

template <class State>
void Application::count_updates(State& state) const {
  for (std::uint64_t i = 0; i < iterations(); ++i) {
    for (const model::SlotKind slot : options_.worker->schedule) {
      const std::size_t updated = updated_network(slot);
      model::begin_update(optimiser(options_, updated), state.network(updated).counters);
    }
  }
}

// Workers have optimisers of their own, which are as many updates old behind the same turn. The
// centre shows those of the last one.
void Application::update_from_turn() {
  WorkerState& own = worker();
  const std::uint32_t workers = record_.header.micro_batches;
  count_updates(own);
  std::vector<float> values;
  for (const ContributionTensor& tensor : tensors_.tensors) {
    const std::span<float> centre = values_of(layout_, state_, tensor);
    if (centre.empty()) continue;
    values.resize(centre.size());
    restore_mean(tensor, values);
    const std::span<float> of_worker = values_of(layout_, own, tensor);
    if (is_gradient(tensor)) {
      const std::size_t number = network_of(tensor.role);
      const auto offset = static_cast<std::size_t>(centre.data() - network(number).weights.data());
      const auto momenta = [&](std::vector<float>& all) {
        return all.empty() ? std::span<float>() : std::span(all).subspan(offset, centre.size());
      };
      update_in_turn(options_.strategy, workers, values,
                     {centre, of_worker, momenta(own.moment[number]), momenta(own.stale[number])});
    } else if (tensor.role == Role::kGeneratorMoving || tensor.role == Role::kDiscriminatorMoving) {
      update_moving_in_turn(options_.strategy, workers, values, centre, of_worker);
    } else {
      std::ranges::copy(values, centre.begin());
      std::ranges::copy(values, of_worker.begin());
    }
  }
  for (const std::size_t number : {kGenerator, kDiscriminator}) {
    network(number).counters = own.network(number).counters;
  }
}

void Application::end_turn() {
  if (!options_.has_turns()) return;
  WorkerState& own = worker();
  // The rates of the centre are behind the iteration with its last turn, and the workers' before.
  const bool is_last = state_.slot == 0;
  for (const std::size_t number : {kGenerator, kDiscriminator}) {
    const model::LearningRateState& of_centre = network(number).learning_rate;
    own.network(number).learning_rate = is_last ? of_centre : rate_after(number, of_centre);
  }
  pipeline::end_turn(*state_.turns, turn_);
  state_.turns->next = turn_behind(record_.header, options_);
}

model::LearningRateState Application::rate_after(std::size_t number,
                                                 model::LearningRateState from) const {
  for (std::uint64_t i = 0; i < iterations(); ++i) {
    from = model::after_iteration(rate(options_, number), from, time(i));
  }
  return from;
}

// The workers' optimisers have made as many updates each.
void Application::update_from_workers() {
  count_updates(state_);
  std::vector<float> mean;
  for (const ContributionTensor& tensor : tensors_.tensors) {
    const std::span<float> values = values_of(layout_, state_, tensor);
    if (values.empty()) continue;
    mean.resize(values.size());
    restore_mean(tensor, mean);
    if (!is_gradient(tensor)) {
      std::ranges::copy(mean, values.begin());
      continue;
    }
    const std::size_t number = network_of(tensor.role);
    const auto offset = values.data() - network(number).weights.data();
    outer_update(options_.strategy.outer, mean, values,
                 std::span(state_.outer->velocity[number])
                     .subspan(static_cast<std::size_t>(offset), values.size()));
  }
}

void Application::update_mean() {
  if (!state_.mean) return;
  const std::size_t number = state_.result_number();
  if (!options_.worker && updated_network(slot_) != number) return;
  follow(*options_.mean, network(number), *state_.mean);
}

void Application::restore_mean(const ContributionTensor& tensor, std::span<float> mean) const {
  if (tensor.offset >= sums_.front.size) {
    const auto first = static_cast<std::size_t>(tensor.offset - sums_.front.size);
    model::restore_mean(sums_.integers_of(record_.sums).subspan(first, mean.size()), scale(tensor),
                        record_.header.micro_batches, mean);
    return;
  }
  const auto first = static_cast<std::size_t>(tensor.offset);
  if (sums_.front.kind == SumKind::kInt16) {
    return model::restore_mean(sums_.rounded_of(record_.sums).subspan(first, mean.size()),
                               scale(tensor), record_.header.micro_batches, mean);
  }
  const auto sums = sums_.floats_of(record_.sums).subspan(first, mean.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    mean[i] = static_cast<float>(static_cast<double>(sums[i]) / record_.header.micro_batches);
  }
}

std::size_t Application::weights_offset(const ContributionTensor& tensor) const {
  const std::size_t number = updated_network(slot_);
  CHECK((tensor.role == Role::kGeneratorGradient) == (number == kGenerator));
  const auto& weights = layout_.networks[number].parameters.weights;
  return static_cast<std::size_t>(weights.at(static_cast<std::size_t>(tensor.index)).offset);
}

void Application::update_weights(const ContributionTensor& tensor, std::span<const float> mean,
                                 double learning_rate) const {
  const std::size_t number = updated_network(slot_);
  NetworkState& state = network(number);
  const std::size_t offset = weights_offset(tensor);
  float* arrays = state.optimiser_arrays.empty() ? nullptr : state.optimiser_arrays.data() + offset;
  model::update(optimiser(options_, number), state.counters, learning_rate, mean,
                std::span(state.weights).subspan(offset, mean.size()), arrays,
                static_cast<std::int64_t>(state.weights.size()));
}

void Application::update_moving(std::size_t number, const ContributionTensor& tensor,
                                std::span<const float> mean) const {
  const auto index = static_cast<std::size_t>(tensor.index);
  const StateLayout::Network& network_layout = layout_.networks[number];
  const auto offset = static_cast<std::size_t>(network_layout.parameters.moving.at(index).offset);
  model::update_moving(network_layout.momentum.at(index), mean,
                       std::span(network(number).moving).subspan(offset, mean.size()));
}

// The losses come from the sums in double: the plateau policy decides by them, so they are not
// rounded to float first.
std::vector<double> mean_losses(const model::ContributionLayout& layout, const StepRecord& record) {
  const auto is_loss = [](const ContributionTensor& tensor) { return tensor.role == Role::kLoss; };
  std::vector<double> losses(
      static_cast<std::size_t>(std::ranges::count_if(layout.tensors, is_loss)));
  const auto integers = SumLayout{layout.size, record.front}.integers_of(record.sums);
  for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
    const ContributionTensor& tensor = layout.tensors[i];
    if (!is_loss(tensor)) continue;
    losses.at(static_cast<std::size_t>(tensor.index)) =
        model::restored_mean(integers[static_cast<std::size_t>(tensor.offset - record.front.size)],
                             record.scales.at(i), record.header.micro_batches);
  }
  return losses;
}

void Application::note_losses() {
  if (options_.worker) return note_losses_of_workers();
  const auto losses = mean_losses(tensors_, record_);
  double total = 0.0;
  for (std::size_t i = 0; i < losses.size(); ++i) total += layout_.loss_weights[i] * losses[i];
  const std::size_t number = updated_network(slot_);
  state_.epoch_loss[number] += total;
  ++state_.epoch_loss_steps[number];
  if (state_.stopping && options_.stop->reads_loss_of(number)) note_stopping_loss(losses, total);
}

// As many terms stand for each network of the task, the generator's first.
void Application::note_losses_of_workers() {
  const auto losses = mean_losses(tensors_, record_);
  const auto& weights = layout_.loss_weights;
  const std::size_t networks = losses.size() / weights.size();
  for (std::size_t i = 0; i < networks; ++i) {
    const std::size_t number = networks == 1 ? kDiscriminator : i;
    const auto updates = [&](model::SlotKind slot) { return updated_network(slot) == number; };
    if (std::ranges::none_of(options_.worker->schedule, updates)) continue;
    double total = 0.0;
    for (std::size_t term = 0; term < weights.size(); ++term) {
      total += weights[term] * losses[i * weights.size() + term];
    }
    state_.epoch_loss[number] += total;
    ++state_.epoch_loss_steps[number];
    if (!state_.stopping || !options_.stop->reads_loss_of(number)) continue;
    note_stopping_loss(losses, total, networks == 1 ? "" : number == kGenerator ? "g/" : "d/");
  }
}

void Application::note_stopping_loss(const std::vector<double>& losses, double total,
                                     const std::string& network) {
  const int tensor = tensors_.find("loss/" + network + options_.stop->term);
  if (tensor >= 0) {
    const auto term =
        static_cast<std::size_t>(tensors_.tensors[static_cast<std::size_t>(tensor)].index);
    if (!options_.worker && layout_.of_fakes.at(term) && !model::makes_fakes(slot_)) return;
    total = losses.at(term);
  }
  state_.stopping->loss_sum += total;
  ++state_.stopping->loss_steps;
}

// The mark is looked at only where the topology asks for a figure.
void Application::note_judgement() {
  const StepHeader& header = record_.header;
  if (!state_.stopping || options_.stop->figure.empty() || !header.judged) return;
  state_.stopping = after_validation(*options_.stop, *state_.stopping, header.distance);
}

// An iteration counts as empty when every step of it that makes fakes made only empty ones: the
// first such step counts it, a later one with energy takes it back.
void Application::note_empty_images() {
  const auto counts = [](const ContributionTensor& tensor) {
    return tensor.role == Role::kEmptyImages;
  };
  const auto tensor = std::find_if(tensors_.tensors.begin(), tensors_.tensors.end(), counts);
  if (tensor == tensors_.tensors.end()) return;
  const auto integers = sums_.integers_of(record_.sums);
  const double count = model::restored_mean(
      integers[static_cast<std::size_t>(tensor->offset - sums_.front.size)], scale(*tensor), 1);
  const bool all_empty = std::llround(count) == static_cast<long long>(record_.header.events);
  const auto first =
      std::find_if(options_.schedule.begin(), options_.schedule.end(), [](model::SlotKind slot) {
        return model::makes_fakes(slot) || slot == model::SlotKind::kWorkers;
      });
  if (!all_empty) {
    state_.empty_iterations = 0;
  } else if (first - options_.schedule.begin() == static_cast<std::ptrdiff_t>(state_.slot)) {
    ++state_.empty_iterations;
  }
}

void Application::note_exponents_and_events() {
  auto& scales = state_.scales.at(state_.slot);
  scales = scales_after(scales, record_.header, options_.micro_batches,
                        rounded_tensors(tensors_, options_));
  state_.ledger_events += record_.header.events;
  state_.ledger_sum += record_.header.event_sum;
}

runtime::Result<void> Application::advance() {
  const bool epoch_ends = ends_epoch(options_, state_);
  if (++state_.slot < options_.schedule.size()) return {};
  state_.slot = 0;
  for (const std::size_t number : {kGenerator, kDiscriminator}) {
    network(number).learning_rate = rate_after(number, network(number).learning_rate);
  }
  ++state_.iteration;
  state_.epoch_events += options_.events_in(state_.iteration - 1);
  if (epoch_ends) end_epoch();
  // The check comes last, when the state holds everything else of the iteration.
  if (state_.empty_iterations < options_.empty_iterations_limit) return {};
  return runtime::Error{
      runtime::ErrorKind::kDiverged,
      fmt::format("iteration {}: every fake of the last {} iterations has zero energy, so the "
                  "generator learns nothing any more; start again with another seed or a lower "
                  "learning rate",
                  state_.iteration - 1, state_.empty_iterations)};
}

void Application::end_epoch() {
  ++state_.epoch;
  state_.epoch_events = 0;
  for (const std::size_t number : {kGenerator, kDiscriminator}) {
    const std::uint64_t steps = std::exchange(state_.epoch_loss_steps[number], 0);
    const double loss = std::exchange(state_.epoch_loss[number], 0.0);
    if (steps == 0) continue;
    auto& learning_rate = network(number).learning_rate;
    learning_rate = model::after_epoch(rate(options_, number), learning_rate, time(),
                                       loss / static_cast<double>(steps));
  }
  if (state_.stopping) state_.stopping = after_epoch(*options_.stop, *state_.stopping);
}

}  // namespace

std::vector<double> step_losses(const model::ContributionLayout& layout, const StepRecord& record) {
  return mean_losses(layout, record);
}

runtime::Result<void> apply(const StateLayout& layout, const TrainingOptions& options,
                            const StepRecord& record, TrainingState& state,
                            const PlacedOptimisers& placed) {
  Application application(layout, options, record, state, placed);
  application.check();
  if (options.schedule.at(state.slot) == model::SlotKind::kStatistics) {
    application.take_round();
  } else {
    application.update_parameters();
    application.update_mean();
    application.note_losses();
    application.note_empty_images();
  }
  application.note_judgement();
  application.note_exponents_and_events();
  auto advanced = application.advance();
  application.end_turn();
  return advanced;
}

}  // namespace troupe::pipeline

#include "tests/pipeline/state_example.h"

#include <cmath>
#include <variant>

#include "model/backend.h"
#include "model/exact_sum.h"
#include "pipeline/steps/buckets.h"
#include "pipeline/steps/state_fields.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using Role = model::ContributionTensor::Role;

// Gives every field the next number.
struct FillVisitor {
  std::uint32_t next = 1;

  void parameters(std::size_t, ParameterPart, std::vector<float>& values) {
    runtime::fill_normal({.seed = 3, .stream = next++}, values.data(),
                         static_cast<std::uint32_t>(values.size()));
  }
  void scales(std::vector<std::vector<std::int16_t>>& slots) {
    for (auto& slot : slots) {
      for (auto& scale : slot) scale = static_cast<std::int16_t>(next++);
    }
  }
  void number(const std::string&, std::uint64_t& value) { value = 0x0123456789abcd00u + next++; }
  void number(const std::string&, std::uint32_t& value) { value = next++; }
  void number(const std::string&, double& value) { value = 1.0 / next++; }
  void text(const std::string&, std::string& value) {
    value = "reference, " + std::to_string(next++);
  }
  void hash(const std::string&, runtime::Hash128& value) { value = {next++, next++}; }
  void workers(const std::string&, std::vector<WorkerState>& values, auto each) {
    for (std::size_t i = 0; i < values.size(); ++i) each(i, values[i]);
  }
  void perhaps(const std::string&, auto& value, auto each) {
    if (value) each(*value);
  }
};

// One attempt: what all members together find.
StepRecord attempt(const StateExample& example, const TrainingState& state,
                   const std::vector<std::vector<float>>& contributions, const Sharing& sharing,
                   const std::vector<std::int16_t>& scales, std::uint32_t number) {
  const auto& options = example.options;
  const auto& layout = example.layout.of(options.schedule.at(state.slot));
  const runtime::Hash128 hash = hash_of_state(state);
  StepRecord total;
  total.scales = scales;
  total.header.step = state.step(options.schedule.size());
  total.header.attempt = number;
  total.header.exponents.assign(layout.tensors.size(), model::kNoExponent);
  const StepHeader empty = total.header;
  std::vector<std::int64_t> sums(static_cast<std::size_t>(layout.size), 0);
  for (const auto& member : sharing.members) {
    StepHeader header = empty;
    header.state_minimum = header.state_maximum = hash;
    std::vector<std::int64_t> own(sums.size(), 0);
    for (const std::uint32_t index : member) {
      add_micro_batch(layout, contributions.at(index), index, options.micro_batches, options.seed,
                      scales, {{}, own, {}}, header);
      for (std::uint32_t i = 0; i < options.micro_batch; ++i) {
        header.event_sum += event_mix(index * options.micro_batch + i, state.iteration, state.slot);
      }
      header.events += options.micro_batch;
    }
    combine(header, total.header);
    for (const Bucket& bucket : make_buckets(layout.size, sharing.segment_bytes)) {
      const auto offset = static_cast<std::size_t>(bucket.offset);
      const auto size = static_cast<std::size_t>(bucket.size);
      model::add(std::span(own).subspan(offset, size), std::span(sums).subspan(offset, size));
    }
  }
  total.sums = runtime::Buffer::copy_of(std::as_bytes(std::span(sums)));
  return total;
}

}  // namespace

StateExample state_example() {
  using namespace model;
  GanDescription description;
  description.generator = {
      "generator",
      Shape::features(3),
      {{"dense", Dense{4}, ""}, {"norm", BatchNorm{0.9}, ""}, {"image", Dense{2}, ""}},
      {}};
  description.discriminator = {"discriminator",
                               Shape::features(2),
                               {{"hidden", Dense{3}, ""},
                                {"norm", BatchNorm{0.75}, ""},
                                {"generation", Dense{1}, ""},
                                {"energy", Activation{ActivationKind::kRelu}, ""}},
                               {"generation", "energy"}};
  description.latent.size = 3;
  description.losses = {
      {"generation", LossKind::kBinaryCrossentropy, Target::kLabel, 3.0},
      {"energy", LossKind::kMeanAbsolutePercentageError, Target::kEnergy, 0.5},
  };
  const auto backend = make_reference_backend(DataType::kFloat32);
  StateExample example;
  example.layout = StateLayout(*Gan::compile(description, *backend, 2).value());
  example.options.micro_batch = 2;
  example.options.generator_optimiser.kind = model::OptimiserKind::kAdam;
  example.options.discriminator_optimiser.momentum = 0.5;
  example.options.iterations_per_epoch = 3;
  example.options.stop.emplace().patience = 5;
  return example;
}

TrainingState filled_state(const StateExample& example) {
  TrainingState state = initial_state(example.layout, example.options, "", {});
  FillVisitor visitor;
  visit_state(state, visitor);
  state.seed = example.options.seed;
  state.slot = 2;
  state.micro_batch = example.options.micro_batch;
  state.micro_batches = example.options.micro_batches;
  return state;
}

std::vector<std::vector<float>> random_contributions(const StateExample& example,
                                                     model::SlotKind slot, std::uint32_t stream) {
  const auto& layout = example.layout.of(slot);
  std::vector<std::vector<float>> result(example.options.micro_batches);
  for (std::uint32_t m = 0; m < result.size(); ++m) {
    result[m].resize(static_cast<std::size_t>(layout.size));
    const runtime::RandomPosition position{.seed = 11, .micro_batch = m, .stream = stream};
    runtime::fill_normal(position, result[m].data(), static_cast<std::uint32_t>(layout.size));
    for (std::size_t t = 0; t < layout.tensors.size(); ++t) {
      const auto& tensor = layout.tensors[t];
      // Neighbouring tensors differ by orders of magnitude.
      const float magnitude = std::ldexp(1.0f, static_cast<int>(t * 11 % 31) - 20);
      for (std::int64_t i = 0; i < tensor.size; ++i) {
        float& value = result[m][static_cast<std::size_t>(tensor.offset + i)];
        value = tensor.role == Role::kEmptyImages ? 0.0f : value * magnitude;
      }
    }
  }
  return result;
}

StepRecord reduce(const StateExample& example, const TrainingState& state,
                  const std::vector<std::vector<float>>& contributions, const Sharing& sharing) {
  const auto& options = example.options;
  const auto& layout = example.layout.of(options.schedule.at(state.slot));
  const auto& own_scales = state.scales.at(state.slot);
  StepRecord record = attempt(example, state, contributions, sharing, own_scales, 0);
  if (!judge(record.header, layout, options).value()) {
    const auto scales = scales_after(own_scales, record.header, options.micro_batches);
    record = attempt(example, state, contributions, sharing, scales, 1);
  }
  CHECK(judge(record.header, layout, options).value());
  return record;
}

}  // namespace troupe::pipeline

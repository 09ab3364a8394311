#include "pipeline/data/test_losses.h"

#include <algorithm>
#include <utility>

#include "model/condition_rows.h"
#include "model/diffusion.h"
#include "model/streams.h"

namespace troupe::pipeline {
namespace {

using model::LossKind;
using model::Target;
using runtime::Result;

constexpr std::int64_t kTestedAtOnce = 16;

}  // namespace

std::vector<float> TestLosses::target_of(const Term& term, const TestConditions& conditions,
                                         double label) {
  switch (term.term->target) {
    case Target::kLabel:
      return {static_cast<float>(label)};
    case Target::kEnergy:
      return {conditions.energy};
    case Target::kAngle:
      return {conditions.angle};
    case Target::kEcal:
      return {conditions.ecal};
    case Target::kColumn:
      return {model::target_of_column(term.values, conditions.columns.at(term.column))};
    case Target::kBins:
      return {conditions.bins.begin(), conditions.bins.end()};
    case Target::kVelocity:
      break;
  }
  CHECK(false, "a velocity is of an image with noise");
}

Result<std::unique_ptr<TestLosses>> TestLosses::create(const model::GanDescription& model) {
  std::unique_ptr<TestLosses> made(new TestLosses(model));
  ASSIGN_OR_RETURN(made->backend_, model::make_portable_backend());
  model::ProgramOptions options;
  options.batch = kTestedAtOnce;
  options.network_number = 1;
  options.forward_training = options.backward_parameters = options.backward_input = false;
  ASSIGN_OR_RETURN(made->program_,
                   model::Program::compile(model.discriminator, *made->backend_, options));
  made->workspace_ = std::make_unique<model::Workspace>(*made->program_);
  const std::int64_t cells = model::image_shape(model).elements();
  ASSIGN_OR_RETURN(made->bins_, made->backend_->make_kernel(model::BinsForward{1, cells}));
  const std::vector<std::string> columns = model::columns_of(model);
  for (const model::LossTerm& term : model.losses) {
    if (term.kind == LossKind::kGradientPenalty) continue;
    const int output = made->program_->find_output(term.output);
    CHECK(output >= 0, term.output);
    const model::Shape shape = made->program_->output_shape(output);
    Term& own = made->terms_.emplace_back(Term{&term, output, 0, {}, nullptr, nullptr});
    const std::vector<double> values = model::values_of(term, shape);
    own.values.assign(values.begin(), values.end());
    own.column =
        static_cast<std::size_t>(std::ranges::find(columns, term.column) - columns.begin());
    model::MeanLoss mean{shape.elements(), term.kind};
    if (term.target == Target::kBins) mean.least_target = 1.0;
    const auto operation = [&]() -> model::Operation {
      if (term.tells_classes()) return model::ClassCrossentropy{1, shape.elements(), 1.0};
      return mean;
    };
    ASSIGN_OR_RETURN(own.loss, made->backend_->make_kernel(operation()));
    if (term.kind == LossKind::kHinge) mean.kind = LossKind::kWasserstein;
    ASSIGN_OR_RETURN(own.of_generator, made->backend_->make_kernel(operation()));
  }
  return made;
}

std::array<float, 8> TestLosses::bins_of(std::span<const float> image) const {
  std::array<float, 8> counts{};
  void* const operands[] = {const_cast<float*>(image.data()), counts.data()};
  bins_->run(operands, {}, nullptr);
  return counts;
}

void TestLosses::begin(std::span<const float> weights, std::span<const float> moving) {
  weights_ = weights;
  moving_ = moving;
  for (Side& side : sides_) {
    side = {};
    side.sums.resize(terms_.size());
    side.of_generator.resize(terms_.size());
  }
}

void TestLosses::add(bool is_real, std::span<const float> image, const TestConditions& conditions,
                     std::span<const float> made) {
  CHECK(std::ssize(image) == model::image_shape(model_).elements(), "an image of the data's shape");
  if (!is_real && model_.task == model::Task::kDiffusion) return;
  Side& side = sides_[is_real ? 1 : 0];
  side.images.insert(side.images.end(), image.begin(), image.end());
  TestConditions& own = side.conditions.emplace_back(conditions);
  const std::vector<std::string>& columns = model_.discriminator.columns;
  if (!is_real) CHECK(made.size() == columns.size(), "every column of a generated event");
  for (std::size_t k = 0; k < made.size(); ++k) own.columns.at(place_of(columns[k])) = made[k];
  if (std::ssize(side.conditions) == kTestedAtOnce) compute(is_real);
}

std::size_t TestLosses::place_of(const std::string& column) const {
  const std::vector<std::string> columns = model::columns_of(model_);
  return static_cast<std::size_t>(std::ranges::find(columns, column) - columns.begin());
}

std::vector<float> TestLosses::numbers_of(const Side& side, const std::string& condition) const {
  const std::size_t column = place_of(condition);
  std::vector<float> numbers;
  for (const TestConditions& each : side.conditions) {
    numbers.push_back(model::numbers_of(condition, each.energy, each.angle,
                                        [&](const auto&) { return each.columns.at(column); }));
  }
  return numbers;
}

void TestLosses::write_rows(const Side& side, const std::vector<std::string>& names,
                            std::span<float> rows) const {
  std::vector<std::vector<float>> numbers;
  for (const std::string& name : names) numbers.push_back(numbers_of(side, name));
  std::vector<const float*> values;
  for (const auto& each : numbers) values.push_back(each.data());
  model::write_conditions(values, std::ssize(side.conditions), rows.data());
}

void TestLosses::write_inputs(Side& side) {
  const auto input = program_->input<float>(*workspace_);
  const auto events = static_cast<std::int64_t>(side.conditions.size());
  if (model_.task != model::Task::kDiffusion) {
    const model::NetworkDescription& judge = model_.discriminator;
    std::ranges::copy(side.images, input.begin());
    if (!judge.conditions.empty()) {
      write_rows(side, judge.conditions, program_->conditions<float>(*workspace_));
    }
    if (!judge.columns.empty()) {
      write_rows(side, judge.columns, program_->columns<float>(*workspace_));
    }
    return;
  }
  std::vector<std::vector<float>> numbers;
  std::vector<const float*> conditions;
  for (const std::string& name : model_.latent.conditions) {
    conditions.push_back(numbers.emplace_back(numbers_of(side, name)).data());
  }
  const model::Shape image = model::image_shape(model_);
  side.velocities.resize(side.images.size());
  // Numbered by the first event, so that every state has the same.
  const auto first = static_cast<std::uint32_t>(side.events);
  model::add_noise(
      model::CleanEvents{events, image.elements(), image.channels, side.images.data(), conditions},
      {0, first, 0, 0, model::kLevelStream}, {0, first, 0, 0, model::kNoiseStream}, input.data(),
      side.velocities.data());
}

// A batch is computed whole; what stands behind the last event is not taken.
void TestLosses::compute(bool is_real) {
  Side& side = sides_[is_real ? 1 : 0];
  backend_->prepare_thread();
  write_inputs(side);
  model::Bindings bindings;
  bindings.weights = weights_.data();
  bindings.moving = moving_.data();
  program_->run(model::Pass::kForwardInference, bindings, *workspace_);
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    const auto values = program_->output<float>(*workspace_, term.output);
    const std::size_t size = values.size() / static_cast<std::size_t>(kTestedAtOnce);
    for (std::size_t event = 0; event < side.conditions.size(); ++event) {
      const auto output = values.subspan(event * size, size);
      const TestConditions& conditions = side.conditions[event];
      if (term.term->target == Target::kVelocity) {
        const auto own = std::span(side.velocities).subspan(event * size, size);
        side.sums[i] += loss_of(*term.loss, output, {own.begin(), own.end()});
        continue;
      }
      side.sums[i] += loss_of(*term.loss, output, target_of(term, conditions, is_real ? 1.0 : 0.0));
      if (is_real) continue;
      side.of_generator[i] += loss_of(*term.of_generator, output, target_of(term, conditions, 1.0));
    }
  }
  side.events += side.conditions.size();
  side.images.clear();
  side.conditions.clear();
}

double TestLosses::loss_of(const model::Kernel& kernel, std::span<const float> output,
                           std::vector<float> target) {
  std::vector<float> gradient(output.size());
  float value = 0.0F;
  void* const operands[] = {const_cast<float*>(output.data()), target.data(), &value,
                            gradient.data()};
  kernel.run(operands, {}, nullptr);
  return static_cast<double>(value);
}

std::vector<SlotLosses> TestLosses::end() {
  std::vector<SlotLosses> all;
  const auto tell = [&](model::SlotKind slot, const Side& side, const std::vector<double>& sums) {
    if (side.events == 0) return;
    SlotLosses& losses = all.emplace_back(SlotLosses{slot, {}});
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      losses.losses.emplace_back(terms_[i].term->name(),
                                 sums[i] / static_cast<double>(side.events));
    }
  };
  for (const bool is_real : {false, true}) {
    if (!sides_[is_real ? 1 : 0].conditions.empty()) compute(is_real);
  }
  const bool denoises = model_.task == model::Task::kDiffusion;
  tell(denoises ? model::SlotKind::kDenoise : model::SlotKind::kDReal, sides_[1], sides_[1].sums);
  tell(model::SlotKind::kDFake, sides_[0], sides_[0].sums);
  tell(model::SlotKind::kG, sides_[0], sides_[0].of_generator);
  return all;
}

}  // namespace troupe::pipeline

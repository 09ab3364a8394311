#include "pipeline/data/discriminator_outputs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/condition_rows.h"
#include "runtime/base/math.h"

namespace troupe::pipeline {
namespace {

using model::Target;

constexpr std::int64_t kJudgedAtOnce = 16;
constexpr double kFurthest = 1.0;  // relative error that a histogram reaches to

float truth_of(Target target, const JudgedImages& showers, std::size_t shower) {
  switch (target) {
    case Target::kEnergy:
      return showers.energies[shower];
    case Target::kAngle:
      return showers.angles.empty() ? 0.0F : showers.angles[shower];
    case Target::kEcal:
      return showers.ecals[shower];
    case Target::kLabel:
    case Target::kBins:
    case Target::kColumn:
    case Target::kVelocity:
      break;
  }
  CHECK(false, "the condition has a number");
}

const char* word_of(Target target) {
  switch (target) {
    case Target::kEnergy:
      return "energy of the primary";
    case Target::kAngle:
      return "angle";
    case Target::kEcal:
      return "energy in the cells";
    case Target::kLabel:
    case Target::kBins:
    case Target::kColumn:
    case Target::kVelocity:
      break;
  }
  CHECK(false, "the condition has a word");
}

}  // namespace

runtime::Result<std::unique_ptr<DiscriminatorReader>> DiscriminatorReader::create(
    const model::GanDescription& model, const model::Backend& backend, runtime::ThreadTeam& team) {
  CHECK(backend.memory().is_of_host(), "the discriminator is asked on the host");
  model::ProgramOptions options;
  options.batch = kJudgedAtOnce;
  options.network_number = 1;
  options.forward_training = options.backward_parameters = options.backward_input = false;
  ASSIGN_OR_RETURN(auto program, model::Program::compile(model.discriminator, backend, options));
  std::vector<Term> terms;
  const auto is_known = [](const std::string& condition) {
    return condition == model::kEnergyCondition || condition == model::kAngleCondition;
  };
  const bool has_all = model.discriminator.columns.empty() &&
                       std::ranges::all_of(model.discriminator.conditions, is_known);
  for (const model::LossTerm& loss : model.losses) {
    const int output = program->find_output(loss.output);
    const bool is_number = loss.target != Target::kBins && loss.target != Target::kColumn;
    const bool is_penalty = loss.kind == model::LossKind::kGradientPenalty;
    if (has_all && is_number && !is_penalty && output >= 0) terms.push_back({&loss, output});
  }
  return std::unique_ptr<DiscriminatorReader>(
      new DiscriminatorReader(std::move(program), std::move(terms), team));
}

DiscriminatorReader::DiscriminatorReader(std::unique_ptr<const model::Program> program,
                                         std::vector<Term> terms, runtime::ThreadTeam& team)
    : program_(std::move(program)), terms_(std::move(terms)), team_(team) {
  for (int i = 0; i < team.threads(); ++i) workspaces_.emplace_back(*program_);
}

std::vector<model::DiscriminatorOutput> DiscriminatorReader::outputs() const {
  std::vector<model::DiscriminatorOutput> found;
  for (const Term& term : terms_) {
    model::DiscriminatorOutput& output = found.emplace_back();
    const model::LossTerm& loss = *term.loss;
    if (loss.tells_score()) {
      output.title = fmt::format("Score of the critic ({})", loss.output);
      output.x_label = "higher: more like the data it was trained on";
      output.by_values = true;
      continue;
    }
    if (loss.target == Target::kLabel && !loss.tells_probability()) {
      output.title = fmt::format("Answer whether the shower is real ({})", loss.output);
      output.x_label = "1: real, 0: generated";
      output.low = -1.0;
      output.high = 2.0;
      continue;
    }
    if (loss.target == Target::kLabel) {
      output.title = fmt::format("Probability that the shower is real ({})", loss.output);
      output.x_label = "near 1: like the data it was trained on";
      continue;
    }
    output.title = fmt::format("Error of the estimated {} ({})", word_of(loss.target), loss.output);
    output.x_label = "(true - estimated) / true";
    output.low = -kFurthest;
    output.high = kFurthest;
  }
  return found;
}

void DiscriminatorReader::write_conditions(const JudgedImages& showers, std::size_t first,
                                           std::size_t count, model::Workspace& workspace) const {
  const std::vector<std::string>& conditions = program_->network().conditions;
  if (conditions.empty() || terms_.empty()) return;
  std::vector<const float*> values;
  for (const std::string& condition : conditions) {
    const bool is_energy = condition == model::kEnergyCondition;
    const std::span<const float> all = is_energy ? showers.energies : showers.angles;
    values.push_back(all.subspan(first, count).data());
  }
  model::write_conditions(values, static_cast<std::int64_t>(count),
                          program_->conditions<float>(workspace).data());
}

void DiscriminatorReader::read(std::span<const float> weights, std::span<const float> moving,
                               const JudgedImages& showers,
                               std::vector<float> model::DiscriminatorOutput::*side,
                               std::vector<model::DiscriminatorOutput>& outputs) {
  CHECK(outputs.size() == terms_.size(), "the outputs are of another discriminator");
  const auto cells = static_cast<std::size_t>(program_->input_shape().elements());
  const std::size_t count = showers.energies.size();
  CHECK(showers.images.size() == count * cells && showers.ecals.size() == count,
        "every shower has an image and its conditions");
  model::Bindings bindings;
  bindings.weights = weights.data();
  bindings.moving = moving.data();
  std::vector<std::size_t> begins;
  for (model::DiscriminatorOutput& output : outputs) {
    begins.push_back((output.*side).size());
    (output.*side).resize(begins.back() + count);
  }
  constexpr auto kSome = static_cast<std::size_t>(kJudgedAtOnce);
  const auto batches = static_cast<std::int64_t>((count + kSome - 1) / kSome);
  team_.run(batches, [&](std::int64_t batch, int thread) {
    model::Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    const std::size_t first = static_cast<std::size_t>(batch) * kSome;
    const std::size_t some = std::min(kSome, count - first);
    // A batch is computed whole; the rest behind the last shower is not taken.
    std::ranges::copy(showers.images.subspan(first * cells, some * cells),
                      program_->input<float>(workspace).begin());
    write_conditions(showers, first, some, workspace);
    program_->run(model::Pass::kForwardInference, bindings, workspace);
    for (std::size_t term = 0; term < terms_.size(); ++term) {
      const auto values = program_->output<float>(workspace, terms_[term].output);
      float* const into = (outputs[term].*side).data() + begins[term] + first;
      for (std::size_t i = 0; i < some; ++i) {
        into[i] = values[i];
        const model::LossTerm& loss = *terms_[term].loss;
        if (loss.kind == model::LossKind::kLogisticCrossentropy) {
          into[i] = static_cast<float>(runtime::math::sigmoid(values[i]));
        }
        if (loss.target == Target::kLabel) continue;
        const float truth = truth_of(loss.target, showers, first + i);
        into[i] = (truth - values[i]) / truth;
      }
    }
  });
  // Nothing is an error relative to a truth of 0.
  for (std::size_t term = 0; term < terms_.size(); ++term) {
    const Target target = terms_[term].loss->target;
    if (target == Target::kLabel) continue;
    std::vector<float>& values = outputs[term].*side;
    std::size_t kept = begins[term];
    for (std::size_t i = 0; i < count; ++i) {
      if (truth_of(target, showers, i) == 0.0f) continue;
      values[kept++] = values[begins[term] + i];
    }
    values.resize(kept);
  }
}

}  // namespace troupe::pipeline

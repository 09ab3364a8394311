// A model's description, and what follows from it before it is compiled.

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "model/gan.h"
#include "model/layer_rules.h"

namespace troupe::model {

std::string target_name(Target target) {
  switch (target) {
    case Target::kLabel:
      return "label";
    case Target::kEnergy:
      return "energy";
    case Target::kAngle:
      return "angle";
    case Target::kEcal:
      return "ecal";
    case Target::kBins:
      return "bins";
    case Target::kColumn:
      return "";
    case Target::kVelocity:
      return "velocity";
  }
  CHECK(false, "unknown target");
}

std::string task_name(Task task) {
  switch (task) {
    case Task::kGan:
      return "gan";
    case Task::kSupervised:
      return "supervised";
    case Task::kDiffusion:
      return "diffusion";
  }
  CHECK(false, "unknown task");
}

Shape image_shape(const GanDescription& gan) {
  const Shape& input = gan.discriminator.input;
  if (gan.task != Task::kDiffusion) return input;
  return denoised_shape(input, gan.latent.conditions.size());
}

std::string diffusion_fault(const GanDescription& gan) {
  if (gan.task != Task::kDiffusion) return "";
  const std::size_t conditions = gan.latent.conditions.size();
  if (conditions > kMostConditions) {
    return fmt::format("{} conditions; there is room for {}", conditions, kMostConditions);
  }
  if (image_shape(gan).channels < 1) {
    return fmt::format(
        "the input {} has no channels of an image beside the level and {} condition{}",
        gan.discriminator.input.text(), conditions, conditions == 1 ? "" : "s");
  }
  if (gan.losses.size() != 1 || gan.losses.front().target != Target::kVelocity) {
    return "a diffusion task has one loss, whose target is velocity";
  }
  return "";
}

std::string conditions_fault(const GanDescription& gan) {
  const std::vector<std::string>& conditions = gan.discriminator.conditions;
  if (conditions.size() > kMostConditions) {
    return fmt::format("{} conditions; there is room for {}", conditions.size(), kMostConditions);
  }
  if (gan.task == Task::kDiffusion && !conditions.empty()) {
    return "the network of a diffusion task has its conditions in the channels of its input";
  }
  const std::vector<std::string>& asked = gan.latent.conditions;
  for (const std::string& condition : conditions) {
    if (gan.task != Task::kGan || std::ranges::find(asked, condition) != asked.end()) continue;
    return fmt::format("the discriminator has the condition {}, which no shower is asked for",
                       condition);
  }
  return "";
}

NetworkDescription computed_generator(const GanDescription& gan) {
  if (gan.task != Task::kGan) {
    return {"generator", Shape::features(1), {{"none", Flatten{}, ""}}, {}};
  }
  NetworkDescription generator = gan.generator;
  generator.makes.clear();
  std::vector<std::string> layers;
  for (const std::string& column : gan.discriminator.columns) {
    const auto made = std::ranges::find(gan.generator.makes, column, &MadeColumn::column);
    if (made != gan.generator.makes.end()) layers.push_back(made->layer);
  }
  if (layers.empty()) return gan.generator;
  if (generator.outputs.empty()) generator.outputs = {generator.layers.back().name};
  if (layers.size() > 1) {
    // No layer of a generator that makes columns has this name (infer_shapes()).
    generator.layers.push_back(
        {"columns", Concatenate{{layers.begin() + 1, layers.end()}}, layers.front()});
    layers = {"columns"};
  }
  generator.outputs.push_back(layers.front());
  return generator;
}

std::string columns_fault(const GanDescription& gan) {
  const std::vector<std::string>& read = gan.discriminator.columns;
  const std::vector<MadeColumn>& makes = gan.generator.makes;
  if (gan.task != Task::kGan) {
    return read.empty() ? ""
                        : fmt::format(
                              "columns are what a GAN's generator makes; the network of a "
                              "{} task is told {} by its conditions",
                              task_name(gan.task), read.front());
  }
  for (const std::string& column : read) {
    if (std::ranges::find(makes, column, &MadeColumn::column) != makes.end()) continue;
    return fmt::format(
        "the discriminator reads the column {}, which the generator does not make; name the layer "
        "that makes it in model.generator.makes",
        column);
  }
  if (read.size() > kMostConditions) {
    return fmt::format("{} columns; there is room for {}", read.size(), kMostConditions);
  }
  const auto& asked = gan.latent.conditions;
  for (const auto& [column, layer] : makes) {
    if (column == kEnergyCondition || column == kAngleCondition ||
        std::ranges::find(asked, column) != asked.end()) {
      return fmt::format("the generator makes {}, which showers are asked for", column);
    }
    if (std::ranges::find(read, column) == read.end()) {
      return fmt::format(
          "the generator makes the column {}, which the discriminator does not read, so that "
          "nothing teaches it; name it in model.discriminator.columns",
          column);
    }
  }
  return "";
}

std::string made_target_fault(const GanDescription& gan, const LossTerm& term) {
  const auto& read = gan.discriminator.columns;
  if (term.target != Target::kColumn || std::ranges::find(read, term.column) == read.end()) {
    return "";
  }
  return fmt::format(
      "{} is made by the generator and read by the discriminator, and no target besides; take "
      "another target or leave the output out",
      term.column);
}

std::string term_fault(const LossTerm& term, const Shape& output, const Shape& image) {
  const std::string target =
      term.target == Target::kColumn ? term.column : target_name(term.target);
  if (term.tells_score() && term.target != Target::kLabel) {
    return fmt::format("hinge and wasserstein are losses of a GAN's label, and not of {}", target);
  }
  if (term.tells_classes()) {
    const std::int64_t classes = output.channels;
    if (output != Shape::features(classes) || classes < 2) {
      return fmt::format("classes need an output of two features or more, but \"{}\" is {}",
                         term.output, output.text());
    }
    if (term.classes.empty() || std::cmp_equal(term.classes.size(), classes)) return {};
    return fmt::format("{} classes are named, but output \"{}\" is {}", term.classes.size(),
                       term.output, output.text());
  }
  const bool of_cells = term.target == Target::kVelocity;
  if (of_cells && term.kind != LossKind::kMeanSquaredError &&
      term.kind != LossKind::kMeanAbsoluteError && term.kind != LossKind::kHuber) {
    return "a velocity is learned by mse, mae or huber";
  }
  const Shape expected =
      of_cells ? image : Shape::features(term.target == Target::kBins ? kBinCount : 1);
  if (output == expected) return {};
  if (of_cells) {
    return told_apart("target velocity has", image, fmt::format("output \"{}\" has", term.output),
                      output);
  }
  return fmt::format("target {} is {} per event, but output \"{}\" is {}", target, expected.text(),
                     term.output, output.text());
}

std::string penalty_fault(const GanDescription& gan) {
  const auto is_penalty = [](const LossTerm& term) {
    return term.kind == LossKind::kGradientPenalty;
  };
  const auto penalty = std::ranges::find_if(gan.losses, is_penalty);
  if (penalty == gan.losses.end()) return {};
  if (std::any_of(penalty + 1, gan.losses.end(), is_penalty)) {
    return "a model has one gradient penalty";
  }
  if (std::ranges::find(gan.discriminator.outputs, penalty->name()) !=
      gan.discriminator.outputs.end()) {
    return fmt::format("an output has the name of the penalty's term, \"{}\"; rename it",
                       penalty->name());
  }
  if (!gan.discriminator.columns.empty()) {
    return fmt::format(
        "is of images alone, and the discriminator reads the column {} besides; "
        "leave one of them out",
        gan.discriminator.columns.front());
  }
  if (std::ranges::any_of(gan.discriminator.layers, [](const auto& layer) {
        return std::holds_alternative<BatchNorm>(layer.kind);
      })) {
    return "is of single events, which batch_norm of the discriminator mixes; take layer_norm in "
           "its place";
  }
  return {};
}

std::vector<LossTerm> told_losses(const GanDescription& gan) {
  if (!gan.worker_arrays || gan.task != Task::kGan) return gan.losses;
  std::vector<LossTerm> told;
  for (const char* const network : {"g/", "d/"}) {
    for (LossTerm term : gan.losses) {
      term.output = network + term.output;
      told.push_back(std::move(term));
    }
  }
  return told;
}

std::vector<double> values_of(const LossTerm& term, const Shape& output) {
  std::vector<double> values = term.classes;
  if (!term.tells_classes() || !values.empty()) return values;
  values.resize(static_cast<std::size_t>(output.channels));
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

float target_of_column(std::span<const float> values, float number) {
  if (values.empty()) return number;
  return static_cast<float>(std::ranges::find(values, number) - values.begin());
}

namespace {

// The condition that a layer reads as one feature, by way of slices, or of what is the same in all
// cells; "": it reads none. Channels of the network's input begin with `first`.
std::string condition_read(const NetworkDescription& network, const NetworkShapes& shapes, int from,
                           const std::vector<std::string>& first) {
  std::int64_t feature = 0;
  while (from >= 0) {
    const auto layer = static_cast<std::size_t>(from);
    const LayerKind& kind = network.layers[layer].kind;
    const auto* slice = std::get_if<Slice>(&kind);
    if (slice == nullptr && !std::holds_alternative<GlobalMaxPool>(kind)) return "";
    if (slice != nullptr && slice->axis == Axis::kChannels) feature += slice->begin;
    from = shapes.inputs[layer];
  }
  if (from == kOfColumns) return "";
  const std::vector<std::string>& names = from == kOfInput ? first : network.conditions;
  return std::cmp_less(feature, names.size()) ? names[static_cast<std::size_t>(feature)] : "";
}

// The conditions in the channels that a denoising network reads; "": none.
std::vector<std::string> denoised_channels(const GanDescription& gan) {
  const std::vector<std::string>& conditions = gan.latent.conditions;
  const auto channels = static_cast<std::size_t>(gan.discriminator.input.channels);
  std::vector<std::string> all(channels - std::min(channels, conditions.size()));
  all.insert(all.end(), conditions.begin(), conditions.end());
  return all;
}

}  // namespace

std::vector<EmbeddedCondition> embedded_conditions(const GanDescription& gan) {
  std::vector<EmbeddedCondition> embedded;
  const auto add = [&](const NetworkDescription& network, const std::vector<std::string>& first) {
    const NetworkShapes shapes = infer_shapes(network);
    if (!shapes.problems.empty()) return;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
      const auto* embedding = std::get_if<Embedding>(&network.layers[i].kind);
      if (embedding == nullptr) continue;
      std::string condition = condition_read(network, shapes, shapes.inputs[i], first);
      if (condition.empty()) continue;
      embedded.push_back({std::move(condition), network.layers[i].name, embedding->classes});
    }
  };
  const std::vector<std::string> none;
  if (gan.task == Task::kGan) {
    add(gan.generator, gan.latent.mode == LatentMode::kPrepend ? gan.latent.conditions : none);
  }
  add(gan.discriminator, gan.task == Task::kDiffusion ? denoised_channels(gan) : none);
  return embedded;
}

std::vector<std::string> columns_of(const GanDescription& gan) {
  std::vector<std::string> columns;
  if (gan.task != Task::kSupervised) columns = columns_of(gan.latent);
  const auto add = [&columns](const std::string& name) {
    if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
  };
  for (const std::string& condition : gan.discriminator.conditions) {
    if (condition != kEnergyCondition && condition != kAngleCondition) add(condition);
  }
  for (const std::string& column : gan.discriminator.columns) add(column);
  for (const LossTerm& term : gan.losses) {
    if (term.target == Target::kColumn) add(term.column);
  }
  return columns;
}

std::string slot_name(SlotKind slot) {
  switch (slot) {
    case SlotKind::kDReal:
      return "d_real";
    case SlotKind::kDFake:
      return "d_fake";
    case SlotKind::kG:
      return "g";
    case SlotKind::kDBoth:
      return "d_both";
    case SlotKind::kFit:
      return "fit";
    case SlotKind::kDenoise:
      return "denoise";
    case SlotKind::kWorkers:
      return "workers";
    case SlotKind::kStatistics:
      return "statistics";
  }
  CHECK(false, "unknown slot");
}

std::string learner_name(SlotKind slot) {
  switch (slot) {
    case SlotKind::kG:
      return "generator";
    case SlotKind::kDReal:
    case SlotKind::kDFake:
    case SlotKind::kDBoth:
      return "discriminator";
    case SlotKind::kFit:
    case SlotKind::kDenoise:
      return "network";
    case SlotKind::kWorkers:
      return "workers";
    case SlotKind::kStatistics:
      return "";
  }
  CHECK(false, "unknown slot");
}

Task task_of(SlotKind slot) {
  if (slot == SlotKind::kFit) return Task::kSupervised;
  return slot == SlotKind::kDenoise ? Task::kDiffusion : Task::kGan;
}

SlotKind only_slot(Task task) {
  CHECK(task != Task::kGan, "a GAN has several steps");
  return *std::ranges::find(kSlotKinds, task, task_of);
}

SlotAccess slot_access(SlotKind slot) {
  switch (slot) {
    case SlotKind::kDReal:
    case SlotKind::kFit:
    case SlotKind::kDenoise:
      return {0, kDiscriminatorWeights | kSharedStatistics,
              kDiscriminatorWeights | kDiscriminatorMoving};
    case SlotKind::kDFake:
    case SlotKind::kDBoth:
      return {kGeneratorWeights | kGeneratorMoving,
              kGeneratorWeights | kGeneratorMoving | kDiscriminatorWeights | kSharedStatistics,
              kDiscriminatorWeights | kDiscriminatorMoving};
    case SlotKind::kG:
      return {kGeneratorWeights, kGeneratorWeights | kDiscriminatorWeights | kSharedStatistics,
              kGeneratorWeights | kGeneratorMoving | kDiscriminatorMoving};
    case SlotKind::kWorkers: {
      constexpr std::uint8_t kAll =
          kGeneratorWeights | kGeneratorMoving | kDiscriminatorWeights | kDiscriminatorMoving;
      return {kAll, kAll, kAll};
    }
    case SlotKind::kStatistics:
      return {0, kGeneratorWeights | kGeneratorMoving | kDiscriminatorWeights | kSharedStatistics,
              kSharedStatistics};
  }
  CHECK(false, "unknown slot");
}

}  // namespace troupe::model

#include "config/network_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config/shipped.h"
#include "model/layer_rules.h"

namespace troupe::config {
namespace {

using model::GanDescription;
using model::NetworkDescription;
using model::NetworkShapes;

// Beyond this a description is a slip of the pen; a run would ask for terabytes.
constexpr std::int64_t kMostParameters = std::int64_t{1} << 31;
constexpr std::int64_t kMostElements = std::int64_t{1} << 28;

// Where in a network at `path` a problem is to be mended.
std::string place_of(const model::NetworkProblem& problem, const std::string& path) {
  if (problem.layer >= 0) return fmt::format("{}.layers.{}", path, problem.layer);
  if (!problem.column.empty()) return fmt::format("{}.makes.{}", path, problem.column);
  return problem.message.starts_with("output ") ? path + ".outputs" : path;
}

// The one of `fields`, or else of what stands below `path`, that the author has changed, the newest
// way first.
std::string changed_field(std::vector<std::string> fields, const std::string& path,
                          const Reader& reader) {
  for (const auto& [field, origin] : reader.origins()) {
    if (field.starts_with(path + ".")) fields.push_back(field);
  }
  return field_to_mend(fields, reader.origins());
}

// A part of the zoo is not what is wrong: where the author has changed the network at `path`. Else
// where the part stands.
Place place_to_mend(const std::string& at, const std::string& path, const Reader& reader) {
  const Place place = reader.origin(at);
  return is_from_zoo(place) ? reader.origin(changed_field({at}, path, reader)) : place;
}

// Shapes of a network at `path`, its problems reported; without problems when `ok`.
NetworkShapes check_network(const NetworkDescription& network, const std::string& path,
                            Reader& reader) {
  NetworkShapes shapes = model::infer_shapes(network);
  for (const model::NetworkProblem& problem : shapes.problems) {
    const std::string at = place_of(problem, path);
    reader.problem_at(at, place_to_mend(at, path, reader), problem.message);
  }
  if (!shapes.problems.empty()) return shapes;
  for (std::size_t i = 0; i < shapes.layers.size(); ++i) {
    if (shapes.layers[i].elements() <= kMostElements) continue;
    const std::string at = fmt::format("{}.layers.{}", path, i);
    reader.problem_at(at, place_to_mend(at, path, reader),
                      fmt::format("{} makes more than {} values for one event",
                                  shapes.layers[i].text(), kMostElements));
  }
  const std::int64_t parameters = model::layout_parameters(network, shapes).size();
  if (parameters > kMostParameters) {
    reader.problem_at(path, place_to_mend(path, path, reader),
                      fmt::format("{} parameters, more than {}", parameters, kMostParameters));
  }
  return shapes;
}

// Where the author wrote something: a part of the zoo is not what is wrong.
std::string authored(const std::string& at, const std::string& otherwise, const Reader& reader) {
  return is_from_zoo(reader.origin(at)) ? otherwise : at;
}

// Whether the numbers behind the layer lie between those before it, or are 0.
bool keeps_range(const model::LayerKind& kind) {
  if (const auto* activation = std::get_if<model::Activation>(&kind)) {
    return activation->kind == model::ActivationKind::kLinear ||
           activation->kind == model::ActivationKind::kRelu;
  }
  return std::holds_alternative<model::Flatten>(kind) ||
         std::holds_alternative<model::Reshape>(kind) ||
         std::holds_alternative<model::Permute>(kind) ||
         std::holds_alternative<model::Slice>(kind) || std::holds_alternative<model::Crop>(kind) ||
         std::holds_alternative<model::AveragePool>(kind) ||
         std::holds_alternative<model::MaxPool>(kind) ||
         std::holds_alternative<model::GlobalAveragePool>(kind) ||
         std::holds_alternative<model::GlobalMaxPool>(kind);
}

bool makes_any_number(const model::LayerKind& kind) {
  return std::holds_alternative<model::Activation>(kind) ||
         std::holds_alternative<model::Dense>(kind) ||
         std::holds_alternative<model::Convolution>(kind) ||
         std::holds_alternative<model::TransposedConvolution>(kind) ||
         std::holds_alternative<model::BatchNorm>(kind) ||
         std::holds_alternative<model::LayerNorm>(kind) ||
         std::holds_alternative<model::InstanceNorm>(kind) ||
         std::holds_alternative<model::GroupNorm>(kind);
}

// The layer whose numbers an output has; null: those of the network's input.
const model::Layer* layer_of_numbers(const NetworkDescription& network, const NetworkShapes& shapes,
                                     int number) {
  while (number >= 0) {
    const auto layer = static_cast<std::size_t>(number);
    if (!keeps_range(network.layers[layer].kind)) return &network.layers[layer];
    number = shapes.inputs[layer];
  }
  return nullptr;
}

// A loss that trains badly or nothing: cross-entropy of numbers that are no probabilities, or that
// are made probabilities twice; a share of 0. "": there is none, as far as layers tell.
std::string loss_fault(const model::LossTerm& term, const model::Layer* layer) {
  if (term.kind == model::LossKind::kMeanAbsolutePercentageError &&
      term.target == model::Target::kLabel) {
    return "mape is in per cent of the target, and the label of generated events is 0";
  }
  if (layer == nullptr || (!term.tells_probability() && !term.tells_classes())) return "";
  const std::string what =
      fmt::format("layer \"{}\" ({})", layer->name, model::kind_name(layer->kind));
  const auto* activation = std::get_if<model::Activation>(&layer->kind);
  const bool is_sigmoid =
      activation != nullptr && activation->kind == model::ActivationKind::kSigmoid;
  const bool makes_probability = is_sigmoid || std::holds_alternative<model::Softmax>(layer->kind);
  if (term.kind != model::LossKind::kBinaryCrossentropy) {
    if (!makes_probability) return "";
    return fmt::format(
        "the loss makes probabilities itself, and {} has made them; leave that "
        "layer out{}",
        what, is_sigmoid && !term.tells_classes() ? ", or take bce" : "");
  }
  if (makes_probability || !makes_any_number(layer->kind)) return "";
  return fmt::format(
      "bce reads a probability, and {} makes other numbers too; put a sigmoid "
      "behind it, or take bce_logits",
      what);
}

// An output has as many values as what it is compared with, and such as the loss reads.
void check_targets(const GanDescription& gan, const NetworkShapes& shapes, Reader& reader) {
  for (const model::LossTerm& term : gan.losses) {
    for (const int output : shapes.outputs) {
      const auto layer = static_cast<std::size_t>(output);
      if (gan.discriminator.layers[layer].name != term.output) continue;
      std::string fault = model::term_fault(term, shapes.layers[layer], model::image_shape(gan));
      if (fault.empty()) fault = model::made_target_fault(gan, term);
      const char* field = "target";
      if (fault.empty()) {
        fault = loss_fault(term, layer_of_numbers(gan.discriminator, shapes, output));
        field = "kind";
      }
      if (fault.empty()) continue;
      const std::string at = authored(fmt::format("model.losses.{}.{}", term.output, field),
                                      fmt::format("{}.layers.{}", judge_path(gan), output), reader);
      reader.problem_at(at, place_to_mend(at, judge_path(gan), reader), shown(fault, 400));
    }
  }
}

// The generator makes images of the shape that the discriminator reads.
void check_image(const GanDescription& gan, const NetworkShapes& shapes, Reader& reader) {
  const auto last = static_cast<std::size_t>(shapes.outputs.front());
  const model::Layer& layer = gan.generator.layers[last];
  const model::Shape &made = shapes.layers[last], &read = gan.discriminator.input;
  if (made == read) return;
  const std::string at = fmt::format("model.generator.layers.{}", last);
  const std::string input = "model.discriminator.input";
  const std::string changed = changed_field({at, input}, "model.generator", reader);
  const std::string maker = fmt::format("the generator's layer {} ({}) makes", shown(layer.name),
                                        model::kind_name(layer.kind));
  reader.problem_at(changed == input ? input : at, reader.origin(changed),
                    model::told_apart(maker, made, "the discriminator reads", read));
}

void check_losses(const GanDescription& gan, Reader& reader) {
  std::set<std::string> judged;
  for (const model::LossTerm& term : gan.losses) {
    const auto& outputs = gan.discriminator.outputs;
    judged.insert(term.output);
    if (std::find(outputs.begin(), outputs.end(), term.output) != outputs.end()) continue;
    const std::string at = "model.losses." + term.output;
    reader.problem_at(at, fmt::format("\"{}\" is no output of {}{}", shown(term.output),
                                      judge_name(gan), suggestion(term.output, outputs)));
  }
  for (const std::string& output : gan.discriminator.outputs) {
    if (judged.contains(output)) continue;
    const std::string all = judge_path(gan) + ".outputs";
    reader.broken_rule({"model.losses", all},
                       fmt::format("output \"{}\" of {} has no loss; give it one or take it out of "
                                   "{}",
                                   shown(output), judge_name(gan), all));
  }
}

}  // namespace

std::string judge_path(const GanDescription& gan) {
  return gan.task == model::Task::kGan ? "model.discriminator" : "model.network";
}
std::string judge_name(const GanDescription& gan) {
  return gan.task == model::Task::kGan ? "the discriminator" : "the network";
}

void check_networks(const GanDescription& gan, Reader& reader) {
  const bool makes = gan.task == model::Task::kGan;
  NetworkShapes shapes;
  if (makes) {
    NetworkDescription generator = gan.generator;
    generator.name = "generator";
    generator.input = model::Shape::features(gan.latent.size);
    shapes = check_network(generator, "model.generator", reader);
  }
  NetworkDescription discriminator = gan.discriminator;
  discriminator.name = makes ? "discriminator" : "network";
  const NetworkShapes judged = check_network(discriminator, judge_path(gan), reader);
  if (const std::string fault = model::conditions_fault(gan); !fault.empty()) {
    std::vector<std::string> at{judge_path(gan) + ".conditions"};
    if (makes) at.emplace_back("model.generator.latent.conditions");
    reader.broken_rule(at, shown(fault, 400));
  }
  if (const std::string fault = model::columns_fault(gan); !fault.empty()) {
    reader.broken_rule({"model.generator.makes", "model.discriminator.columns",
                        "model.generator.latent.conditions"},
                       shown(fault, 400));
  }
  if (const std::string fault = model::diffusion_fault(gan); !fault.empty()) {
    // Where the input is right, the losses are not.
    const bool of_losses = model::image_shape(gan).channels > 0;
    reader.broken_rule(of_losses ? std::vector<std::string>{"model.losses", "model.task"}
                                 : std::vector<std::string>{judge_path(gan) + ".input",
                                                            "model.diffusion.conditions"},
                       fault);
  } else if (judged.problems.empty()) {
    check_targets(gan, judged, reader);
  }
  if (discriminator.input.spatial_rank == 0) {
    reader.problem_at(
        judge_path(gan) + ".input",
        fmt::format("{} is no image: [x, y, z, channels], [x, y, channels] or [x, channels]",
                    discriminator.input.text()));
  }
  if (makes && shapes.problems.empty()) check_image(gan, shapes, reader);
  check_losses(gan, reader);
}

void check_fake_conditions(const GanDescription& gan, Reader& reader) {
  if (gan.fake_conditions != model::FakeConditions::kUniform) return;
  const std::string at = "train.fake_conditions";
  if (model::uses_angle(gan.latent)) {
    reader.broken_rule({at, "model.generator.latent.conditions"},
                       "uniform draws energies only, but the model is asked for angles; use batch");
  }
  if (const auto columns = model::columns_of(gan.latent); !columns.empty()) {
    reader.broken_rule({at, "model.generator.latent.conditions"},
                       fmt::format("uniform draws energies only, but the model is asked for {}; "
                                   "use batch",
                                   shown(columns.front())));
  }
  for (const model::EmbeddedCondition& embedded : model::embedded_conditions(gan)) {
    if (embedded.condition != model::kEnergyCondition) continue;
    reader.broken_rule({at},
                       fmt::format("uniform draws any energy, but layer {} (embedding) reads the "
                                   "energy as a class; use batch",
                                   shown(embedded.layer)));
  }
  for (const model::LossTerm& term : gan.losses) {
    std::string what = term.target == model::Target::kAngle    ? "angles"
                       : term.target == model::Target::kBins   ? "bins"
                       : term.target == model::Target::kColumn ? shown(term.column)
                                                               : "";
    if (what.empty()) continue;
    reader.broken_rule({at, fmt::format("model.losses.{}.target", term.output)},
                       fmt::format("uniform draws energies only, but loss \"{}\" compares fakes "
                                   "with {} of the real batch; use batch",
                                   shown(term.output), what));
  }
}

std::optional<double> exponent_of_cells(const NetworkDescription& discriminator,
                                        const model::LossTerm& term) {
  if (term.target != model::Target::kEcal && term.target != model::Target::kAngle) return {};
  const NetworkShapes shapes = model::infer_shapes(discriminator);
  const auto& layers = discriminator.layers;
  const auto output = std::find_if(layers.begin(), layers.end(),
                                   [&](const auto& layer) { return layer.name == term.output; });
  if (!shapes.problems.empty() || output == layers.end()) return {};
  if (!std::holds_alternative<model::Sum>(output->kind) &&
      !std::holds_alternative<model::Angle>(output->kind)) {
    return {};
  }
  // Any other layer than a power mixes or changes cells, so that there is no exponent.
  double exponent = 1.0;
  int layer = shapes.inputs[static_cast<std::size_t>(output - layers.begin())];
  while (layer >= 0) {
    const auto* power = std::get_if<model::Power>(&layers[static_cast<std::size_t>(layer)].kind);
    if (power == nullptr) return {};
    exponent *= power->exponent;
    layer = shapes.inputs[static_cast<std::size_t>(layer)];
  }
  if (layer != model::kOfInput) return {};
  return exponent;
}

}  // namespace troupe::config

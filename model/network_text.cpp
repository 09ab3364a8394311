#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "model/network.h"

namespace troupe::model {
namespace {

// In the order of LayerKind.
constexpr const char* kKindNames[] = {
    "dense",
    "convolution",
    "transposed_convolution",
    "pad",
    "crop",
    "upsample",
    "average_pool",
    "max_pool",
    "global_average_pool",
    "global_max_pool",
    "batch_norm",
    "layer_norm",
    "instance_norm",
    "group_norm",
    "dropout",
    "activation",
    "softmax",
    "power",
    "reshape",
    "flatten",
    "permute",
    "slice",
    "add",
    "multiply",
    "concatenate",
    "embedding",
    "attention",
    "sum",
    "angle",
    "bins",
};
static_assert(std::size(kKindNames) == std::variant_size_v<LayerKind>);

std::string print_problems(const NetworkDescription& network, const NetworkShapes& shapes) {
  std::string text = fmt::format("network {} cannot be:\n", network.name);
  for (const NetworkProblem& problem : shapes.problems) text += "  " + problem.message + "\n";
  return text;
}

}  // namespace

std::string kind_name(const LayerKind& kind) { return kKindNames[kind.index()]; }

std::vector<std::string> other_inputs(const LayerKind& kind) {
  if (const auto* add = std::get_if<Add>(&kind)) return add->with;
  if (const auto* multiply = std::get_if<Multiply>(&kind)) return {multiply->with};
  if (const auto* concatenate = std::get_if<Concatenate>(&kind)) return concatenate->with;
  return {};
}

std::string print_network(const NetworkDescription& network, const NetworkShapes& shapes) {
  if (!shapes.problems.empty()) return print_problems(network, shapes);
  const ParameterLayout layout = layout_parameters(network, shapes);
  std::vector<std::int64_t> counts(network.layers.size(), 0);
  for (const auto* tensors : {&layout.weights, &layout.moving}) {
    for (const ParameterTensor& tensor : *tensors) {
      counts[static_cast<std::size_t>(tensor.layer)] += tensor.size;
    }
  }
  std::vector<bool> is_output(network.layers.size(), false);
  for (const int output : shapes.outputs) is_output[static_cast<std::size_t>(output)] = true;

  constexpr const char* kRow = "  {:<20} {:<14} {:<20} {:>16} {:>12}{}\n";
  std::string text = fmt::format("network {}: input {}\n", network.name, network.input.text());
  if (!network.conditions.empty()) {
    text += fmt::format("  conditions {}\n", fmt::join(network.conditions, ", "));
  }
  if (!network.columns.empty()) {
    text += fmt::format("  columns {}\n", fmt::join(network.columns, ", "));
  }
  for (const MadeColumn& made : network.makes) {
    text += fmt::format("  makes the column {} by {}\n", made.column, made.layer);
  }
  text += fmt::format(kRow, "layer", "kind", "reads", "output shape", "parameters", "");
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    std::string reads = name_read(network, shapes.inputs[i]);
    for (const std::string& other : other_inputs(layer.kind)) reads += ", " + other;
    text += fmt::format(kRow, layer.name, kind_name(layer.kind), reads, shapes.layers[i].text(),
                        counts[i], is_output[i] ? "  output" : "");
  }
  return text +
         fmt::format("  {} parameters, {} of them trainable\n", layout.size(), layout.weights_size);
}

}  // namespace troupe::model

#include <fmt/format.h>

#include "model/network.h"

namespace troupe::model {
namespace {

struct KindName {
  const char* operator()(const Dense&) const { return "dense"; }
  const char* operator()(const Convolution&) const { return "convolution"; }
  const char* operator()(const Pad&) const { return "pad"; }
  const char* operator()(const Upsample&) const { return "upsample"; }
  const char* operator()(const AveragePool&) const { return "average_pool"; }
  const char* operator()(const BatchNorm&) const { return "batch_norm"; }
  const char* operator()(const Dropout&) const { return "dropout"; }
  const char* operator()(const Activation&) const { return "activation"; }
  const char* operator()(const Power&) const { return "power"; }
  const char* operator()(const Reshape&) const { return "reshape"; }
  const char* operator()(const Flatten&) const { return "flatten"; }
  const char* operator()(const Sum&) const { return "sum"; }
  const char* operator()(const Angle&) const { return "angle"; }
  const char* operator()(const Bins&) const { return "bins"; }
};

std::string print_problems(const NetworkDescription& network, const NetworkShapes& shapes) {
  std::string text = fmt::format("network {} cannot be:\n", network.name);
  for (const NetworkProblem& problem : shapes.problems) text += "  " + problem.message + "\n";
  return text;
}

}  // namespace

std::string kind_name(const LayerKind& kind) { return std::visit(KindName{}, kind); }

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
  text += fmt::format(kRow, "layer", "kind", "reads", "output shape", "parameters", "");
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    const int input = shapes.inputs[i];
    const std::string reads =
        input < 0 ? "input" : network.layers[static_cast<std::size_t>(input)].name;
    text += fmt::format(kRow, layer.name, kind_name(layer.kind), reads, shapes.layers[i].text(),
                        counts[i], is_output[i] ? "  output" : "");
  }
  return text +
         fmt::format("  {} parameters, {} of them trainable\n", layout.size(), layout.weights_size);
}

}  // namespace troupe::model

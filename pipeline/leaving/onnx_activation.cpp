#include "pipeline/leaving/onnx_activation.h"

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
std::string gelu(OnnxGraph& graph, const std::string& x, const std::string& layer) {
  const std::string cube =
      graph.node("Pow", {x, graph.number(layer + "three", 3.0)}, layer + "cube");
  const std::string small =
      graph.node("Mul", {cube, graph.number(layer + "of_cube", 0.044715)}, layer + "small");
  const std::string scaled = graph.node("Mul",
                                        {graph.node("Add", {x, small}, layer + "argument"),
                                         graph.number(layer + "scale", 0.79788456080286536)},
                                        layer + "scaled");
  const std::string weight = graph.node(
      "Add", {graph.node("Tanh", {scaled}, layer + "tanh"), graph.number(layer + "one", 1.0)},
      layer + "weight");
  const std::string half =
      graph.node("Mul", {x, graph.number(layer + "a_half", 0.5)}, layer + "half");
  return graph.node("Mul", {half, weight}, layer + "output");
}

}  // namespace

std::string add_activation(OnnxGraph& graph, const model::Activation& activation,
                           const std::string& x, const std::string& layer) {
  switch (activation.kind) {
    case model::ActivationKind::kLinear:
      return x;
    case model::ActivationKind::kRelu:
      return graph.node("Relu", {x}, layer + "output");
    case model::ActivationKind::kLeakyRelu:
      return graph.node("LeakyRelu", {x}, layer + "output",
                        {{"alpha", static_cast<float>(activation.slope)}});
    case model::ActivationKind::kSigmoid:
      return graph.node("Sigmoid", {x}, layer + "output");
    case model::ActivationKind::kTanh:
      return graph.node("Tanh", {x}, layer + "output");
    case model::ActivationKind::kSoftplus:
      return graph.node("Softplus", {x}, layer + "output");
    case model::ActivationKind::kElu:
      return graph.node("Elu", {x}, layer + "output");
    case model::ActivationKind::kSilu:
      return graph.node("Mul", {x, graph.node("Sigmoid", {x}, layer + "sigmoid")},
                        layer + "output");
    case model::ActivationKind::kGelu:
      return gelu(graph, x, layer);
  }
  CHECK(false, "an activation of no kind");
}

}  // namespace troupe::pipeline

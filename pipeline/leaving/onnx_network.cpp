#include "pipeline/leaving/onnx_network.h"

#include <algorithm>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/overloaded.h"

namespace troupe::pipeline {
namespace {

using model::ParameterRole;
using runtime::Result;

// A value of the graph. ONNX computes images as (N, channels, x, y, z), so they are kept like that
// between layers; features are (N, count). What is flattened has the order of Keras, channels last.
struct Value {
  std::string name;
  model::Shape shape;
  bool is_image() const { return shape.spatial_rank > 0; }
};

class NetworkWriter {
 public:
  NetworkWriter(OnnxGraph& graph, const NetworkParameters& parameters)
      : graph_(graph), parameters_(parameters) {}

  Result<std::string> write(const std::string& input) {
    const model::NetworkDescription& network = parameters_.network();
    const Value first{input, network.input};
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
      const int from = parameters_.shapes().inputs[i];
      layer_ = static_cast<int>(i);
      name_ = network.layers[i].name;
      shape_ = parameters_.shapes().layers[i];
      const Value& before = from < 0 ? first : values_[static_cast<std::size_t>(from)];
      ASSIGN_OR_RETURN(Value value, std::visit([&](const auto& kind) { return add(before, kind); },
                                               network.layers[i].kind));
      values_.push_back(std::move(value));
    }
    const Value& last = values_[static_cast<std::size_t>(parameters_.shapes().outputs.front())];
    name_ = "shower.";  // no layer is called so
    return last.is_image() ? channels_last(last) : last.name;
  }

 private:
  std::string own(const char* part) const { return name_ + "/" + part; }
  Value here(std::string name) const { return {std::move(name), shape_}; }

  // Without channels, or with one, only the shape differs between the orders.
  std::string channels_last(const Value& image) {
    const model::Shape& shape = image.shape;
    if (shape.channels > 1) {
      return graph_.node("Transpose", {image.name}, own("channels_last"),
                         {{"perm", std::vector<std::int64_t>{0, 2, 3, 4, 1}}});
    }
    return graph_.node(
        "Reshape",
        {image.name, graph_.integers(own("last_shape"),
                                     {-1, shape.space[0], shape.space[1], shape.space[2], 1})},
        own("channels_last"));
  }

  std::string features_of(const Value& value) {
    if (!value.is_image()) return value.name;
    return graph_.node("Flatten", {channels_last(value)}, own("features"));
  }

  std::string image_of(const std::string& features, const model::Shape& shape) {
    const std::string last =
        graph_.node("Reshape",
                    {features, graph_.integers(own("shape"), {-1, shape.space[0], shape.space[1],
                                                              shape.space[2], shape.channels})},
                    own("reshaped"));
    return graph_.node("Transpose", {last}, own("channels_first"),
                       {{"perm", std::vector<std::int64_t>{0, 4, 1, 2, 3}}});
  }

  std::vector<float> values(ParameterRole role) const {
    const NamedParameter* found = parameters_.find(layer_, role);
    CHECK(found != nullptr, name_);
    return {found->values, found->values + found->tensor->size};
  }
  std::string vector(const char* part, ParameterRole role) {
    const auto all = values(role);
    return graph_.floats(own(part), {static_cast<std::int64_t>(all.size())}, all);
  }

  Result<Value> add(const Value& before, const model::Dense& dense) {
    const std::string features = features_of(before);
    std::vector<std::string> inputs{
        features, graph_.floats(own("kernel"), {before.shape.elements(), dense.units},
                                values(ParameterRole::kKernel))};
    if (dense.bias) inputs.push_back(vector("bias", ParameterRole::kBias));
    return here(graph_.node("Gemm", inputs, own("output")));
  }

  // Kernels are (x, y, z, in, out) here and (out, in, x, y, z) there.
  Result<Value> add(const Value& before, const model::Convolution& convolution) {
    const auto& extent = convolution.kernel;
    const std::int64_t cells = extent[0] * extent[1] * extent[2];
    const std::int64_t in = before.shape.channels;
    const std::int64_t out = convolution.filters;
    const auto kernel = values(ParameterRole::kKernel);
    std::vector<float> turned(kernel.size());
    for (std::int64_t i = 0; i < cells * in * out; ++i) {
      const std::int64_t cell = i / (in * out), channel = i / out % in, filter = i % out;
      turned[static_cast<std::size_t>((filter * in + channel) * cells + cell)] =
          kernel[static_cast<std::size_t>(i)];
    }
    std::vector<std::string> inputs{
        before.name,
        graph_.floats(own("kernel"), {out, in, extent[0], extent[1], extent[2]}, turned)};
    if (convolution.bias) inputs.push_back(vector("bias", ParameterRole::kBias));
    std::vector<std::int64_t> pads(6, 0);
    for (std::size_t axis = 0; axis < 3 && convolution.padding == model::Padding::kSame; ++axis) {
      pads[axis] = (extent[axis] - 1) / 2;
      pads[axis + 3] = extent[axis] - 1 - pads[axis];
    }
    return here(
        graph_.node("Conv", inputs, own("output"),
                    {{"kernel_shape", std::vector<std::int64_t>(extent.begin(), extent.end())},
                     {"pads", pads}}));
  }

  Result<Value> add(const Value& before, const model::Pad& pad) {
    const auto& amount = pad.amount;
    return here(graph_.node(
        "Pad",
        {before.name, graph_.integers(own("pads"), {0, 0, amount[0], amount[1], amount[2], 0, 0,
                                                    amount[0], amount[1], amount[2]})},
        own("output"), {{"mode", std::string("constant")}}));
  }

  Result<Value> add(const Value& before, const model::Upsample& upsample) {
    std::vector<float> scales{1, 1};
    for (const std::int64_t factor : upsample.factor) scales.push_back(static_cast<float>(factor));
    return here(graph_.node("Resize", {before.name, "", graph_.floats(own("scales"), {5}, scales)},
                            own("output"),
                            {{"mode", std::string("nearest")},
                             {"coordinate_transformation_mode", std::string("asymmetric")},
                             {"nearest_mode", std::string("floor")}}));
  }

  Result<Value> add(const Value& before, const model::AveragePool& pool) {
    const std::vector<std::int64_t> size(pool.size.begin(), pool.size.end());
    return here(graph_.node("AveragePool", {before.name}, own("output"),
                            {{"kernel_shape", size}, {"strides", size}}));
  }

  Result<Value> add(const Value& before, const model::BatchNorm& norm) {
    return here(graph_.node(
        "BatchNormalization",
        {before.name, vector("gamma", ParameterRole::kGamma), vector("beta", ParameterRole::kBeta),
         vector("moving_mean", ParameterRole::kMovingMean),
         vector("moving_variance", ParameterRole::kMovingVariance)},
        own("output"), {{"epsilon", static_cast<float>(norm.epsilon)}}));
  }

  Result<Value> add(const Value& before, const model::Dropout&) { return before; }

  Result<Value> add(const Value& before, const model::Activation& activation) {
    switch (activation.kind) {
      case model::ActivationKind::kLinear:
        return before;
      case model::ActivationKind::kRelu:
        return here(graph_.node("Relu", {before.name}, own("output")));
      case model::ActivationKind::kLeakyRelu:
        return here(graph_.node("LeakyRelu", {before.name}, own("output"),
                                {{"alpha", static_cast<float>(activation.slope)}}));
      case model::ActivationKind::kSigmoid:
        return here(graph_.node("Sigmoid", {before.name}, own("output")));
      case model::ActivationKind::kTanh:
        return here(graph_.node("Tanh", {before.name}, own("output")));
    }
    CHECK(false, name_);
  }

  Result<Value> add(const Value& before, const model::Power& power) {
    const std::string positive = graph_.node("Relu", {before.name}, own("positive"));
    return here(graph_.node("Pow", {positive, graph_.number(own("exponent"), power.exponent)},
                            own("output")));
  }

  Result<Value> add(const Value& before, const model::Reshape&) {
    const std::string features = features_of(before);
    return here(shape_.spatial_rank > 0 ? image_of(features, shape_) : features);
  }
  Result<Value> add(const Value& before, const model::Flatten&) {
    return here(features_of(before));
  }

  Result<Value> add(const Value& before, const model::Sum&) {
    return here(graph_.node("ReduceSum", {features_of(before), graph_.integers(own("axes"), {1})},
                            own("output"), {{"keepdims", std::int64_t{1}}}));
  }

  Result<Value> add(const Value&, const model::Angle& kind) { return no_counterpart(kind); }
  Result<Value> add(const Value&, const model::Bins& kind) { return no_counterpart(kind); }

  Result<Value> no_counterpart(const model::LayerKind& kind) const {
    return runtime::Error{runtime::ErrorKind::kTopology,
                          fmt::format("{}: layer {} ({}) has no counterpart in ONNX",
                                      parameters_.network().name, name_, model::kind_name(kind))};
  }

  OnnxGraph& graph_;
  const NetworkParameters& parameters_;
  std::vector<Value> values_;  // per layer
  // The layer that is being added.
  int layer_ = 0;
  std::string name_;
  model::Shape shape_;
};

}  // namespace

Result<std::string> add_network(OnnxGraph& graph, const NetworkParameters& parameters,
                                const std::string& input) {
  return NetworkWriter(graph, parameters).write(input);
}

}  // namespace troupe::pipeline

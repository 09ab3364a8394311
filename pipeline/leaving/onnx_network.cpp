#include "pipeline/leaving/onnx_network.h"

#include <algorithm>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "model/layer_rules.h"

namespace troupe::pipeline {
namespace {

using model::ParameterRole;
using runtime::Result;

constexpr std::int64_t kInt64 = 7;  // onnx::TensorProto::INT64

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
      const auto value_of = [&](int read) -> const Value& {
        return read < 0 ? first : values_[static_cast<std::size_t>(read)];
      };
      const Value& before = value_of(from);
      others_.clear();
      for (const int other : parameters_.shapes().others[i]) others_.push_back(value_of(other));
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

  static std::vector<std::int64_t> listed(const model::Extent& extent) {
    return {extent.begin(), extent.end()};
  }

  // Kernels are (x, y, z, in, out) here and (out, in, x, y, z) there.
  std::string turned_kernel(const model::Extent& extent, std::int64_t in, std::int64_t out) {
    const std::int64_t cells = extent[0] * extent[1] * extent[2];
    const auto kernel = values(ParameterRole::kKernel);
    std::vector<float> turned(kernel.size());
    for (std::int64_t i = 0; i < cells * in * out; ++i) {
      const std::int64_t cell = i / (in * out), channel = i / out % in, filter = i % out;
      turned[static_cast<std::size_t>((filter * in + channel) * cells + cell)] =
          kernel[static_cast<std::size_t>(i)];
    }
    return graph_.floats(own("kernel"), {out, in, extent[0], extent[1], extent[2]}, turned);
  }

  Result<Value> add(const Value& before, const model::Convolution& convolution) {
    std::vector<std::string> inputs{
        before.name, turned_kernel(convolution.kernel, before.shape.channels / convolution.groups,
                                   convolution.filters)};
    if (convolution.bias) inputs.push_back(vector("bias", ParameterRole::kBias));
    std::vector<std::int64_t> pads(6, 0);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const model::AxisWindows windows =
          model::convolution_windows(convolution, static_cast<int>(axis), before.shape.space[axis]);
      pads[axis] = windows.before;
      pads[axis + 3] = windows.after;
    }
    return here(graph_.node("Conv", inputs, own("output"),
                            {{"kernel_shape", listed(convolution.kernel)},
                             {"strides", listed(convolution.stride)},
                             {"dilations", listed(convolution.dilation)},
                             {"group", convolution.groups},
                             {"pads", pads}}));
  }

  // The kernel is that of the convolution from the output to the input, here and there.
  Result<Value> add(const Value& before, const model::TransposedConvolution& convolution) {
    std::vector<std::string> inputs{
        before.name, turned_kernel(convolution.kernel, convolution.filters, before.shape.channels)};
    if (convolution.bias) inputs.push_back(vector("bias", ParameterRole::kBias));
    std::vector<std::int64_t> pads(6, 0), beyond(3, 0);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t cells = before.shape.space[axis];
      const model::AxisWindows windows =
          model::transposed_windows(convolution, static_cast<int>(axis), cells);
      pads[axis] = windows.before;
      pads[axis + 3] = windows.after;
      beyond[axis] = windows.output + windows.before + windows.after -
                     (cells - 1) * convolution.stride[axis] - convolution.kernel[axis];
    }
    return here(graph_.node("ConvTranspose", inputs, own("output"),
                            {{"kernel_shape", listed(convolution.kernel)},
                             {"strides", listed(convolution.stride)},
                             {"output_padding", beyond},
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

  // Cells or channels from `begin` to `end`, along the axis of an image's or of features.
  std::string part(const std::string& from, const char* name, std::vector<std::int64_t> begin,
                   std::vector<std::int64_t> end, std::vector<std::int64_t> axes) {
    const std::string prefix = own(name);
    return graph_.node("Slice",
                       {from, graph_.integers(prefix + "_begin", std::move(begin)),
                        graph_.integers(prefix + "_end", std::move(end)),
                        graph_.integers(prefix + "_axes", std::move(axes))},
                       prefix);
  }
  // Channels come behind the sample, in features and in images.
  static std::int64_t axis_of(model::Axis axis) {
    return axis == model::Axis::kChannels ? 1 : 2 + static_cast<std::int64_t>(axis);
  }

  Result<Value> add(const Value& before, const model::Crop& crop) {
    std::vector<std::int64_t> end;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      end.push_back(before.shape.space[axis] - crop.amount[axis]);
    }
    return here(part(before.name, "output", listed(crop.amount), end, {2, 3, 4}));
  }
  Result<Value> add(const Value& before, const model::Slice& slice) {
    return here(part(before.name, "output", {slice.begin}, {slice.begin + slice.count},
                     {axis_of(slice.axis)}));
  }
  Result<Value> add(const Value& before, const model::Permute& permute) {
    if (!before.is_image()) return before;
    std::vector<std::int64_t> order{0, 1, 2, 3, 4};
    for (std::size_t i = 0; i < permute.order.size(); ++i) {
      const std::size_t to = i + 1 == permute.order.size() ? 1 : 2 + i;
      order[to] = axis_of(permute.order[i]);
    }
    return here(graph_.node("Transpose", {before.name}, own("output"), {{"perm", order}}));
  }

  // Another input with as many axes as an image: features become channels of one cell.
  std::string spread(std::size_t number) {
    const Value& other = others_[number];
    if (other.is_image() || shape_.spatial_rank == 0) return other.name;
    const std::string prefix = own("features") + std::to_string(number);
    return graph_.node("Unsqueeze", {other.name, graph_.integers(prefix + "_axes", {2, 3, 4})},
                       prefix);
  }
  Result<Value> add(const Value& before, const model::Add& add) {
    std::string sum = before.name;
    for (std::size_t i = 0; i < add.with.size(); ++i) {
      sum = graph_.node("Add", {sum, spread(i)}, own("output") + std::to_string(i));
    }
    return here(sum);
  }
  Result<Value> add(const Value& before, const model::Multiply&) {
    return here(graph_.node("Mul", {before.name, spread(0)}, own("output")));
  }
  Result<Value> add(const Value& before, const model::Concatenate& concatenate) {
    std::vector<std::string> inputs{before.name};
    for (const Value& other : others_) inputs.push_back(other.name);
    return here(
        graph_.node("Concat", inputs, own("output"), {{"axis", axis_of(concatenate.axis)}}));
  }

  Result<Value> add(const Value& before, const model::Embedding& embedding) {
    const std::string number = graph_.node(
        "Cast",
        {graph_.node("Squeeze", {before.name, graph_.integers(own("axes"), {1})}, own("number"))},
        own("class"), {{"to", kInt64}});
    return here(graph_.node("Gather",
                            {graph_.floats(own("kernel"), {embedding.classes, embedding.units},
                                           values(ParameterRole::kKernel)),
                             number},
                            own("output")));
  }
  Result<Value> add(const Value&, const model::Attention& kind) { return no_counterpart(kind); }

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

  Result<Value> add(const Value& before, const model::MaxPool& pool) {
    return here(graph_.node("MaxPool", {before.name}, own("output"),
                            {{"kernel_shape", listed(pool.size)}, {"strides", listed(pool.size)}}));
  }
  Result<Value> add(const Value& before, const model::GlobalAveragePool&) {
    return here(graph_.node("Flatten",
                            {graph_.node("GlobalAveragePool", {before.name}, own("pooled"))},
                            own("output")));
  }
  Result<Value> add(const Value& before, const model::GlobalMaxPool&) {
    return here(graph_.node("Flatten", {graph_.node("GlobalMaxPool", {before.name}, own("pooled"))},
                            own("output")));
  }

  // Instance normalisation there normalises the groups, which are its channels, and gamma and beta
  // follow.
  std::string group_normalised(const Value& before, std::int64_t groups, double epsilon) {
    const std::vector<float> ones(static_cast<std::size_t>(groups), 1.0F), zeros(ones.size(), 0.0F);
    const std::string grouped = graph_.node(
        "Reshape", {before.name, graph_.integers(own("groups"), {0, groups, -1})}, own("grouped"));
    const std::string normalised =
        graph_.node("InstanceNormalization",
                    {grouped, graph_.floats(own("ones"), {groups}, ones),
                     graph_.floats(own("zeros"), {groups}, zeros)},
                    own("normalised"), {{"epsilon", static_cast<float>(epsilon)}});
    const model::Shape& shape = before.shape;
    std::vector<std::int64_t> whole{-1, shape.channels}, channels{shape.channels};
    if (before.is_image()) {
      whole.insert(whole.end(), shape.space.begin(), shape.space.end());
      channels.insert(channels.end(), 3, 1);
    }
    const std::string back = graph_.node(
        "Reshape", {normalised, graph_.integers(own("whole"), whole)}, own("whole_again"));
    const std::string scaled = graph_.node(
        "Mul", {back, graph_.floats(own("gamma"), channels, values(ParameterRole::kGamma))},
        own("scaled"));
    return graph_.node("Add",
                       {scaled, graph_.floats(own("beta"), channels, values(ParameterRole::kBeta))},
                       own("output"));
  }
  Result<Value> add(const Value& before, const model::InstanceNorm& norm) {
    return here(group_normalised(before, before.shape.channels, norm.epsilon));
  }
  Result<Value> add(const Value& before, const model::GroupNorm& norm) {
    return here(group_normalised(before, norm.groups, norm.epsilon));
  }
  // Over the last axis there, so that channels go behind and come back.
  Result<Value> add(const Value& before, const model::LayerNorm& norm) {
    const std::string last = before.is_image()
                                 ? graph_.node("Transpose", {before.name}, own("channels_last"),
                                               {{"perm", std::vector<std::int64_t>{0, 2, 3, 4, 1}}})
                                 : before.name;
    const std::string normalised = graph_.node(
        "LayerNormalization",
        {last, vector("gamma", ParameterRole::kGamma), vector("beta", ParameterRole::kBeta)},
        own("normalised"), {{"epsilon", static_cast<float>(norm.epsilon)}});
    if (!before.is_image()) return here(normalised);
    return here(graph_.node("Transpose", {normalised}, own("output"),
                            {{"perm", std::vector<std::int64_t>{0, 4, 1, 2, 3}}}));
  }

  Result<Value> add(const Value& before, const model::Softmax&) {
    return here(graph_.node("Softmax", {before.name}, own("output"), {{"axis", std::int64_t{1}}}));
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
      case model::ActivationKind::kSoftplus:
        return here(graph_.node("Softplus", {before.name}, own("output")));
      case model::ActivationKind::kElu:
        return here(graph_.node("Elu", {before.name}, own("output")));
      case model::ActivationKind::kSilu:
        return here(
            graph_.node("Mul", {before.name, graph_.node("Sigmoid", {before.name}, own("sigmoid"))},
                        own("output")));
      case model::ActivationKind::kGelu:
        return here(gelu(before.name));
    }
    CHECK(false, name_);
  }

  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  std::string gelu(const std::string& x) {
    const std::string cube = graph_.node("Pow", {x, graph_.number(own("three"), 3.0)}, own("cube"));
    const std::string small =
        graph_.node("Mul", {cube, graph_.number(own("of_cube"), 0.044715)}, own("small"));
    const std::string scaled = graph_.node("Mul",
                                           {graph_.node("Add", {x, small}, own("argument")),
                                            graph_.number(own("scale"), 0.79788456080286536)},
                                           own("scaled"));
    const std::string weight = graph_.node(
        "Add", {graph_.node("Tanh", {scaled}, own("tanh")), graph_.number(own("one"), 1.0)},
        own("weight"));
    const std::string half =
        graph_.node("Mul", {x, graph_.number(own("a_half"), 0.5)}, own("half"));
    return graph_.node("Mul", {half, weight}, own("output"));
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
  // The layer that is being added, and the values that it reads besides.
  std::vector<Value> others_;
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

#include "pipeline/leaving/onnx_network.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "model/layer_rules.h"
#include "pipeline/leaving/onnx_activation.h"

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

// The layers share the graph, the layer that is being added, and the values before it.
class NetworkWriter {
 public:
  NetworkWriter(OnnxGraph& graph, const NetworkParameters& parameters)
      : graph_(graph), parameters_(parameters) {}

  Result<std::vector<std::string>> write(const std::string& input);

  OnnxGraph& graph() { return graph_; }
  // The layer's output, and what it reads besides its input.
  const model::Shape& shape() const { return shape_; }
  const std::vector<Value>& others() const { return others_; }

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
    return channels_first(last);
  }
  std::string channels_first(const std::string& last) {
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

  Result<Value> no_counterpart(const model::LayerKind& kind) const {
    return runtime::Error{runtime::ErrorKind::kTopology,
                          fmt::format("{}: layer {} ({}) has no counterpart in ONNX",
                                      parameters_.network().name, name_, model::kind_name(kind))};
  }

 private:
  OnnxGraph& graph_;
  const NetworkParameters& parameters_;
  std::vector<Value> values_;  // per layer
  // The layer that is being added, and the values that it reads besides.
  std::vector<Value> others_;
  int layer_ = 0;
  std::string name_;
  model::Shape shape_;
};

Result<Value> add(NetworkWriter& w, const Value& before, const model::Dense& dense) {
  const std::string features = w.features_of(before);
  std::vector<std::string> inputs{
      features, w.graph().floats(w.own("kernel"), {before.shape.elements(), dense.units},
                                 w.values(ParameterRole::kKernel))};
  if (dense.bias) inputs.push_back(w.vector("bias", ParameterRole::kBias));
  return w.here(w.graph().node("Gemm", inputs, w.own("output")));
}

std::vector<std::int64_t> listed(const model::Extent& extent) {
  return {extent.begin(), extent.end()};
}

// Kernels are (x, y, z, in, out) here and (out, in, x, y, z) there.
std::string turned_kernel(NetworkWriter& w, const model::Extent& extent, std::int64_t in,
                          std::int64_t out) {
  const std::int64_t cells = extent[0] * extent[1] * extent[2];
  const auto kernel = w.values(ParameterRole::kKernel);
  std::vector<float> turned(kernel.size());
  for (std::int64_t i = 0; i < cells * in * out; ++i) {
    const std::int64_t cell = i / (in * out), channel = i / out % in, filter = i % out;
    turned[static_cast<std::size_t>((filter * in + channel) * cells + cell)] =
        kernel[static_cast<std::size_t>(i)];
  }
  return w.graph().floats(w.own("kernel"), {out, in, extent[0], extent[1], extent[2]}, turned);
}

// Cells before each axis of an image, then behind each; windows(axis, cells) gives those of one.
template <class Windows>
std::vector<std::int64_t> pads_of(const model::Shape& shape, const Windows& windows) {
  std::vector<std::int64_t> pads(6, 0);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const model::AxisWindows own = windows(static_cast<int>(axis), shape.space[axis]);
    pads[axis] = own.before;
    pads[axis + 3] = own.after;
  }
  return pads;
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Convolution& convolution) {
  std::vector<std::string> inputs{
      before.name, turned_kernel(w, convolution.kernel, before.shape.channels / convolution.groups,
                                 convolution.filters)};
  if (convolution.bias) inputs.push_back(w.vector("bias", ParameterRole::kBias));
  const auto pads = pads_of(before.shape, [&](int axis, std::int64_t cells) {
    return model::convolution_windows(convolution, axis, cells);
  });
  return w.here(w.graph().node("Conv", inputs, w.own("output"),
                               {{"kernel_shape", listed(convolution.kernel)},
                                {"strides", listed(convolution.stride)},
                                {"dilations", listed(convolution.dilation)},
                                {"group", convolution.groups},
                                {"pads", pads}}));
}

// The kernel is that of the convolution from the output to the input, here and there.
Result<Value> add(NetworkWriter& w, const Value& before,
                  const model::TransposedConvolution& convolution) {
  std::vector<std::string> inputs{
      before.name, turned_kernel(w, convolution.kernel, convolution.filters / convolution.groups,
                                 before.shape.channels)};
  if (convolution.bias) inputs.push_back(w.vector("bias", ParameterRole::kBias));
  std::vector<std::int64_t> pads(6, 0), beyond(3, 0);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t cells = before.shape.space[axis];
    const model::AxisWindows windows =
        model::transposed_windows(convolution, static_cast<int>(axis), cells);
    pads[axis] = windows.before;
    pads[axis + 3] = windows.after;
    beyond[axis] = windows.output + windows.before + windows.after -
                   (cells - 1) * convolution.stride[axis] -
                   model::window_cells(convolution.kernel[axis], convolution.dilation[axis]);
  }
  return w.here(w.graph().node("ConvTranspose", inputs, w.own("output"),
                               {{"kernel_shape", listed(convolution.kernel)},
                                {"strides", listed(convolution.stride)},
                                {"dilations", listed(convolution.dilation)},
                                {"group", convolution.groups},
                                {"output_padding", beyond},
                                {"pads", pads}}));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Pad& pad) {
  std::vector<std::int64_t> pads{0, 0};
  pads.insert(pads.end(), pad.amount.before.begin(), pad.amount.before.end());
  pads.insert(pads.end(), {0, 0});
  pads.insert(pads.end(), pad.amount.behind.begin(), pad.amount.behind.end());
  return w.here(w.graph().node("Pad", {before.name, w.graph().integers(w.own("pads"), pads)},
                               w.own("output"), {{"mode", std::string("constant")}}));
}

// Cells or channels from `begin` to `end`, along the axis of an image's or of features.
std::string part(NetworkWriter& w, const std::string& from, const char* name,
                 std::vector<std::int64_t> begin, std::vector<std::int64_t> end,
                 std::vector<std::int64_t> axes) {
  const std::string prefix = w.own(name);
  return w.graph().node("Slice",
                        {from, w.graph().integers(prefix + "_begin", std::move(begin)),
                         w.graph().integers(prefix + "_end", std::move(end)),
                         w.graph().integers(prefix + "_axes", std::move(axes))},
                        prefix);
}

// Channels come behind the sample, in features and in images.
std::int64_t axis_of(model::Axis axis) {
  return axis == model::Axis::kChannels ? 1 : 2 + static_cast<std::int64_t>(axis);
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Crop& crop) {
  std::vector<std::int64_t> end;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    end.push_back(before.shape.space[axis] - crop.amount.behind[axis]);
  }
  return w.here(part(w, before.name, "output", listed(crop.amount.before), end, {2, 3, 4}));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Slice& slice) {
  return w.here(part(w, before.name, "output", {slice.begin}, {slice.begin + slice.count},
                     {axis_of(slice.axis)}));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Permute& permute) {
  if (!before.is_image()) return before;
  std::vector<std::int64_t> order{0, 1, 2, 3, 4};
  for (std::size_t i = 0; i < permute.order.size(); ++i) {
    const std::size_t to = i + 1 == permute.order.size() ? 1 : 2 + i;
    order[to] = axis_of(permute.order[i]);
  }
  return w.here(w.graph().node("Transpose", {before.name}, w.own("output"), {{"perm", order}}));
}

// Another input with as many axes as an image: features become channels of one cell.
std::string spread(NetworkWriter& w, std::size_t number) {
  const Value& other = w.others()[number];
  if (other.is_image() || w.shape().spatial_rank == 0) return other.name;
  const std::string prefix = w.own("features") + std::to_string(number);
  return w.graph().node("Unsqueeze", {other.name, w.graph().integers(prefix + "_axes", {2, 3, 4})},
                        prefix);
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Add& add) {
  std::string sum = before.name;
  for (std::size_t i = 0; i < add.with.size(); ++i) {
    sum = w.graph().node("Add", {sum, spread(w, i)}, w.own("output") + std::to_string(i));
  }
  return w.here(sum);
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Multiply&) {
  return w.here(w.graph().node("Mul", {before.name, spread(w, 0)}, w.own("output")));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Concatenate& concatenate) {
  std::vector<std::string> inputs{before.name};
  for (const Value& other : w.others()) inputs.push_back(other.name);
  return w.here(
      w.graph().node("Concat", inputs, w.own("output"), {{"axis", axis_of(concatenate.axis)}}));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Embedding& embedding) {
  const std::string number = w.graph().node(
      "Cast",
      {w.graph().node("Squeeze", {before.name, w.graph().integers(w.own("axes"), {1})},
                      w.own("number"))},
      w.own("class"), {{"to", kInt64}});
  return w.here(
      w.graph().node("Gather",
                     {w.graph().floats(w.own("kernel"), {embedding.classes, embedding.units},
                                       w.values(ParameterRole::kKernel)),
                      number},
                     w.own("output")));
}

// Channels are queries, keys and values, each cut into heads: (N, 1, heads, width, cells).
Result<Value> add(NetworkWriter& w, const Value& before, const model::Attention& attention) {
  OnnxGraph& graph = w.graph();
  const std::int64_t width = w.shape().channels / attention.heads;
  const auto reshaped = [&](const std::string& value, const std::vector<std::int64_t>& shape,
                            const char* name) {
    const std::string sizes = w.own(name) + "_shape";
    return graph.node("Reshape", {value, graph.integers(sizes, shape)}, w.own(name));
  };
  const auto turned = [&](const std::string& value, const char* name) {
    return graph.node("Transpose", {value}, w.own(name),
                      {{"perm", std::vector<std::int64_t>{0, 1, 2, 4, 3}}});
  };
  const std::string apart =
      reshaped(before.name, {-1, 3, attention.heads, width, before.shape.cells()}, "apart");
  const auto third = [&](std::int64_t which, const char* name) {
    const std::string place = graph.integers(w.own(name) + "_place", {which});
    return graph.node("Gather", {apart, place}, w.own(name), {{"axis", std::int64_t{1}}});
  };
  const std::string products =
      graph.node("MatMul", {turned(third(0, "queries"), "turned_queries"), third(1, "keys")},
                 w.own("products"));
  const std::string factor =
      graph.number(w.own("factor"), 1.0 / std::sqrt(static_cast<double>(width)));
  const std::string weights =
      graph.node("Softmax", {graph.node("Mul", {products, factor}, w.own("scaled"))},
                 w.own("weights"), {{"axis", std::int64_t{-1}}});
  const std::string summed = graph.node(
      "MatMul", {third(2, "values"), turned(weights, "turned_weights")}, w.own("summed"));
  const model::Extent& space = w.shape().space;
  return w.here(reshaped(summed, {-1, w.shape().channels, space[0], space[1], space[2]}, "output"));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Upsample& upsample) {
  std::vector<float> scales{1, 1};
  for (const std::int64_t factor : upsample.factor) scales.push_back(static_cast<float>(factor));
  return w.here(w.graph().node(
      "Resize", {before.name, "", w.graph().floats(w.own("scales"), {5}, scales)}, w.own("output"),
      {{"mode", std::string("nearest")},
       {"coordinate_transformation_mode", std::string("asymmetric")},
       {"nearest_mode", std::string("floor")}}));
}

// Pads count for nothing there, too.
template <class Pool>
Result<Value> add_pool(NetworkWriter& w, const Value& before, const Pool& pool, const char* kind) {
  const auto pads = pads_of(before.shape, [&](int axis, std::int64_t cells) {
    return model::pool_windows(pool, axis, cells);
  });
  return w.here(w.graph().node(kind, {before.name}, w.own("output"),
                               {{"kernel_shape", listed(pool.size)},
                                {"strides", listed(model::stride_of(pool))},
                                {"pads", pads}}));
}
Result<Value> add(NetworkWriter& w, const Value& before, const model::AveragePool& pool) {
  return add_pool(w, before, pool, "AveragePool");
}
Result<Value> add(NetworkWriter& w, const Value& before, const model::MaxPool& pool) {
  return add_pool(w, before, pool, "MaxPool");
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::GlobalAveragePool&) {
  return w.here(w.graph().node(
      "Flatten", {w.graph().node("GlobalAveragePool", {before.name}, w.own("pooled"))},
      w.own("output")));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::GlobalMaxPool&) {
  return w.here(w.graph().node("Flatten",
                               {w.graph().node("GlobalMaxPool", {before.name}, w.own("pooled"))},
                               w.own("output")));
}

// Instance normalisation there normalises the groups, which are its channels, and gamma and beta
// follow.
std::string group_normalised(NetworkWriter& w, const Value& before, std::int64_t groups,
                             double epsilon) {
  const std::vector<float> ones(static_cast<std::size_t>(groups), 1.0F), zeros(ones.size(), 0.0F);
  const std::string grouped =
      w.graph().node("Reshape", {before.name, w.graph().integers(w.own("groups"), {0, groups, -1})},
                     w.own("grouped"));
  const std::string normalised =
      w.graph().node("InstanceNormalization",
                     {grouped, w.graph().floats(w.own("ones"), {groups}, ones),
                      w.graph().floats(w.own("zeros"), {groups}, zeros)},
                     w.own("normalised"), {{"epsilon", static_cast<float>(epsilon)}});
  const model::Shape& shape = before.shape;
  std::vector<std::int64_t> whole{-1, shape.channels}, channels{shape.channels};
  if (before.is_image()) {
    whole.insert(whole.end(), shape.space.begin(), shape.space.end());
    channels.insert(channels.end(), 3, 1);
  }
  const std::string back = w.graph().node(
      "Reshape", {normalised, w.graph().integers(w.own("whole"), whole)}, w.own("whole_again"));
  const std::string scaled = w.graph().node(
      "Mul", {back, w.graph().floats(w.own("gamma"), channels, w.values(ParameterRole::kGamma))},
      w.own("scaled"));
  return w.graph().node(
      "Add", {scaled, w.graph().floats(w.own("beta"), channels, w.values(ParameterRole::kBeta))},
      w.own("output"));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::InstanceNorm& norm) {
  return w.here(group_normalised(w, before, before.shape.channels, norm.epsilon));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::GroupNorm& norm) {
  return w.here(group_normalised(w, before, norm.groups, norm.epsilon));
}

// Over the last axis there, so that channels go behind and come back.
Result<Value> add(NetworkWriter& w, const Value& before, const model::LayerNorm& norm) {
  const std::string last =
      before.is_image() ? w.graph().node("Transpose", {before.name}, w.own("channels_last"),
                                         {{"perm", std::vector<std::int64_t>{0, 2, 3, 4, 1}}})
                        : before.name;
  const std::string normalised = w.graph().node(
      "LayerNormalization",
      {last, w.vector("gamma", ParameterRole::kGamma), w.vector("beta", ParameterRole::kBeta)},
      w.own("normalised"), {{"epsilon", static_cast<float>(norm.epsilon)}});
  if (!before.is_image()) return w.here(normalised);
  return w.here(w.graph().node("Transpose", {normalised}, w.own("output"),
                               {{"perm", std::vector<std::int64_t>{0, 4, 1, 2, 3}}}));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Softmax&) {
  return w.here(
      w.graph().node("Softmax", {before.name}, w.own("output"), {{"axis", std::int64_t{1}}}));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::BatchNorm& norm) {
  return w.here(w.graph().node(
      "BatchNormalization",
      {before.name, w.vector("gamma", ParameterRole::kGamma),
       w.vector("beta", ParameterRole::kBeta), w.vector("moving_mean", ParameterRole::kMovingMean),
       w.vector("moving_variance", ParameterRole::kMovingVariance)},
      w.own("output"), {{"epsilon", static_cast<float>(norm.epsilon)}}));
}

Result<Value> add(NetworkWriter&, const Value& before, const model::Dropout&) { return before; }

Result<Value> add(NetworkWriter& w, const Value& before, const model::Activation& activation) {
  return w.here(add_activation(w.graph(), activation, before.name, w.own("")));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Power& power) {
  const std::string positive = w.graph().node("Relu", {before.name}, w.own("positive"));
  return w.here(w.graph().node(
      "Pow", {positive, w.graph().number(w.own("exponent"), power.exponent)}, w.own("output")));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Reshape&) {
  const std::string features = w.features_of(before);
  return w.here(w.shape().spatial_rank > 0 ? w.image_of(features, w.shape()) : features);
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Flatten&) {
  return w.here(w.features_of(before));
}

Result<Value> add(NetworkWriter& w, const Value& before, const model::Sum&) {
  return w.here(w.graph().node("ReduceSum",
                               {w.features_of(before), w.graph().integers(w.own("axes"), {1})},
                               w.own("output"), {{"keepdims", std::int64_t{1}}}));
}

template <class Kind>
requires std::is_same_v<Kind, model::Angle> || std::is_same_v<Kind, model::Bins> Result<Value> add(
    NetworkWriter& w, const Value&, const Kind& kind) {
  return w.no_counterpart(kind);
}

Result<std::vector<std::string>> NetworkWriter::write(const std::string& input) {
  const model::NetworkDescription& network = parameters_.network();
  // No layer is called as an input.
  Value first{input, network.input};
  const Value told{"conditions",
                   model::shape_read(network, parameters_.shapes(), model::kOfConditions)};
  name_ = input + ".";
  if (first.is_image()) first.name = channels_first(input);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const int from = parameters_.shapes().inputs[i];
    layer_ = static_cast<int>(i);
    name_ = network.layers[i].name;
    shape_ = parameters_.shapes().layers[i];
    const auto value_of = [&](int read) -> const Value& {
      if (read == model::kOfConditions) return told;
      return read == model::kOfInput ? first : values_[static_cast<std::size_t>(read)];
    };
    const Value& before = value_of(from);
    others_.clear();
    for (const int other : parameters_.shapes().others[i]) others_.push_back(value_of(other));
    ASSIGN_OR_RETURN(Value value,
                     std::visit([&](const auto& kind) { return add(*this, before, kind); },
                                network.layers[i].kind));
    values_.push_back(std::move(value));
  }
  std::vector<std::string> outputs;
  for (const int output : parameters_.shapes().outputs) {
    const Value& value = values_[static_cast<std::size_t>(output)];
    name_ = network.layers[static_cast<std::size_t>(output)].name + ".";
    outputs.push_back(value.is_image() ? channels_last(value) : value.name);
  }
  return outputs;
}

}  // namespace

Result<std::vector<std::string>> add_network(OnnxGraph& graph, const NetworkParameters& parameters,
                                             const std::string& input) {
  return NetworkWriter(graph, parameters).write(input);
}

}  // namespace troupe::pipeline

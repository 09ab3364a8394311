#include "bench/onednn_layer.h"

#include <omp.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::bench {
namespace {

using namespace troupe::model;
using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Dims = memory::dims;

constexpr auto kAny = memory::format_tag::any;
constexpr auto kTraining = prop_kind::forward_training;
constexpr auto kFloat = memory::data_type::f32;

// Windows over the axes of an image: of a convolution, a transposed one or a pool.
struct Windows {
  Dims stride, dilation, before, behind;
  Dims size;
};

std::size_t count_of(const Dims& dims) {
  return static_cast<std::size_t>(
      std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>()));
}

// How an array of ours with channels last stands, told in the library's order of axes.
memory::desc image_layout(std::int64_t events, const Shape& shape) {
  Dims dims{events, shape.channels}, strides{shape.elements(), 1};
  std::int64_t stride = shape.channels;
  for (int axis = shape.spatial_rank - 1; axis >= 0; --axis) {
    dims.insert(dims.begin() + 2, shape.space[static_cast<std::size_t>(axis)]);
    strides.insert(strides.begin() + 2, stride);
    stride *= shape.space[static_cast<std::size_t>(axis)];
  }
  return {dims, kFloat, strides};
}

// A window's cell `tap * dilation + cell * stride - before` for `many` windows over `one` cells.
Windows windows_of(const Shape& many, const Shape& one, const Extent& size, const Extent& stride,
                   const Extent& dilation, bool same) {
  Windows windows;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(one.spatial_rank); ++axis) {
    const std::int64_t taken =
        (many.space[axis] - 1) * stride[axis] + (size[axis] - 1) * dilation[axis] + 1;
    const std::int64_t padding = taken - one.space[axis];
    const std::int64_t before = same ? std::max<std::int64_t>(padding, 0) / 2 : 0;
    windows.size.push_back(size[axis]);
    windows.stride.push_back(stride[axis]);
    windows.dilation.push_back(dilation[axis] - 1);
    windows.before.push_back(before);
    windows.behind.push_back(padding - before);
  }
  return windows;
}

struct Activated {
  algorithm kind;
  float alpha = 0.0F;
};

std::optional<Activated> activated(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::kRelu:
      return Activated{algorithm::eltwise_relu};
    case ActivationKind::kLeakyRelu:
      return Activated{algorithm::eltwise_relu, static_cast<float>(activation.slope)};
    case ActivationKind::kSigmoid:
      return Activated{algorithm::eltwise_logistic};
    case ActivationKind::kTanh:
      return Activated{algorithm::eltwise_tanh};
    case ActivationKind::kSoftplus:
      return Activated{algorithm::eltwise_soft_relu};
    case ActivationKind::kGelu:
      return Activated{algorithm::eltwise_gelu_tanh};
    case ActivationKind::kSilu:
      return Activated{algorithm::eltwise_swish, 1.0F};
    case ActivationKind::kElu:
      return Activated{algorithm::eltwise_elu, 1.0F};
    case ActivationKind::kLinear:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

class OnednnLayer::Maker {
 public:
  Maker(OnednnLayer& layer, const NetworkDescription& network, std::int64_t events,
        const Values& values, bool bf16)
      : layer_(layer), engine_(layer.engine_), values_(values), bf16_(bf16) {
    const NetworkShapes shapes = infer_shapes(network);
    CHECK(shapes.problems.empty(), "a network without faults");
    input_ = network.input;
    output_ = shapes.layers.back();
    x_ = image_layout(events, input_);
    y_ = image_layout(events, output_);
    layer_.output_ = {DNNL_ARG_DST, y_};
    layer_.input_gradient_ = {DNNL_ARG_DIFF_SRC, x_};
  }

  // False: the library has none.
  bool make(const Convolution& c) {
    const std::int64_t in = input_.channels / c.groups, out = c.filters;
    Dims dims{out, in}, strides{1, out};
    if (c.groups > 1) {
      dims = {c.groups, out / c.groups, in};
      strides = {out / c.groups, 1, out};
    }
    convolve<dnnl::convolution_forward, dnnl::convolution_backward_data,
             dnnl::convolution_backward_weights>(
        algorithm::convolution_direct,
        windows_of(output_, input_, c.kernel, c.stride, c.dilation, c.padding == Padding::kSame),
        kernel_layout(dims, strides, c.kernel, in * out));
    return true;
  }

  bool make(const TransposedConvolution& c) {
    const std::int64_t in = input_.channels, out = c.filters;
    Dims dims{out, in}, strides{in, 1};
    if (c.groups > 1) {
      dims = {c.groups, out / c.groups, in / c.groups};
      strides = {in / c.groups, in, 1};
    }
    Windows windows =
        windows_of(input_, output_, c.kernel, c.stride, c.dilation, c.padding == Padding::kSame);
    for (std::size_t axis = 0; c.pads && axis < windows.before.size(); ++axis) {
      windows.behind[axis] += windows.before[axis] - c.pads->before[axis];
      windows.before[axis] = c.pads->before[axis];
    }
    convolve<dnnl::deconvolution_forward, dnnl::deconvolution_backward_data,
             dnnl::deconvolution_backward_weights>(
        algorithm::deconvolution_direct, windows,
        kernel_layout(dims, strides, c.kernel, in * (out / c.groups)));
    return true;
  }

  bool make(const MaxPool& pool) {
    return make_pool(algorithm::pooling_max, pool.size, pool.stride.value_or(pool.size),
                     pool.padding);
  }
  bool make(const AveragePool& pool) {
    return make_pool(algorithm::pooling_avg_exclude_padding, pool.size,
                     pool.stride.value_or(pool.size), pool.padding);
  }
  bool make(const GlobalMaxPool&) { return make_global(algorithm::pooling_max); }
  bool make(const GlobalAveragePool&) {
    return make_global(algorithm::pooling_avg_exclude_padding);
  }

  bool make(const BatchNorm& norm) {
    return make_norm<dnnl::batch_normalization_forward, dnnl::batch_normalization_backward>(
        norm.epsilon);
  }
  // The library normalises the last axis, so all cells are one.
  bool make(const LayerNorm& norm) {
    const std::int64_t cells = static_cast<std::int64_t>(count_of(x_.dims())) / input_.channels;
    x_ = y_ = memory::desc({cells, input_.channels}, kFloat, Dims{input_.channels, 1});
    layer_.output_.layout = layer_.input_gradient_.layout = x_;
    return make_norm<dnnl::layer_normalization_forward, dnnl::layer_normalization_backward>(
        norm.epsilon);
  }

  bool make(const Activation& activation) {
    const auto wanted = activated(activation);
    if (!wanted) return false;
    const memory::desc data = here(x_);
    const dnnl::eltwise_forward::primitive_desc forward(
        {kTraining, wanted->kind, data, wanted->alpha, 0.0F}, engine_);
    const dnnl::eltwise_backward::primitive_desc backward(
        {wanted->kind, data, data, wanted->alpha, 0.0F}, engine_, forward);
    layer_.forward_ = {dnnl::eltwise_forward(forward),
                       {{DNNL_ARG_SRC, put(data, x_, values_.input)}, {DNNL_ARG_DST, room(data)}}};
    layer_.to_input_ = Pass{dnnl::eltwise_backward(backward),
                            {{DNNL_ARG_SRC, layer_.forward_.arguments.at(DNNL_ARG_SRC)},
                             {DNNL_ARG_DIFF_DST, put(data, y_, values_.output_gradient)},
                             {DNNL_ARG_DIFF_SRC, room(data)}}};
    return true;
  }

  bool make(const Softmax&) {
    const memory::desc data = here(x_);
    const dnnl::softmax_forward::primitive_desc forward({kTraining, data, 1}, engine_);
    const dnnl::softmax_backward::primitive_desc backward({data, data, 1}, engine_, forward);
    layer_.forward_ = {dnnl::softmax_forward(forward),
                       {{DNNL_ARG_SRC, put(data, x_, values_.input)}, {DNNL_ARG_DST, room(data)}}};
    layer_.to_input_ = Pass{dnnl::softmax_backward(backward),
                            {{DNNL_ARG_DST, layer_.forward_.arguments.at(DNNL_ARG_DST)},
                             {DNNL_ARG_DIFF_DST, put(data, y_, values_.output_gradient)},
                             {DNNL_ARG_DIFF_SRC, room(data)}}};
    return true;
  }

  bool make(const Upsample&) {
    const memory::desc x = here(x_), y = here(y_);
    const auto nearest = algorithm::resampling_nearest;
    const dnnl::resampling_forward::primitive_desc forward({kTraining, nearest, x, y}, engine_);
    const dnnl::resampling_backward::primitive_desc backward({nearest, x, y}, engine_, forward);
    layer_.forward_ = {dnnl::resampling_forward(forward),
                       {{DNNL_ARG_SRC, put(x, x_, values_.input)}, {DNNL_ARG_DST, room(y)}}};
    layer_.to_input_ = Pass{
        dnnl::resampling_backward(backward),
        {{DNNL_ARG_DIFF_DST, put(y, y_, values_.output_gradient)}, {DNNL_ARG_DIFF_SRC, room(x)}}};
    return true;
  }

  // Dense layers are among these: the gradient of oneDNN 2.6.3 for one of 32 features and 3456
  // units ends the process.
  template <class Kind>
  bool make(const Kind&) {
    return false;
  }

 private:
  // The array of ours in the precision of this layer: where it stands, or where the library wants.
  memory::desc here(const memory::desc& ours) const {
    memory::desc desc = ours;
    desc.data.data_type = bf16_ ? dnnl_bf16 : dnnl_f32;
    return desc;
  }
  memory::desc like(const memory::desc& ours) const {
    return {ours.dims(), bf16_ ? memory::data_type::bf16 : kFloat, kAny};
  }
  memory room(const memory::desc& desc) { return {desc, engine_}; }
  memory put(const memory::desc& desc, const memory::desc& ours, const std::vector<float>& values,
             std::size_t from = 0) {
    CHECK(values.size() >= from + count_of(ours.dims()), "all values of the array are there");
    memory mine(ours, engine_);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), count_of(ours.dims()),
                static_cast<float*>(mine.get_data_handle()));
    memory placed(desc, engine_);
    dnnl::reorder(mine, placed).execute(layer_.stream_, mine, placed);
    layer_.stream_.wait();
    return placed;
  }

  // Kernels of ours, of filters and channels told by `dims` and `strides`, with the taps of the
  // image's axes, each `of_one` elements behind the one before.
  memory::desc kernel_layout(Dims dims, Dims strides, const Extent& taps,
                             std::int64_t of_one) const {
    const auto first = std::ssize(dims);
    for (int axis = input_.spatial_rank - 1; axis >= 0; --axis) {
      dims.insert(dims.begin() + first, taps[static_cast<std::size_t>(axis)]);
      strides.insert(strides.begin() + first, of_one);
      of_one *= taps[static_cast<std::size_t>(axis)];
    }
    return {dims, kFloat, strides};
  }

  template <class Forward, class ToInput, class ToWeights>
  void convolve(algorithm kind, const Windows& windows, const memory::desc& kernel) {
    const memory::desc bias({output_.channels}, kFloat, Dims{1});
    const auto x = like(x_), y = like(y_), w = like(kernel), b = like(bias);
    const auto& [stride, dilation, before, behind, size] = windows;
    const typename Forward::primitive_desc forward(
        {kTraining, kind, x, w, b, y, stride, dilation, before, behind}, engine_);
    const typename ToInput::primitive_desc to_input(
        {kind, x, w, y, stride, dilation, before, behind}, engine_, forward);
    const typename ToWeights::primitive_desc to_weights(
        {kind, x, w, b, y, stride, dilation, before, behind}, engine_, forward);
    const std::size_t of_kernel = count_of(kernel.dims());
    layer_.forward_ = {Forward(forward),
                       {{DNNL_ARG_SRC, put(forward.src_desc(), x_, values_.input)},
                        {DNNL_ARG_WEIGHTS, put(forward.weights_desc(), kernel, values_.weights)},
                        {DNNL_ARG_BIAS, put(forward.bias_desc(), bias, values_.weights, of_kernel)},
                        {DNNL_ARG_DST, room(forward.dst_desc())}}};
    const std::vector<float>& dy = values_.output_gradient;
    layer_.to_input_ =
        Pass{ToInput(to_input),
             {{DNNL_ARG_DIFF_DST, put(to_input.diff_dst_desc(), y_, dy)},
              {DNNL_ARG_WEIGHTS, put(to_input.weights_desc(), kernel, values_.weights)},
              {DNNL_ARG_DIFF_SRC, room(to_input.diff_src_desc())}}};
    layer_.to_weights_ = Pass{ToWeights(to_weights),
                              {{DNNL_ARG_SRC, put(to_weights.src_desc(), x_, values_.input)},
                               {DNNL_ARG_DIFF_DST, put(to_weights.diff_dst_desc(), y_, dy)},
                               {DNNL_ARG_DIFF_WEIGHTS, room(to_weights.diff_weights_desc())},
                               {DNNL_ARG_DIFF_BIAS, room(to_weights.diff_bias_desc())}}};
    layer_.gradients_ = {{DNNL_ARG_DIFF_WEIGHTS, kernel}, {DNNL_ARG_DIFF_BIAS, bias}};
  }

  bool make_global(algorithm kind) {
    Dims dims = y_.dims(), strides{input_.channels, 1};
    dims.resize(x_.dims().size(), 1);
    strides.resize(dims.size(), input_.channels);
    y_ = memory::desc(dims, kFloat, strides);
    layer_.output_.layout = y_;
    output_.spatial_rank = input_.spatial_rank;
    return make_pool(kind, input_.space, input_.space, Padding::kValid);
  }

  bool make_pool(algorithm kind, const Extent& size, const Extent& stride, Padding padding) {
    Windows w = windows_of(output_, input_, size, stride, {1, 1, 1}, padding == Padding::kSame);
    // Cells that fill no window are left out.
    for (std::int64_t& behind : w.behind) behind = std::max<std::int64_t>(behind, 0);
    const memory::desc x = here(x_), y = here(y_);
    const dnnl::pooling_forward::primitive_desc forward(
        {kTraining, kind, x, y, w.stride, w.size, w.before, w.behind}, engine_);
    const dnnl::pooling_backward::primitive_desc backward(
        {kind, x, y, w.stride, w.size, w.before, w.behind}, engine_, forward);
    const memory where = room(forward.workspace_desc());
    layer_.forward_ = {dnnl::pooling_forward(forward),
                       {{DNNL_ARG_SRC, put(x, x_, values_.input)},
                        {DNNL_ARG_DST, room(y)},
                        {DNNL_ARG_WORKSPACE, where}}};
    layer_.to_input_ = Pass{dnnl::pooling_backward(backward),
                            {{DNNL_ARG_DIFF_DST, put(y, y_, values_.output_gradient)},
                             {DNNL_ARG_DIFF_SRC, room(x)},
                             {DNNL_ARG_WORKSPACE, where}}};
    return true;
  }

  template <class Forward, class Backward>
  bool make_norm(double of_norm) {
    const auto flags = dnnl::normalization_flags::use_scale_shift;
    const auto epsilon = static_cast<float>(of_norm);
    const memory::desc data = here(x_);
    const typename Forward::primitive_desc forward({kTraining, data, epsilon, flags}, engine_);
    const typename Backward::primitive_desc backward(
        {prop_kind::backward, data, data, epsilon, flags}, engine_, forward);
    const memory::desc both({2, input_.channels}, kFloat, Dims{input_.channels, 1});
    const memory src = put(data, x_, values_.input);
    const memory gamma_beta = put(both, both, values_.weights);
    const memory mean = room(forward.mean_desc()), variance = room(forward.variance_desc());
    layer_.forward_ = {Forward(forward),
                       {{DNNL_ARG_SRC, src},
                        {DNNL_ARG_SCALE_SHIFT, gamma_beta},
                        {DNNL_ARG_MEAN, mean},
                        {DNNL_ARG_VARIANCE, variance},
                        {DNNL_ARG_DST, room(data)}}};
    layer_.to_weights_ = Pass{Backward(backward),
                              {{DNNL_ARG_SRC, src},
                               {DNNL_ARG_SCALE_SHIFT, gamma_beta},
                               {DNNL_ARG_MEAN, mean},
                               {DNNL_ARG_VARIANCE, variance},
                               {DNNL_ARG_DIFF_DST, put(data, y_, values_.output_gradient)},
                               {DNNL_ARG_DIFF_SRC, room(data)},
                               {DNNL_ARG_DIFF_SCALE_SHIFT, room(both)}}};
    layer_.gradients_ = {{DNNL_ARG_DIFF_SCALE_SHIFT, both}};
    return true;
  }

  OnednnLayer& layer_;
  const dnnl::engine& engine_;
  const Values& values_;
  const bool bf16_;
  Shape input_, output_;
  memory::desc x_, y_;  // as they stand in our arrays
};

std::unique_ptr<OnednnLayer> OnednnLayer::make(const NetworkDescription& network,
                                               std::int64_t events, const Values& values,
                                               bool bf16) {
  if (network.layers.size() != 1) return nullptr;
  auto layer = std::make_unique<OnednnLayer>();
  try {
    Maker maker(*layer, network, events, values, bf16);
    const bool made =
        std::visit([&](const auto& kind) { return maker.make(kind); }, network.layers[0].kind);
    if (!made) return nullptr;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return nullptr;
  }
  return layer;
}

void OnednnLayer::run(const Pass& pass) {
  pass.primitive.execute(stream_, pass.arguments);
  stream_.wait();
}

std::vector<float> OnednnLayer::read(const Pass& pass, const Result& result) {
  const memory from = pass.arguments.at(result.argument);
  memory to(result.layout, engine_);
  dnnl::reorder(from, to).execute(stream_, const_cast<memory&>(from), to);
  stream_.wait();
  const auto* values = static_cast<const float*>(to.get_data_handle());
  return {values, values + count_of(result.layout.dims())};
}

std::array<std::vector<float>, 3> OnednnLayer::results() {
  std::array<std::vector<float>, 3> results;
  run(forward_);
  results[0] = read(forward_, output_);
  if (to_input_) {
    run(*to_input_);
    results[1] = read(*to_input_, input_gradient_);
  }
  if (to_weights_) {
    run(*to_weights_);
    if (!to_input_) results[1] = read(*to_weights_, input_gradient_);
    for (const Result& gradient : gradients_) {
      const std::vector<float> values = read(*to_weights_, gradient);
      results[2].insert(results[2].end(), values.begin(), values.end());
    }
  }
  return results;
}

std::array<double, 3> OnednnLayer::seconds(int times, int threads,
                                           const std::function<double()>& now) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  std::array<double, 3> seconds;
  seconds.fill(std::numeric_limits<double>::quiet_NaN());
  const auto time = [&](const Pass& pass, double& sum) {
    const double start = now();
    run(pass);
    sum += (now() - start) / times;
  };
  seconds[0] = 0.0;
  if (to_input_) seconds[1] = 0.0;
  if (to_weights_) seconds[2] = 0.0;
  for (int i = 0; i < times; ++i) {
    time(forward_, seconds[0]);
    if (to_input_) time(*to_input_, seconds[1]);
    if (to_weights_) time(*to_weights_, seconds[2]);
  }
  omp_set_num_threads(before);
  return seconds;
}

}  // namespace troupe::bench

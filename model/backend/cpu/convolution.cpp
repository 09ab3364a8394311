#include "model/backend/cpu/convolution.h"

#include <utility>
#include <vector>

#include "model/backend/cpu/onednn.h"
#include "model/backend/cpu/plane_convolution.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/upsampled_convolution.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/activation.h"
#include "model/backend/reference/backend.h"

namespace troupe::model::cpu {
namespace {

using Layout = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Dims = dnnl::memory::dims;
constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// A convolution in the library's words: its axes are n, channel, depth (our x), height (y), width.
struct Descriptions {
  explicit Descriptions(const ConvolutionGeometry& g)
      : x(Dims{g.batch, g.in_channels, g.in[0], g.in[1], g.in[2]}, kFloat, Tag::ndhwc),
        y(Dims{g.batch, g.out_channels, g.out[0], g.out[1], g.out[2]}, kFloat, Tag::ndhwc),
        kernel_dims{g.out_channels, g.in_channels, g.kernel[0], g.kernel[1], g.kernel[2]},
        kernel(kernel_dims, kFloat, Tag::dhwio),
        kernel_any(kernel_dims, kFloat, Tag::any),
        bias(Dims{g.out_channels}, kFloat, Tag::x),
        before(g.pad_before.begin(), g.pad_before.end()),
        after(g.pad_after.begin(), g.pad_after.end()) {}

  dnnl::convolution_forward::primitive_desc forward(bool with_bias,
                                                    const dnnl::primitive_attr& attributes,
                                                    const dnnl::engine& engine) const {
    const auto kind = dnnl::prop_kind::forward_training;
    using Desc = dnnl::convolution_forward::desc;
    const Desc desc = with_bias ? Desc(kind, kDirect, x, kernel_any, bias, y, stride, before, after)
                                : Desc(kind, kDirect, x, kernel_any, y, stride, before, after);
    return {desc, attributes, engine};
  }

  Layout x, y;
  Dims kernel_dims;
  Layout kernel, kernel_any, bias;
  Dims stride{1, 1, 1}, before, after;
};

// LeakyReLU runs inside the convolution. ReLU does not: the library's turns NaN into 0.
dnnl::primitive_attr with_activation(const Activation& activation) {
  dnnl::primitive_attr attributes = user_scratchpad();
  if (activation.kind != ActivationKind::kLeakyRelu) return attributes;
  dnnl::post_ops after;
  after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, static_cast<float>(activation.slope),
                       0.0f);
  attributes.set_post_ops(after);
  return attributes;
}

// A convolution followed by ReLU over its output.
class ReluKernel final : public Kernel {
 public:
  ReluKernel(std::unique_ptr<Kernel> convolution, std::int64_t elements)
      : convolution_(std::move(convolution)), elements_(elements) {}
  std::size_t scratch_bytes() const override { return convolution_->scratch_bytes(); }
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    convolution_->run(operands, random, scratch);
    auto* y = KernelCall{operands, random, scratch}.operand<float>(3);
    reference::activate({ActivationKind::kRelu, 0.0}, y, y, elements_);
  }

 private:
  std::unique_ptr<Kernel> convolution_;
  std::int64_t elements_;
};

template <class Convolution>
std::unique_ptr<Kernel> make_own_kernel(const Convolution& convolution, Precision precision) {
  return upsamples(convolution.geometry) ? make_upsampled_kernel(convolution, precision)
                                         : make_plane_kernel(convolution, precision);
}

// Ours where it is faster, the library's for the rest, and the reference's for geometries that the
// library refuses.
template <class Convolution>
std::unique_ptr<Kernel> choose(const Convolution& convolution, const dnnl::engine& engine) {
  const bool upsampling = upsamples(convolution.geometry);
  if (plane_vectors_supported() && (upsampling || prefers_planes(convolution))) {
    return make_own_kernel(convolution, Precision::kFp32);
  }
  // The library does not upsample.
  if (upsampling) return reference::make_kernel<float>(convolution);
  try {
    return make_onednn_kernel(convolution, engine);
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
    return reference::make_kernel<float>(convolution);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const ConvolutionForward& convolution,
                                    const dnnl::engine& engine) {
  return choose(convolution, engine);
}

std::unique_ptr<Kernel> make_kernel(const ConvolutionBackwardInput& convolution,
                                    const dnnl::engine& engine) {
  return choose(convolution, engine);
}

std::unique_ptr<Kernel> make_kernel(const ConvolutionBackwardParameters& convolution,
                                    const dnnl::engine& engine) {
  return choose(convolution, engine);
}

std::unique_ptr<Kernel> make_portable_kernel(const ConvolutionForward& convolution,
                                             Precision precision) {
  return make_own_kernel(convolution, precision);
}

std::unique_ptr<Kernel> make_portable_kernel(const ConvolutionBackwardInput& convolution,
                                             Precision precision) {
  return make_own_kernel(convolution, precision);
}

std::unique_ptr<Kernel> make_portable_kernel(const ConvolutionBackwardParameters& convolution,
                                             Precision precision) {
  return make_own_kernel(convolution, precision);
}

std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionForward& convolution,
                                           const dnnl::engine& engine) {
  const bool bias = convolution.geometry.bias;
  const Descriptions d(convolution.geometry);
  const auto pd = d.forward(bias, with_activation(convolution.activation), engine);
  PrimitiveList list(engine);
  const ArgumentPlace kernel =
      list.reordered(d.kernel, PrimitiveList::operand(1), pd.weights_desc());
  std::vector<PrimitiveList::Argument> arguments{{DNNL_ARG_SRC, d.x, PrimitiveList::operand(0)},
                                                 {DNNL_ARG_WEIGHTS, pd.weights_desc(), kernel},
                                                 {DNNL_ARG_DST, d.y, PrimitiveList::operand(3)}};
  if (bias) arguments.push_back({DNNL_ARG_BIAS, d.bias, PrimitiveList::operand(2)});
  list.add(dnnl::convolution_forward(pd), std::move(arguments), pd.scratchpad_desc());
  auto kernel_of_list = std::make_unique<PrimitiveKernel>(std::move(list));
  if (convolution.activation.kind != ActivationKind::kRelu) return kernel_of_list;
  const auto elements = static_cast<std::int64_t>(d.y.get_size() / sizeof(float));
  return std::make_unique<ReluKernel>(std::move(kernel_of_list), elements);
}

std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionBackwardInput& convolution,
                                           const dnnl::engine& engine) {
  const Descriptions d(convolution.geometry);
  const dnnl::convolution_backward_data::primitive_desc pd(
      {kDirect, d.x, d.kernel_any, d.y, d.stride, d.before, d.after}, user_scratchpad(), engine,
      d.forward(false, user_scratchpad(), engine));
  PrimitiveList list(engine);
  const ArgumentPlace kernel =
      list.reordered(d.kernel, PrimitiveList::operand(1), pd.weights_desc());
  list.add(dnnl::convolution_backward_data(pd),
           {{DNNL_ARG_DIFF_DST, d.y, PrimitiveList::operand(0)},
            {DNNL_ARG_WEIGHTS, pd.weights_desc(), kernel},
            {DNNL_ARG_DIFF_SRC, d.x, PrimitiveList::operand(2)}},
           pd.scratchpad_desc());
  return std::make_unique<PrimitiveKernel>(std::move(list));
}

std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionBackwardParameters& convolution,
                                           const dnnl::engine& engine) {
  const bool bias = convolution.geometry.bias;
  const Descriptions d(convolution.geometry);
  using Backward = dnnl::convolution_backward_weights;
  const Backward::desc desc =
      bias ? Backward::desc(kDirect, d.x, d.kernel_any, d.bias, d.y, d.stride, d.before, d.after)
           : Backward::desc(kDirect, d.x, d.kernel_any, d.y, d.stride, d.before, d.after);
  const Backward::primitive_desc pd(desc, user_scratchpad(), engine,
                                    d.forward(bias, user_scratchpad(), engine));
  PrimitiveList list(engine);
  const Layout layout = pd.diff_weights_desc();
  const bool in_place = layout == d.kernel;
  const ArgumentPlace kernel = in_place ? PrimitiveList::operand(2) : list.scratch(layout);
  std::vector<PrimitiveList::Argument> arguments{
      {DNNL_ARG_SRC, d.x, PrimitiveList::operand(0)},
      {DNNL_ARG_DIFF_DST, d.y, PrimitiveList::operand(1)},
      {DNNL_ARG_DIFF_WEIGHTS, layout, kernel}};
  if (bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, d.bias, PrimitiveList::operand(3)});
  list.add(Backward(pd), std::move(arguments), pd.scratchpad_desc());
  if (!in_place) list.reorder_into(layout, kernel, d.kernel, PrimitiveList::operand(2));
  return std::make_unique<PrimitiveKernel>(std::move(list));
}

}  // namespace troupe::model::cpu

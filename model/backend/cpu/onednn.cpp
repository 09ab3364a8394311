// oneDNN's convolutions. Images are in ndhwc: x, y and their derivatives stay in place, the small
// kernels are copied into the layout the chosen primitive likes.

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/backend/cpu/convolution.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/reference/kernels.h"
#include "runtime/base/error.h"

namespace troupe::model::cpu {
namespace {

using Layout = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Dims = dnnl::memory::dims;
constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// The place of an argument: operand `position` of the operation, or so many bytes into the scratch.
struct ArgumentPlace {
  bool in_scratch = false;
  std::size_t position = 0;
};
ArgumentPlace operand(std::size_t index) { return {false, index}; }

struct Argument {
  int name = 0;  // DNNL_ARG_...
  Layout layout;
  ArgumentPlace place;
};

// Scratch memory is the caller's, as Kernel::scratch_bytes promises.
dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// A short list of primitives, put together once and then only executed. The library allocates small
// bookkeeping of its own at each execution; all arrays are ours.
class PrimitiveKernel final : public Kernel {
 public:
  explicit PrimitiveKernel(const dnnl::engine& engine) : engine_(engine) {}

  // A new place in the scratch memory for an array of that layout.
  ArgumentPlace scratch(const Layout& layout) { return {true, plan_.add_bytes(layout.get_size())}; }

  // `scratchpad` is the primitive's own work space; an empty layout needs none.
  void add(const dnnl::primitive& primitive, std::vector<Argument> arguments,
           const Layout& scratchpad) {
    if (scratchpad.get_size() > 0) {
      arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, scratch(scratchpad)});
    }
    steps_.push_back({primitive, std::move(arguments)});
  }

  // Copies to another layout, in a new place in scratch. When they are equal nothing is added and
  // `from` comes back.
  ArgumentPlace reordered(const Layout& from_layout, ArgumentPlace from, const Layout& to_layout) {
    if (from_layout == to_layout) return from;
    const ArgumentPlace to = scratch(to_layout);
    reorder_into(from_layout, from, to_layout, to);
    return to;
  }
  void reorder_into(const Layout& from_layout, ArgumentPlace from, const Layout& to_layout,
                    ArgumentPlace to) {
    const dnnl::reorder::primitive_desc description(engine_, from_layout, engine_, to_layout,
                                                    user_scratchpad());
    add(dnnl::reorder(description),
        {{DNNL_ARG_FROM, from_layout, from}, {DNNL_ARG_TO, to_layout, to}},
        description.scratchpad_desc());
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  // A failing primitive is a defect (bad operands) and ends the process with the library's reason.
  void run(std::span<void* const> operands, const runtime::RandomPosition&,
           std::byte* scratch) const override {
    try {
      execute(operands, scratch);
    } catch (const dnnl::error& error) {
      CHECK(false, std::string("a oneDNN primitive failed: ") + error.what());
    }
  }

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
  };

  void execute(std::span<void* const> operands, std::byte* scratch) const {
    dnnl::stream stream(engine_);
    std::unordered_map<int, dnnl::memory> arguments;
    for (const Step& step : steps_) {
      arguments.clear();
      for (const Argument& argument : step.arguments) {
        const ArgumentPlace& place = argument.place;
        void* data = place.in_scratch ? scratch + place.position : operands[place.position];
        arguments.emplace(argument.name, dnnl::memory(argument.layout, engine_, data));
      }
      step.primitive.execute(stream, arguments);
    }
    stream.wait();
  }

  dnnl::engine engine_;
  std::vector<Step> steps_;
  ScratchPlan plan_;
};

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

}  // namespace

std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionForward& convolution,
                                           const dnnl::engine& engine) {
  const bool bias = convolution.geometry.bias;
  const Descriptions d(convolution.geometry);
  const auto pd = d.forward(bias, with_activation(convolution.activation), engine);
  auto kernel = std::make_unique<PrimitiveKernel>(engine);
  const ArgumentPlace weights = kernel->reordered(d.kernel, operand(1), pd.weights_desc());
  std::vector<Argument> arguments{{DNNL_ARG_SRC, d.x, operand(0)},
                                  {DNNL_ARG_WEIGHTS, pd.weights_desc(), weights},
                                  {DNNL_ARG_DST, d.y, operand(3)}};
  if (bias) arguments.push_back({DNNL_ARG_BIAS, d.bias, operand(2)});
  kernel->add(dnnl::convolution_forward(pd), std::move(arguments), pd.scratchpad_desc());
  if (convolution.activation.kind != ActivationKind::kRelu) return kernel;
  const auto elements = static_cast<std::int64_t>(d.y.get_size() / sizeof(float));
  return std::make_unique<ReluKernel>(std::move(kernel), elements);
}

std::unique_ptr<Kernel> make_onednn_kernel(const ConvolutionBackwardInput& convolution,
                                           const dnnl::engine& engine) {
  const Descriptions d(convolution.geometry);
  const dnnl::convolution_backward_data::primitive_desc pd(
      {kDirect, d.x, d.kernel_any, d.y, d.stride, d.before, d.after}, user_scratchpad(), engine,
      d.forward(false, user_scratchpad(), engine));
  auto kernel = std::make_unique<PrimitiveKernel>(engine);
  const ArgumentPlace weights = kernel->reordered(d.kernel, operand(1), pd.weights_desc());
  kernel->add(dnnl::convolution_backward_data(pd),
              {{DNNL_ARG_DIFF_DST, d.y, operand(0)},
               {DNNL_ARG_WEIGHTS, pd.weights_desc(), weights},
               {DNNL_ARG_DIFF_SRC, d.x, operand(2)}},
              pd.scratchpad_desc());
  return kernel;
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
  auto kernel = std::make_unique<PrimitiveKernel>(engine);
  const Layout layout = pd.diff_weights_desc();
  // Where the primitive chooses another layout of the gradient than ours, it writes to scratch, and
  // a reordering behind it fills the operand.
  const bool in_place = layout == d.kernel;
  const ArgumentPlace weights = in_place ? operand(2) : kernel->scratch(layout);
  std::vector<Argument> arguments{{DNNL_ARG_SRC, d.x, operand(0)},
                                  {DNNL_ARG_DIFF_DST, d.y, operand(1)},
                                  {DNNL_ARG_DIFF_WEIGHTS, layout, weights}};
  if (bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, d.bias, operand(3)});
  kernel->add(Backward(pd), std::move(arguments), pd.scratchpad_desc());
  if (!in_place) kernel->reorder_into(layout, weights, d.kernel, operand(2));
  return kernel;
}

}  // namespace troupe::model::cpu

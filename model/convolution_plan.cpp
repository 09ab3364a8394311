#include "model/convolution_plan.h"

#include "model/layer_rules.h"

namespace troupe::model {
namespace {

constexpr Extent kNone{1, 1, 1};

// A convolution from one image to another, whatever its stride and dilation.
struct Strided {
  ConvolutionGeometry geometry;  // of the images
  Extent stride = kNone, dilation = kNone;
};

ConvolutionPlan in_strides(const Strided& strided) {
  const ConvolutionGeometry& images = strided.geometry;
  ConvolutionPlan plan{images, {}, {}, {}};
  ConvolutionGeometry& g = plan.geometry;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    g.kernel[axis] = (images.kernel[axis] + strided.stride[axis] - 1) / strided.stride[axis];
    g.phases[axis] = strided.stride[axis];
    g.whole_phases[axis] = images.kernel[axis] - strided.stride[axis] * (g.kernel[axis] - 1);
    g.in[axis] = g.out[axis] + g.kernel[axis] - 1;
  }
  g.pad_before = g.pad_after = {0, 0, 0};
  g.in_channels *= cells(strided.stride);
  plan.of_image = Phases{images.batch,   images.in_channels, images.in, g.in,
                         strided.stride, images.pad_before,  false};
  plan.of_kernel = Phases{1,
                          images.in_channels * images.out_channels,
                          images.kernel,
                          g.kernel,
                          strided.stride,
                          {0, 0, 0},
                          false};
  return plan;
}

ConvolutionPlan in_dilations(const Strided& strided) {
  const ConvolutionGeometry& images = strided.geometry;
  ConvolutionPlan plan{images, {}, {}, {}};
  ConvolutionGeometry& g = plan.geometry;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t dilation = strided.dilation[axis];
    g.out[axis] = (images.out[axis] + dilation - 1) / dilation;
    g.in[axis] = g.out[axis] + g.kernel[axis] - 1;
  }
  g.pad_before = g.pad_after = {0, 0, 0};
  g.batch *= cells(strided.dilation);
  plan.of_image = Phases{images.batch,     images.in_channels, images.in, g.in,
                         strided.dilation, images.pad_before,  true};
  plan.of_output = Phases{images.batch,     images.out_channels, images.out, g.out,
                          strided.dilation, {0, 0, 0},           true};
  return plan;
}

// A kernel of one tap along an axis has no dilation there.
ConvolutionPlan plan_of(Strided strided) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (strided.geometry.kernel[axis] == 1) strided.dilation[axis] = 1;
  }
  if (strided.stride != kNone) return in_strides(strided);
  if (strided.dilation != kNone) return in_dilations(strided);
  return {strided.geometry, {}, {}, {}};
}

// All but what is padded, and whether there is a bias.
template <class Kind>
GroupedGeometry grouped(const Kind& convolution, const Shape& image, const Shape& output,
                        std::int64_t batch) {
  GroupedGeometry g;
  g.batch = batch;
  g.in = image.space;
  g.out = output.space;
  g.kernel = convolution.kernel;
  g.stride = convolution.stride;
  g.dilation = convolution.dilation;
  g.in_channels = image.channels;
  g.out_channels = output.channels;
  g.groups = convolution.groups;
  return g;
}

}  // namespace

ConvolutionPlan plan_convolution(const Computation& computation, std::int64_t batch) {
  const auto& convolution = std::get<Convolution>(computation.kind);
  ConvolutionGeometry g;
  g.batch = batch;
  g.in = computation.input_shape.space;
  g.kernel = convolution.kernel;
  g.upsample = computation.upsample;
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t before = computation.extra_pad.before[i];
    const std::int64_t behind = computation.extra_pad.behind[i];
    const AxisWindows own =
        convolution_windows(convolution, axis, before + g.in[i] * g.upsample[i] + behind);
    g.pad_before[i] = own.before + before;
    g.pad_after[i] = own.after + behind;
    g.out[i] = own.output;
  }
  g.in_channels = computation.input_shape.channels;
  g.out_channels = convolution.filters;
  g.bias = convolution.bias;
  return plan_of({g, convolution.stride, convolution.dilation});
}

ConvolutionPlan plan_transposed(const Computation& computation, std::int64_t batch) {
  const auto& convolution = std::get<TransposedConvolution>(computation.kind);
  ConvolutionGeometry g;
  g.batch = batch;
  g.in = computation.output_shape.space;
  g.out = computation.input_shape.space;
  g.kernel = convolution.kernel;
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const AxisWindows own = transposed_windows(convolution, axis, g.out[i]);
    g.pad_before[i] = own.before;
    g.pad_after[i] = own.after;
  }
  g.in_channels = convolution.filters;
  g.out_channels = computation.input_shape.channels;
  g.bias = false;
  return plan_of({g, convolution.stride, convolution.dilation});
}

GroupedGeometry grouped_geometry(const Computation& computation, std::int64_t batch) {
  const auto& convolution = std::get<Convolution>(computation.kind);
  const Shape& image = computation.input_shape;
  GroupedGeometry g = grouped(convolution, image, computation.output_shape, batch);
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    g.pad_before[i] = convolution_windows(convolution, axis, image.space[i]).before;
  }
  g.bias = convolution.bias;
  return g;
}

GroupedGeometry grouped_transposed(const Computation& computation, std::int64_t batch) {
  const auto& convolution = std::get<TransposedConvolution>(computation.kind);
  const Shape& output = computation.input_shape;
  GroupedGeometry g = grouped(convolution, computation.output_shape, output, batch);
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    g.pad_before[i] = transposed_windows(convolution, axis, output.space[i]).before;
  }
  g.bias = false;
  return g;
}

std::int64_t image_elements(const Phases& phases) {
  return phases.batch * cells(phases.space) * phases.channels;
}
std::int64_t phase_elements(const Phases& phases) {
  return phases.batch * cells(phases.cells) * cells(phases.stride) * phases.channels;
}

}  // namespace troupe::model

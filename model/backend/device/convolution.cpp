#include "model/backend/cpu/coarse_planes.h"
#include "model/backend/cpu/collapsed_kernel.h"
#include "model/backend/cpu/upsampled_convolution.h"
#include "model/backend/cpu/winograd.h"
#include "model/backend/device/convolution_sizes.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model::device {
namespace {

constexpr std::int64_t kItemOutputs = ITEM_OUTPUTS, kItemPositions = ITEM_POSITIONS,
                       kMultiplyPositions = MULTIPLY_POSITIONS, kLanes = LANES,
                       kPlanesAtOnce = PLANES_AT_ONCE;
// Items of a block, where they need so many registers that a larger one would leave a card idle.
constexpr std::int64_t kFewItems = 64;
constexpr std::int64_t kDotRows = DOT_ROWS, kDotOutputs = DOT_OUTPUTS, kDotTeams = DOT_TEAMS;

// Numbers that the host knows, in the device's memory.
template <class T>
std::shared_ptr<const T> on_device(Device& device, std::span<const T> numbers) {
  const auto memory = device.allocate(numbers.size_bytes());
  device.write(numbers.data(), memory.get(), numbers.size_bytes());
  return {memory, reinterpret_cast<const T*>(memory.get())};
}

// The tiling of planes of floats, or of bfloat16 whose pairs are channels or positions.
template <class Pairs>
cpu::Tiling tiling_of(const ConvolutionGeometry& g, bool pairs) {
  return pairs ? cpu::tiling_of<Pairs>(g) : cpu::tiling_of<float>(g);
}

ConvolutionSizes sizes_of(const ConvolutionGeometry& g, const cpu::Tiling& tiling, bool pairs,
                          const Activation& activation) {
  ConvolutionSizes s = device::sizes_of(g, pairs, activation);
  s.points = as_int(tiling.points);
  s.outputs = as_int(tiling.outputs);
  s.row = as_int(tiling.row);
  s.taps_in_z = as_int(tiling.taps_in_z);
  s.parts = as_int(tiling.parts);
  s.taps_of_part = as_int(tiling.taps_of_part);
  s.positions = as_int(tiling.positions);
  s.plane = as_int(tiling.plane);
  return s;
}

// [tap][point]; null without tiles.
std::shared_ptr<const double> tap_transform(Device& device, const cpu::Tiling& tiling) {
  if (!tiling.tiles()) return nullptr;
  const auto rows = cpu::tap_transform(static_cast<int>(tiling.taps_of_part));
  return on_device<double>(device, {rows[0].data(), rows.size() * rows[0].size()});
}

std::int64_t input_planes(const ConvolutionGeometry& g, const cpu::Tiling& tiling) {
  return g.batch * g.in[0] * tiling.points * tiling.parts * g.in_channels * tiling.plane;
}
std::int64_t output_planes(const ConvolutionGeometry& g, const cpu::Tiling& tiling) {
  return g.batch * g.out[0] * tiling.points * g.out_channels * tiling.positions;
}
// Rows of weights, or of their gradients, of all points; one has a number for each output.
std::int64_t weight_rows(const ConvolutionGeometry& g, const cpu::Tiling& tiling) {
  return tiling.points * g.kernel[0] * g.kernel[1] * tiling.taps_in_z * tiling.parts *
         g.in_channels;
}

// y = activation(conv(x, kernel) + bias).
std::unique_ptr<Kernel> image_kernel(const Maker& make, const ConvolutionGeometry& g,
                                     const Activation& activation, const ImageOperands& of) {
  if (make.tensor_cores) {
    if (auto kernel = tensor_image_kernel(make, g, activation, of)) return kernel;
  }
  const bool pairs = cpu::in_pairs(make.precision, g.in_channels);
  const cpu::Tiling tiling = tiling_of<cpu::Bfloat16Pair>(g, pairs);
  ConvolutionSizes sizes = sizes_of(g, tiling, pairs, activation);
  const bool single = g.out_channels == 1;
  const std::int64_t blocks = single ? 1 : blocks_of(g.out_channels, kItemOutputs);
  sizes.weight_row = as_int(single ? 1 : blocks * kItemOutputs);
  const std::int64_t weights_size = weight_rows(g, tiling) * sizes.weight_row;
  GroupScratch scratch(make.group);
  const MirroredKernel mirrored(make, g, of.mirror, scratch);
  const std::size_t weights_at = scratch.add_shared<float>(weights_size);
  const std::int64_t inputs = input_planes(g, tiling), outputs = output_planes(g, tiling);
  const std::size_t planes_at = scratch.add<float>(inputs), sums_at = scratch.add<float>(outputs);
  return operation_kernel(
      scratch.bytes(), [=, transform = tap_transform(make.device, tiling),
                        tap_values = make.kernel("convolution_tap_values"),
                        input = make.kernel("convolution_inputs"),
                        multiply = make.kernel(single  ? "convolution_multiply_single"
                                               : pairs ? "convolution_multiply_pairs"
                                                       : "convolution_multiply"),
                        output = make.kernel("convolution_outputs")](const GroupCall& call) {
        const std::int64_t count = call.group.count;
        const auto* values = at<float>(call, weights_at);
        Arguments of_taps;
        tap_values(weights_size, 1,
                   of_taps.operand(mirrored(call, of.kernel, sizes))
                       .operand(transform.get())
                       .operand(values)
                       .value(sizes));
        const auto *planes = at<float>(call, planes_at), *sums = at<float>(call, sums_at);
        input(inputs / tiling.points, count,
              call.with({of.x}).operand(planes, inputs).value(sizes));
        Arguments arguments;
        multiply(
            outputs / g.out_channels * blocks / (single ? 1 : kMultiplyPositions), count,
            arguments.operand(planes, inputs).operand(values).operand(sums, outputs).value(sizes));
        Arguments of_outputs;
        of_outputs.operand(sums, outputs)
            .operand(g.bias ? static_cast<const float*>(call.operands[of.bias]) : nullptr);
        const std::int64_t tiles = tiling.row - tiling.taps_in_z + 1;
        output(g.batch * g.out[0] * g.out[1] * tiles * g.out_channels, count,
               call.add(of_outputs, {of.y}).value(sizes));
      });
}

std::unique_ptr<Kernel> gradient_kernel(const Maker& make, const ConvolutionGeometry& g) {
  if (make.tensor_cores) {
    if (auto kernel = tensor_gradient_kernel(make, g)) return kernel;
  }
  const bool pairs = make.precision == Precision::kBf16;
  const cpu::Tiling tiling = tiling_of<cpu::Bfloat16>(g, pairs);
  const ConvolutionSizes sizes = sizes_of(g, tiling, pairs, {});
  const std::int64_t inputs = input_planes(g, tiling), derivatives = output_planes(g, tiling);
  const std::int64_t weights = weight_rows(g, tiling) * g.out_channels;
  const std::int64_t terms = g.batch * blocks_of(g.out[0], kPlanesAtOnce);
  const std::int64_t columns_of_taps = tiling.points * g.kernel[0];
  const std::int64_t teams = terms * columns_of_taps *
                             blocks_of(weight_rows(g, tiling) / columns_of_taps, kDotRows) *
                             blocks_of(g.out_channels, kDotOutputs);
  GroupScratch scratch(make.group);
  const std::size_t inputs_at = scratch.add<float>(inputs);
  const std::size_t derivatives_at = scratch.add<float>(derivatives);
  const std::size_t terms_at = scratch.add<float>(terms * weights);
  const std::size_t sums_at = scratch.add<float>(weights);
  const BiasGradient bias(make, g, scratch);
  return operation_kernel(
      scratch.bytes(),
      [=, transform = tap_transform(make.device, tiling), input = make.kernel("convolution_inputs"),
       derivative = make.kernel("convolution_derivatives"), dots = make.kernel("convolution_dots"),
       add = make.kernel("add_terms"),
       gradient = make.kernel("convolution_gradient")](const GroupCall& call) {
        const std::int64_t count = call.group.count;
        const auto *left = at<float>(call, inputs_at), *right = at<float>(call, derivatives_at);
        const auto *each = at<float>(call, terms_at), *sums = at<float>(call, sums_at);
        input(inputs / tiling.points, count, call.with({0}).operand(left, inputs).value(sizes));
        derivative(derivatives / tiling.points, count,
                   call.with({1}).operand(right, derivatives).value(sizes));
        Arguments of_dots;
        dots.blocks(blocks_of(teams, kDotTeams), kDotTeams * kLanes, count,
                    of_dots.operand(left, inputs)
                        .operand(right, derivatives)
                        .operand(each, terms * weights)
                        .value(sizes));
        Arguments of_terms;
        add(weights, count,
            of_terms.operand(each, terms * weights)
                .operand(sums, weights)
                .value(static_cast<long>(weights))
                .value(static_cast<int>(terms)));
        Arguments of_gradient;
        of_gradient.operand(sums, weights).operand(transform.get());
        gradient(kernel_size(g), count, call.add(of_gradient, {2}).value(sizes));
        bias(call);
      });
}

// The sizes that kernels of upsampled images take (kernels/upsampled.cl).
struct Upsampled {
  ConvolutionGeometry g;
  ConvolutionSizes sizes;
  std::int64_t taps = 0;  // coarse ones of all phases
  std::int64_t lead_y = 0, lead_z = 0;
  bool transposed = false;  // the collapsed kernel
  std::shared_ptr<const int> first_taps;

  // `in_lane`: positions of a lane, where these are summed.
  Upsampled(Device& device, const ConvolutionGeometry& geometry, bool pairs, std::int64_t in_lane,
            const Activation& activation)
      : g(cpu::with_long_rows(geometry)) {
    const cpu::CollapsedKernel kernel(g);
    const cpu::CoarsePlanes planes(kernel, in_lane);
    cpu::Tiling tiling;
    tiling.row = planes.row;
    tiling.positions = planes.positions;
    sizes = sizes_of(g, tiling, pairs, activation);
    sizes.weight_row = as_int(blocks_of(g.out_channels, kItemOutputs) * kItemOutputs);
    taps = kernel.taps();
    lead_y = kernel.axis(1).lead();
    lead_z = kernel.axis(2).lead();
    std::vector<int> first;
    for (std::int64_t x = 0; x < g.upsample[0]; ++x) {
      for (std::int64_t y = 0; y < g.upsample[1]; ++y) {
        for (std::int64_t z = 0; z < g.upsample[2]; ++z) {
          first.push_back(static_cast<int>(kernel.first_tap(x, y, z)));
        }
      }
    }
    first_taps = on_device<int>(device, first);
  }
  std::int64_t gradient_size() const { return taps * g.in_channels * g.out_channels; }
  std::int64_t collapsed_rows() const {
    return taps * (transposed ? g.out_channels : g.in_channels);
  }
  std::int64_t collapsed_size() const { return collapsed_rows() * sizes.weight_row; }
};

// Collapses operand `kernel` to `collapsed`.
void collapse(const Launcher& launch, const Upsampled& u, const void* kernel,
              const float* collapsed) {
  Arguments arguments;
  launch(u.collapsed_size(), 1,
         arguments.operand(static_cast<const float*>(kernel))
             .operand(u.first_taps.get())
             .operand(collapsed)
             .value(u.sizes)
             .value(static_cast<int>(u.taps))
             .value(int{u.transposed}));
}

}  // namespace

ConvolutionSizes sizes_of(const ConvolutionGeometry& g, bool pairs, const Activation& activation) {
  ConvolutionSizes s{};
  s.pairs = pairs;
  s.batch = as_int(g.batch);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    s.in[axis] = as_int(g.in[axis]);
    s.out[axis] = as_int(g.out[axis]);
    s.taps[axis] = as_int(g.kernel[axis]);
    s.before[axis] = as_int(g.pad_before[axis]);
    s.factor[axis] = as_int(g.upsample[axis]);
  }
  s.in_channels = as_int(g.in_channels);
  s.out_channels = as_int(g.out_channels);
  s.bias = g.bias;
  s.activation = {static_cast<int>(activation.kind), static_cast<float>(activation.slope)};
  return s;
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const ConvolutionForward& convolution) {
  if (!cpu::upsamples(convolution.geometry)) {
    return image_kernel(make, cpu::with_long_rows(convolution.geometry), convolution.activation,
                        {});
  }
  const bool pairs = cpu::in_pairs(make.precision, convolution.geometry.in_channels);
  const Upsampled u(make.device, convolution.geometry, pairs, 1, convolution.activation);
  GroupScratch scratch(make.group);
  scratch.add_shared<float>(u.collapsed_size());
  const std::int64_t factor = u.g.upsample[2];
  const std::int64_t items = u.g.batch * u.g.out[0] * u.g.out[1] * factor *
                             blocks_of(u.g.out[2], factor * kItemPositions) *
                             blocks_of(u.g.out_channels, kItemOutputs);
  return operation_kernel(
      scratch.bytes(), [=, to_coarse = make.kernel("upsampled_collapse"),
                        forward = make.kernel("upsampled_forward")](const GroupCall& call) {
        const auto* weights = at<float>(call, 0);
        collapse(to_coarse, u, call.operands[1], weights);
        Arguments arguments = call.with({0});
        arguments.operand(weights)
            .operand(u.first_taps.get())
            .operand(u.g.bias ? static_cast<const float*>(call.operands[2]) : nullptr);
        forward.blocks(blocks_of(items, kFewItems), kFewItems, call.group.count,
                       call.add(arguments, {3}).value(u.sizes));
      });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make,
                                    const ConvolutionBackwardInput& convolution) {
  if (!cpu::upsamples(convolution.geometry)) {
    return image_kernel(make, cpu::with_long_rows(reference::mirrored(convolution.geometry)), {},
                        {.mirror = true, .x = 0, .kernel = 1, .y = 2});
  }
  const bool pairs = cpu::in_pairs(make.precision, convolution.geometry.out_channels);
  Upsampled u(make.device, convolution.geometry, pairs, 1, {});
  const std::int64_t blocks = blocks_of(u.g.in_channels, kItemOutputs);
  u.transposed = true;
  u.sizes.weight_row = as_int(blocks * kItemOutputs);
  GroupScratch scratch(make.group);
  scratch.add_shared<float>(u.collapsed_size());
  const std::int64_t items =
      u.g.batch * u.g.in[0] * u.g.in[1] * blocks_of(u.g.in[2], kItemPositions) * blocks;
  return operation_kernel(
      scratch.bytes(), [=, to_coarse = make.kernel("upsampled_collapse"),
                        backward = make.kernel("upsampled_backward_input")](const GroupCall& call) {
        const auto* weights = at<float>(call, 0);
        collapse(to_coarse, u, call.operands[1], weights);
        Arguments arguments = call.with({0});
        arguments.operand(weights).operand(u.first_taps.get());
        backward.blocks(blocks_of(items, kFewItems), kFewItems, call.group.count,
                        call.add(arguments, {2}).value(u.sizes));
      });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make,
                                    const ConvolutionBackwardParameters& convolution) {
  if (!cpu::upsamples(convolution.geometry)) {
    return gradient_kernel(make, cpu::with_long_rows(convolution.geometry));
  }
  const bool pairs = make.precision == Precision::kBf16;
  const Upsampled u(make.device, convolution.geometry, pairs, pairs ? 2 : 1, {});
  GroupScratch scratch(make.group);
  const std::int64_t size = u.gradient_size(), terms = u.g.batch;
  const std::int64_t teams = terms * u.taps * blocks_of(u.g.in_channels, kDotRows) *
                             blocks_of(u.g.out_channels, kDotOutputs);
  scratch.add<float>(terms * size);
  const std::size_t sums_at = scratch.add<float>(size);
  const BiasGradient bias(make, u.g, scratch);
  return operation_kernel(
      scratch.bytes(), [=, dots = make.kernel("upsampled_dots"), add = make.kernel("add_terms"),
                        expand = make.kernel("upsampled_expand")](const GroupCall& call) {
        const std::int64_t count = call.group.count;
        const auto *each = at<float>(call, 0), *sums = at<float>(call, sums_at);
        dots.blocks(blocks_of(teams, kDotTeams), kDotTeams * kLanes, count,
                    call.with({0, 1})
                        .operand(u.first_taps.get())
                        .operand(each, terms * size)
                        .value(u.sizes)
                        .value(static_cast<int>(u.taps))
                        .value(static_cast<int>(u.lead_y))
                        .value(static_cast<int>(u.lead_z)));
        Arguments of_terms;
        add(size, count,
            of_terms.operand(each, terms * size)
                .operand(sums, size)
                .value(static_cast<long>(size))
                .value(static_cast<int>(terms)));
        Arguments of_gradient;
        of_gradient.operand(sums, size).operand(u.first_taps.get());
        expand(kernel_size(u.g), count, call.add(of_gradient, {2}).value(u.sizes));
        bias(call);
      });
}

}  // namespace troupe::model::device

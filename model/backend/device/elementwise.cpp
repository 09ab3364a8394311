// Everything but convolutions and batch norm.

#include "model/backend/cpu/dense.h"
#include "model/backend/cpu/dropout.h"
#include "model/backend/device/channel_totals.h"

namespace troupe::model::device {
namespace {

template <class Dense>
int in_pairs(const Maker& make, const Dense& dense) {
  return int{cpu::dense_in_pairs(make.precision, dense.inputs, dense.units)};
}

long as_long(std::int64_t value) { return static_cast<long>(value); }

static_assert(static_cast<int>(ActivationKind::kLinear) == ACTIVATION_LINEAR &&
              static_cast<int>(ActivationKind::kRelu) == ACTIVATION_RELU &&
              static_cast<int>(ActivationKind::kLeakyRelu) == ACTIVATION_LEAKY_RELU &&
              static_cast<int>(ActivationKind::kSigmoid) == ACTIVATION_SIGMOID &&
              static_cast<int>(ActivationKind::kTanh) == ACTIVATION_TANH &&
              static_cast<int>(ActivationKind::kSoftplus) == ACTIVATION_SOFTPLUS &&
              static_cast<int>(ActivationKind::kGelu) == ACTIVATION_GELU &&
              static_cast<int>(ActivationKind::kSilu) == ACTIVATION_SILU &&
              static_cast<int>(ActivationKind::kElu) == ACTIVATION_ELU);

ActivationSizes sizes_of(const Activation& activation) {
  return {static_cast<int>(activation.kind), static_cast<float>(activation.slope)};
}

// A kernel over elements, which takes so many operands, the number of elements, and `more`.
template <class... More>
std::unique_ptr<Kernel> over_elements(const Launcher& kernel, std::int64_t elements,
                                      std::size_t operands, const More&... more) {
  as_int(elements + BLOCK_ITEMS * ITEM_ELEMENTS);
  return operation_kernel(0, [=](const GroupCall& call) {
    Arguments arguments;
    for (std::size_t i = 0; i < operands; ++i) call.add(arguments, {i});
    arguments.value(as_long(elements));
    (arguments.value(more), ...);
    kernel.elements(elements, call.group.count, arguments);
  });
}

// A kernel of so many items from operand 0 to operand 1, of events with so many cells.
template <class Op>
std::unique_ptr<Kernel> over_events(const Launcher& kernel, std::int64_t items,
                                    const Op& operation) {
  return operation_kernel(0, [=](const GroupCall& call) {
    kernel(items, call.group.count,
           call.with({0, 1}).value(as_int(operation.batch)).value(as_long(operation.cells)));
  });
}

WindowSizes windows(const Extent& fine, const Extent& coarse, const Extent& window,
                    std::int64_t channels, float scale) {
  WindowSizes sizes{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    sizes.fine[axis] = as_int(fine[axis]);
    sizes.coarse[axis] = as_int(coarse[axis]);
    sizes.window[axis] = as_int(window[axis]);
  }
  sizes.channels = as_int(channels);
  sizes.scale = scale;
  return sizes;
}
std::int64_t count(const int (&extent)[3]) {
  return std::int64_t{extent[0]} * extent[1] * extent[2];
}

// A kernel that moves cells from operand 0 to operand 1, `items` for each event.
std::unique_ptr<Kernel> over_windows(const Launcher& kernel, const WindowSizes& sizes,
                                     std::int64_t batch, std::int64_t cells) {
  return operation_kernel(0, [=](const GroupCall& call) {
    kernel(batch * cells * sizes.channels, call.group.count,
           call.with({0, 1}).value(sizes).value(as_int(batch)));
  });
}

template <class Pad>
WindowSizes padding(const Pad& pad) {
  return windows(padded(pad.in, pad.amount), pad.in, pad.amount.before, pad.channels, 1.0f);
}

template <class Upsample>
WindowSizes upsampling(const Upsample& u) {
  Extent fine;
  for (std::size_t axis = 0; axis < 3; ++axis) fine[axis] = u.in[axis] * u.factor[axis];
  return windows(fine, u.in, u.factor, u.channels, 1.0f);
}

WindowSizes pooling(const PoolGeometry& g) {  // side by side
  return windows(g.in, g.out, g.size, g.channels, 1.0f / static_cast<float>(cells(g.size)));
}

std::unique_ptr<Kernel> over_pool(const Launcher& kernel, const PoolGeometry& g,
                                  std::int64_t elements) {
  as_int(elements + Launcher::kItems);
  return operation_kernel(0, [=](const GroupCall& call) {
    kernel(elements, call.group.count,
           call.with({0, 1}).value(pool_sizes(g)).value(as_int(g.batch)));
  });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Maker& make, const DenseForward& dense) {
  return operation_kernel(0, [=, pairs = in_pairs(make, dense), run = make.kernel("dense_forward"),
                              run_rest = make.kernel("dense_forward_rest")](const GroupCall& call) {
    const std::int64_t rest = dense.units % 16, fused = dense.units - rest;
    if (fused > 0) {
      run(dense.batch * fused, call.group.count,
          call.with({0, 1, 2, 3})
              .value(as_int(dense.batch))
              .value(as_int(dense.inputs))
              .value(as_int(dense.units))
              .value(int{dense.bias})
              .value(pairs));
    }
    if (rest > 0) {
      run_rest.blocks(dense.batch * rest, Launcher::kItems, call.group.count,
                      call.with({0, 1, 2, 3})
                          .value(as_int(dense.inputs))
                          .value(as_int(dense.units))
                          .value(int{dense.bias}));
    }
  });
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const DenseBackwardInput& dense) {
  return operation_kernel(0, [=, pairs = in_pairs(make, dense),
                              run = make.kernel("dense_backward_input")](const GroupCall& call) {
    run(dense.batch * dense.inputs, call.group.count,
        call.with({0, 1, 2})
            .value(as_int(dense.batch))
            .value(as_int(dense.inputs))
            .value(as_int(dense.units))
            .value(pairs));
  });
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const DenseBackwardParameters& dense) {
  return operation_kernel(
      0, [=, pairs = in_pairs(make, dense), of_kernel = make.kernel("dense_backward_kernel"),
          of_bias = make.kernel("dense_backward_bias")](const GroupCall& call) {
        of_kernel(dense.inputs * dense.units, call.group.count,
                  call.with({0, 1, 2})
                      .value(as_int(dense.batch))
                      .value(as_int(dense.inputs))
                      .value(as_int(dense.units))
                      .value(pairs));
        if (!dense.bias) return;
        of_bias(dense.units, call.group.count,
                call.with({1, 3}).value(as_int(dense.batch)).value(as_int(dense.units)));
      });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const PadForward& pad) {
  const WindowSizes sizes = padding(pad);
  return over_windows(make.kernel("pad_forward"), sizes, pad.batch, count(sizes.fine));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const PadBackward& pad) {
  const WindowSizes sizes = padding(pad);
  return over_windows(make.kernel("pad_backward"), sizes, pad.batch, count(sizes.coarse));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const UpsampleForward& upsample) {
  const WindowSizes sizes = upsampling(upsample);
  return over_windows(make.kernel("scatter_windows"), sizes, upsample.batch, count(sizes.fine));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const UpsampleBackward& upsample) {
  const WindowSizes sizes = upsampling(upsample);
  return over_windows(make.kernel("gather_windows"), sizes, upsample.batch, count(sizes.coarse));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AveragePoolForward& pool) {
  const PoolGeometry& g = pool.geometry;
  if (!side_by_side(g)) {
    return over_pool(make.kernel("average_pool_forward"), g, g.batch * cells(g.out) * g.channels);
  }
  const WindowSizes sizes = pooling(g);
  return over_windows(make.kernel("gather_windows"), sizes, g.batch, count(sizes.coarse));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AveragePoolBackward& pool) {
  const PoolGeometry& g = pool.geometry;
  if (!side_by_side(g)) {
    return over_pool(make.kernel("average_pool_backward"), g, g.batch * cells(g.in) * g.channels);
  }
  const WindowSizes sizes = pooling(g);
  return over_windows(make.kernel("scatter_windows"), sizes, g.batch, count(sizes.fine));
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const DropoutForward& dropout) {
  as_int(dropout.elements + BLOCK_ITEMS * ITEM_ELEMENTS);
  return operation_kernel(0, [=, run = make.kernel("dropout")](const GroupCall& call) {
    const DrawSizes draw{call.random.seed, call.random.iteration,
                         std::uint32_t{call.random.slot} << 24 | dropout.stream};
    Arguments arguments = call.with({0, 1});
    arguments.operand(call.group.indices)
        .value(as_long(dropout.elements))
        .value(draw)
        .value(static_cast<long>(cpu::dropout_threshold(dropout.rate)))
        .value(static_cast<float>(1.0 / (1.0 - dropout.rate)));
    run((dropout.elements + 3) / 4, call.group.count, arguments);
  });
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const DropoutBackward& dropout) {
  return make_kernel(make, DropoutForward{dropout.elements, dropout.rate, dropout.stream});
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const ActivationForward& activation) {
  return over_elements(make.kernel("activation_forward"), activation.elements, 2,
                       sizes_of(activation.activation));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const ActivationBackward& activation) {
  return over_elements(make.kernel("activation_backward"), activation.elements, 3,
                       sizes_of(activation.activation));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const PowerForward& power) {
  return over_elements(make.kernel("power_forward"), power.elements, 2, power.exponent);
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const PowerBackward& power) {
  return over_elements(make.kernel("power_backward"), power.elements, 3, power.exponent);
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const Accumulate& accumulate) {
  return over_elements(make.kernel("accumulate"), accumulate.elements, 2);
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const ZeroFill& fill) {
  return over_elements(make.kernel("zero_fill"), fill.elements, 1);
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const BinsForward& bins) {
  return over_events(make.kernel("bins_forward"), bins.batch, bins);
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const CountEmpty& images) {
  return over_events(make.kernel("count_empty"), 1, images);
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const MixEvents& mix) {
  as_int(mix.batch * mix.cells);
  return operation_kernel(0, [=, run = make.kernel("mix_events")](const GroupCall& call) {
    run(mix.batch * mix.cells, call.group.count,
        call.with({0, 1, 2, 3}).value(as_int(mix.batch)).value(as_long(mix.cells)));
  });
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const SlopeProbes& probes) {
  return operation_kernel(0, [=, run = make.kernel("slope_probes")](const GroupCall& call) {
    run(probes.batch, call.group.count,
        call.with({0, 1, 2, 3, 4, 5}).value(as_int(probes.batch)).value(as_long(probes.cells)));
  });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const MeanLoss& loss) {
  return operation_kernel(0, [=, run = make.kernel("mean_loss")](const GroupCall& call) {
    run(1, call.group.count,
        call.with({0, 1, 2, 3})
            .value(as_long(loss.elements))
            .value(static_cast<int>(loss.kind))
            .value(loss.weight)
            .value(loss.least_target));
  });
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const ClassCrossentropy& loss) {
  return operation_kernel(0, [=, run = make.kernel("class_crossentropy")](const GroupCall& call) {
    run(1, call.group.count,
        call.with({0, 1, 2, 3})
            .value(as_long(loss.batch))
            .value(as_long(loss.classes))
            .value(loss.weight));
  });
}

namespace {

// Numbers of an event's profile (kernels/heads.cl).
std::int64_t profile_size(const Extent& space) { return 5 * space[2] + 7; }

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Maker& make, const AngleForward& angle) {
  GroupScratch scratch(make.group);
  scratch.add<double>(angle.batch * profile_size(angle.space));
  return operation_kernel(
      scratch.bytes(), [=, layers = make.kernel("angle_layers"),
                        forward = make.kernel("angle_forward")](const GroupCall& call) {
        const Extent& space = angle.space;
        const auto* profiles = reinterpret_cast<const double*>(call.scratch);
        const std::int64_t stride = angle.batch * profile_size(space);
        layers(angle.batch * space[2], call.group.count,
               call.with({0})
                   .operand(profiles, stride)
                   .value(as_int(angle.batch))
                   .value(as_int(space[0]))
                   .value(as_int(space[1]))
                   .value(as_int(space[2])));
        Arguments arguments;
        arguments.operand(profiles, stride);
        forward(angle.batch, call.group.count,
                call.add(arguments, {1}).value(as_int(angle.batch)).value(as_int(space[2])));
      });
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AngleBackward& angle) {
  GroupScratch scratch(make.group);
  scratch.add<double>(angle.batch * profile_size(angle.space));
  return operation_kernel(scratch.bytes(), [=, layers = make.kernel("angle_layers"),
                                            slopes = make.kernel("angle_slopes"),
                                            backward = make.kernel("angle_backward")](
                                               const GroupCall& call) {
    const Extent& space = angle.space;
    const auto* profiles = reinterpret_cast<const double*>(call.scratch);
    const std::int64_t stride = angle.batch * profile_size(space);
    const auto sizes = [&](Arguments& arguments) -> Arguments& {
      return arguments.value(as_int(angle.batch))
          .value(as_int(space[0]))
          .value(as_int(space[1]))
          .value(as_int(space[2]));
    };
    Arguments of_layers = call.with({0});
    layers(angle.batch * space[2], call.group.count, sizes(of_layers.operand(profiles, stride)));
    Arguments of_slopes;
    slopes(angle.batch, call.group.count,
           of_slopes.operand(profiles, stride).value(as_int(angle.batch)).value(as_int(space[2])));
    Arguments of_cells;
    of_cells.operand(profiles, stride);
    backward(angle.batch * cells(space), call.group.count, sizes(call.add(of_cells, {1, 2})));
  });
}

}  // namespace troupe::model::device

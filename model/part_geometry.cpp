#include <algorithm>
#include <array>

#include "model/instruction_writer.h"
#include "model/layer_rules.h"

// Sizes of operations that move parts of images, of pools, and of norms of single samples.

namespace troupe::model {
namespace {

// One sample as x, y, z, channels.
std::array<std::int64_t, 4> axes_of(const Shape& shape) {
  return {shape.space[0], shape.space[1], shape.space[2], shape.channels};
}

// Elements from one cell along the axis to the next.
std::int64_t step_of(const Shape& shape, Axis axis) {
  const auto axes = axes_of(shape);
  std::int64_t step = 1;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < axes.size(); ++i) step *= axes[i];
  return step;
}
std::int64_t along(const Shape& shape, Axis axis) {
  return axes_of(shape)[static_cast<std::size_t>(axis)];
}

template <class Pool>
PoolGeometry windows_of(const Pool& pool, const Shape& in, std::int64_t batch) {
  PoolGeometry g{batch, in.channels, in.space, pool.size, stride_of(pool)};
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const AxisWindows own = pool_windows(pool, axis, g.in[i]);
    g.pad_before[i] = own.before;
    g.out[i] = own.output;
  }
  return g;
}

}  // namespace

PoolGeometry pool_geometry(const Computation& computation, std::int64_t batch) {
  const Shape& in = computation.input_shape;
  if (const auto* average = std::get_if<AveragePool>(&computation.kind)) {
    return windows_of(*average, in, batch);
  }
  if (const auto* max = std::get_if<MaxPool>(&computation.kind)) return windows_of(*max, in, batch);
  return {batch, in.channels, in.space, in.space};
}

GroupNormForward group_norm(const Computation& computation, std::int64_t batch) {
  const Shape& in = computation.input_shape;
  if (const auto* layer = std::get_if<LayerNorm>(&computation.kind)) {
    return {batch * in.cells(), 1, in.channels, 1, layer->epsilon};
  }
  if (const auto* instance = std::get_if<InstanceNorm>(&computation.kind)) {
    return {batch, in.cells(), in.channels, in.channels, instance->epsilon};
  }
  const auto& group = std::get<GroupNorm>(computation.kind);
  return {batch, in.cells(), in.channels, group.groups, group.epsilon};
}

CopyParts concatenated_part(const Computation& computation, std::int64_t batch, int other) {
  const Axis axis = std::get<Concatenate>(computation.kind).axis;
  const auto shape_of = [&](int input) -> const Shape& {
    return input < 0 ? computation.input_shape
                     : computation.other_shapes[static_cast<std::size_t>(input)];
  };
  const Shape &from = shape_of(other), &to = computation.output_shape;
  std::int64_t before = 0;
  for (int input = -1; input < other; ++input) before += along(shape_of(input), axis);
  const std::int64_t step = step_of(to, axis);
  const std::int64_t count = along(from, axis) * step;
  return {.times = batch * from.elements() / count,
          .count = count,
          .from_offset = 0,
          .from_step = count,
          .from_size = batch * from.elements(),
          .to_offset = before * step,
          .to_step = along(to, axis) * step,
          .to_size = batch * to.elements(),
          .begins = other < 0};
}

CopyParts sliced_part(const Computation& computation, std::int64_t batch) {
  const auto& slice = std::get<Slice>(computation.kind);
  const Shape &from = computation.input_shape, &to = computation.output_shape;
  const std::int64_t step = step_of(from, slice.axis);
  return {.times = batch * to.elements() / (slice.count * step),
          .count = slice.count * step,
          .from_offset = slice.begin * step,
          .from_step = along(from, slice.axis) * step,
          .from_size = batch * from.elements(),
          .to_offset = 0,
          .to_step = slice.count * step,
          .to_size = batch * to.elements()};
}

// The axes that an image does not have stay where they are.
PermuteAxes permuted(const Computation& computation, std::int64_t batch) {
  const auto& order = std::get<Permute>(computation.kind).order;
  PermuteAxes permute{.batch = batch, .in = axes_of(computation.input_shape)};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t to = i + 1 == order.size() ? 3 : i;
    permute.order[to] = static_cast<int>(order[i]);
  }
  return permute;
}

}  // namespace troupe::model

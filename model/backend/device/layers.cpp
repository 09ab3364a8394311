// Operations of layers besides those of the 3DGANs: phases, groups, norms of single samples,
// attention, and what joins several inputs.

#include <algorithm>
#include <cmath>

#include "model/backend/device/channel_totals.h"

namespace troupe::model::device {
namespace {

void copy_extent(const Extent& from, int (&to)[3]) {
  for (std::size_t axis = 0; axis < 3; ++axis) to[axis] = as_int(from[axis]);
}

PhaseSizes sizes_of(const Phases& p) {
  PhaseSizes s{};
  s.batch = as_int(p.batch);
  s.channels = as_int(p.channels);
  copy_extent(p.space, s.space);
  copy_extent(p.cells, s.cells);
  copy_extent(p.stride, s.stride);
  copy_extent(p.offset, s.offset);
  s.apart = int{p.apart};
  return s;
}

GroupedSizes sizes_of(const GroupedGeometry& g) {
  GroupedSizes s{};
  s.batch = as_int(g.batch);
  copy_extent(g.in, s.in);
  copy_extent(g.out, s.out);
  copy_extent(g.kernel, s.taps);
  copy_extent(g.pad_before, s.before);
  copy_extent(g.stride, s.stride);
  copy_extent(g.dilation, s.dilation);
  s.in_channels = as_int(g.in_channels);
  s.out_channels = as_int(g.out_channels);
  s.groups = as_int(g.groups);
  s.bias = int{g.bias};
  return s;
}
std::int64_t kernel_size(const GroupedGeometry& g) {
  return cells(g.kernel) * g.in_channels / g.groups * g.out_channels;
}

// A kernel of so many items over the first `operands` operands, followed by `more`.
template <class... More>
std::unique_ptr<Kernel> over_items(const Launcher& kernel, std::int64_t items, std::size_t operands,
                                   const More&... more) {
  as_int(items + Launcher::kItems);
  return operation_kernel(0, [=](const GroupCall& call) {
    Arguments arguments;
    for (std::size_t i = 0; i < operands; ++i) call.add(arguments, {i});
    (arguments.value(more), ...);
    kernel(items, call.group.count, arguments);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Maker& make, const SplitPhases& split) {
  const Phases& p = split.phases;
  return over_items(make.kernel("split_phases"),
                    p.batch * cells(p.cells) * cells(p.stride) * p.channels, 2, sizes_of(p));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const JoinPhases& join) {
  const Phases& p = join.phases;
  return over_items(make.kernel("join_phases"), p.batch * cells(p.space) * p.channels, 2,
                    sizes_of(p));
}

std::unique_ptr<Kernel> make_kernel(const Maker& make,
                                    const GroupedConvolutionForward& convolution) {
  const GroupedGeometry& g = convolution.geometry;
  return over_items(make.kernel("grouped_forward"), g.batch * cells(g.out) * g.out_channels, 4,
                    sizes_of(g));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make,
                                    const GroupedConvolutionBackwardInput& convolution) {
  const GroupedGeometry& g = convolution.geometry;
  return over_items(make.kernel("grouped_backward_input"), g.batch * cells(g.in) * g.in_channels, 3,
                    sizes_of(g));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make,
                                    const GroupedConvolutionBackwardParameters& convolution) {
  const GroupedGeometry& g = convolution.geometry;
  return over_items(make.kernel("grouped_backward_kernel"), kernel_size(g), 3, sizes_of(g));
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const AddBias& add) {
  return over_items(make.kernel("add_bias"), add.rows * add.channels, 2, as_int(add.rows),
                    as_int(add.channels));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const SumRows& sum) {
  GroupScratch scratch(make.group);
  const ChannelTotals totals(make, sum.rows, sum.channels, sum.batch, scratch);
  return operation_kernel(scratch.bytes(), [=](const GroupCall& call) { totals(call, 0, 1); });
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const RepeatRows& repeat) {
  return over_items(make.kernel("repeat_rows"), repeat.batch * repeat.rows * repeat.channels, 2,
                    as_int(repeat.batch), as_int(repeat.rows), as_int(repeat.channels));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const Product& product) {
  return over_items(make.kernel("product"), product.elements, 3, as_int(product.elements));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const PermuteAxes& permute) {
  AxisSizes sizes{};
  std::int64_t items = permute.batch;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    sizes.in[axis] = as_int(permute.in[axis]);
    sizes.order[axis] = permute.order[axis];
    items *= permute.in[axis];
  }
  return over_items(make.kernel("permute_axes"), items, 2, as_int(permute.batch), sizes);
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const CopyParts& parts) {
  as_int(parts.from_size);
  as_int(parts.to_size);
  const PartSizes sizes{.count = as_int(parts.count),
                        .from_offset = as_int(parts.from_offset),
                        .from_step = as_int(parts.from_step),
                        .to_offset = as_int(parts.to_offset),
                        .to_step = as_int(parts.to_step)};
  return over_items(make.kernel("copy_parts"), parts.times * parts.count, 2, as_int(parts.times),
                    sizes);
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const GroupNormForward& norm) {
  const GroupNormSizes sizes{as_int(norm.samples), as_int(norm.rows), as_int(norm.channels),
                             as_int(norm.groups)};
  const std::int64_t of_channels = norm.samples * norm.channels,
                     of_groups = norm.samples * norm.groups;
  as_int(of_channels * norm.rows + Launcher::kItems);
  GroupScratch scratch(make.group);
  const std::size_t sums_at = scratch.add<double>(of_channels),
                    means_at = scratch.add<double>(of_groups);
  return operation_kernel(
      scratch.bytes(),
      [=, sum = make.kernel("group_norm_sums"), mean = make.kernel("group_norm_means"),
       square = make.kernel("group_norm_squares"), deviation = make.kernel("group_norm_deviations"),
       normalise = make.kernel("group_norm_normalise")](const GroupCall& call) {
        const auto* sums = reinterpret_cast<const double*>(call.scratch + sums_at);
        const auto* means = reinterpret_cast<const double*>(call.scratch + means_at);
        const std::int64_t count = call.group.count;
        sum(of_channels, count, call.with({0}).operand(sums, of_channels).value(sizes));
        Arguments of_means;
        of_means.operand(sums, of_channels).operand(means, of_groups);
        mean(of_groups, count, call.add(of_means, {4}).value(sizes));
        square(of_channels, count,
               call.with({0}).operand(sums, of_channels).operand(means, of_groups).value(sizes));
        Arguments of_deviations;
        of_deviations.operand(sums, of_channels);
        deviation(of_groups, count, call.add(of_deviations, {5}).value(sizes).value(norm.epsilon));
        normalise(of_channels * norm.rows, count, call.with({0, 1, 2, 4, 5, 3}).value(sizes));
      });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const GroupNormBackward& norm) {
  const GroupNormSizes sizes{as_int(norm.samples), as_int(norm.rows), as_int(norm.channels),
                             as_int(norm.groups)};
  const std::int64_t of_channels = norm.samples * norm.channels,
                     of_groups = norm.samples * norm.groups;
  as_int(std::max(of_channels * norm.rows, 2 * of_channels) + Launcher::kItems);
  GroupScratch scratch(make.group);
  const std::size_t sums_at = scratch.add<double>(2 * of_channels),
                    means_at = scratch.add<float>(2 * of_groups);
  return operation_kernel(scratch.bytes(), [=, products = make.kernel("group_norm_products"),
                                            totals = make.kernel("group_norm_totals"),
                                            mean = make.kernel("group_norm_mean_products"),
                                            backward = make.kernel("group_norm_backward")](
                                               const GroupCall& call) {
    const auto* sums = reinterpret_cast<const double*>(call.scratch + sums_at);
    const auto* means = reinterpret_cast<const float*>(call.scratch + means_at);
    const std::int64_t count = call.group.count;
    products(of_channels, count,
             call.with({0, 1, 3, 4}).operand(sums, 2 * of_channels).value(sizes));
    if (call.operands[6] != nullptr) {
      Arguments of_totals;
      of_totals.operand(sums, 2 * of_channels);
      totals(norm.channels, count, call.add(of_totals, {6, 7}).value(sizes));
    }
    mean(of_groups, count,
         call.with({2}).operand(sums, 2 * of_channels).operand(means, 2 * of_groups).value(sizes));
    backward(of_channels * norm.rows, count,
             call.add(call.with({0, 1, 2, 3, 4}).operand(means, 2 * of_groups), {5}).value(sizes));
  });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const SoftmaxForward& softmax) {
  return over_items(make.kernel("softmax_forward"), softmax.rows, 2, as_int(softmax.rows),
                    as_int(softmax.channels));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const SoftmaxBackward& softmax) {
  return over_items(make.kernel("softmax_backward"), softmax.rows, 3, as_int(softmax.rows),
                    as_int(softmax.channels));
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const AttentionForward& attention) {
  const AttentionSizes sizes{as_int(attention.batch), as_int(attention.cells),
                             as_int(attention.heads), as_int(attention.width)};
  const std::int64_t queries = attention.batch * attention.heads * attention.cells;
  const std::int64_t pairs = queries * attention.cells;
  as_int(std::max(pairs, queries * attention.width) + Launcher::kItems);
  GroupScratch scratch(make.group);
  scratch.add<double>(pairs);
  const double scale = 1.0 / std::sqrt(static_cast<double>(attention.width));
  return operation_kernel(scratch.bytes(),
                          [=, weigh = make.kernel("attention_weights"),
                           sum = make.kernel("attention_values")](const GroupCall& call) {
                            const auto* weights = reinterpret_cast<const double*>(call.scratch);
                            weigh(queries, call.group.count,
                                  call.with({0}).operand(weights, pairs).value(sizes).value(scale));
                            sum(queries * attention.width, call.group.count,
                                call.add(call.with({0}).operand(weights, pairs), {1}).value(sizes));
                          });
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const AttentionBackward& attention) {
  const AttentionSizes sizes{as_int(attention.batch), as_int(attention.cells),
                             as_int(attention.heads), as_int(attention.width)};
  const std::int64_t queries = attention.batch * attention.heads * attention.cells;
  const std::int64_t pairs = queries * attention.cells;
  as_int(std::max(pairs, queries * attention.width) + Launcher::kItems);
  GroupScratch scratch(make.group);
  const std::size_t weights_at = scratch.add<double>(pairs), slopes_at = scratch.add<double>(pairs);
  const double scale = 1.0 / std::sqrt(static_cast<double>(attention.width));
  return operation_kernel(scratch.bytes(), [=, weigh = make.kernel("attention_weights"),
                                            slope = make.kernel("attention_slopes"),
                                            backward = make.kernel("attention_backward")](
                                               const GroupCall& call) {
    const auto* weights = reinterpret_cast<const double*>(call.scratch + weights_at);
    const auto* slopes = reinterpret_cast<const double*>(call.scratch + slopes_at);
    const std::int64_t count = call.group.count;
    weigh(queries, count, call.with({0}).operand(weights, pairs).value(sizes).value(scale));
    slope(queries, count,
          call.with({0, 1}).operand(weights, pairs).operand(slopes, pairs).value(sizes));
    Arguments arguments = call.with({0, 1});
    arguments.operand(weights, pairs).operand(slopes, pairs);
    backward(queries * attention.width, count, call.add(arguments, {2}).value(sizes).value(scale));
  });
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const EmbeddingForward& embedding) {
  return over_items(make.kernel("embedding_forward"), embedding.batch * embedding.units, 3,
                    as_int(embedding.batch), as_int(embedding.classes), as_int(embedding.units));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const EmbeddingBackward& embedding) {
  return over_items(make.kernel("embedding_backward"), embedding.classes * embedding.units, 3,
                    as_int(embedding.batch), as_int(embedding.classes), as_int(embedding.units));
}

PoolSizes pool_sizes(const PoolGeometry& g) {
  PoolSizes s{};
  copy_extent(g.in, s.in);
  copy_extent(g.size, s.size);
  copy_extent(g.stride, s.stride);
  copy_extent(g.pad_before, s.before);
  copy_extent(g.out, s.out);
  s.channels = as_int(g.channels);
  return s;
}

std::unique_ptr<Kernel> make_kernel(const Maker& make, const MaxPoolForward& pool) {
  const PoolGeometry& g = pool.geometry;
  return over_items(make.kernel("max_pool_forward"), g.batch * cells(g.out) * g.channels, 2,
                    pool_sizes(g), as_int(g.batch));
}
std::unique_ptr<Kernel> make_kernel(const Maker& make, const MaxPoolBackward& pool) {
  const PoolGeometry& g = pool.geometry;
  const std::int64_t elements = g.batch * cells(g.in) * g.channels,
                     windows = g.batch * cells(g.out) * g.channels;
  as_int(elements + BLOCK_ITEMS * ITEM_ELEMENTS);
  as_int(windows + BLOCK_ITEMS * ITEM_ELEMENTS);
  const PoolSizes sizes = pool_sizes(g);
  const int batch = as_int(g.batch);
  if (side_by_side(g)) {
    return operation_kernel(0, [=, fill = make.kernel("zero_fill"),
                                run = make.kernel("max_pool_backward")](const GroupCall& call) {
      fill.elements(elements, call.group.count, call.with({2}).value(static_cast<long>(elements)));
      run(windows, call.group.count, call.with({0, 1, 2}).value(sizes).value(batch));
    });
  }
  GroupScratch scratch(make.group);
  const std::size_t places_at = scratch.add<int>(windows);
  return operation_kernel(
      scratch.bytes(), [=, find = make.kernel("max_pool_places"),
                        sum = make.kernel("max_pool_sums")](const GroupCall& call) {
        const auto* places = reinterpret_cast<const int*>(call.scratch + places_at);
        find(windows, call.group.count,
             call.with({0}).operand(places, windows).value(sizes).value(batch));
        Arguments arguments;
        arguments.operand(places, windows);
        sum(elements, call.group.count, call.add(arguments, {1, 2}).value(sizes).value(batch));
      });
}

}  // namespace troupe::model::device

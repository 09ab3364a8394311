#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/layer_rules.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kBinCount = 8;
// Attention keeps a number for each pair of cells.
constexpr std::int64_t kMostAttentionCells = 4096;
constexpr std::int64_t kMostPhaseCells = std::int64_t{1} << 32;

std::string cells_text(std::int64_t cells) {
  return fmt::format("{} cell{}", cells, cells == 1 ? "" : "s");
}

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

// The rules of a layer share its input, its problems, and its output.
class ShapeRules {
 public:
  ShapeRules(const LayerSource& input, std::span<const LayerSource> others)
      : input_(input.shape), source_(input.name), others_(others) {}

  const Shape& input() const { return input_; }
  const std::string& source() const { return source_; }
  std::span<const LayerSource> others() const { return others_; }

  void problem(std::string text) { result_.problems.push_back(std::move(text)); }

  bool reads_image() {
    if (input_.spatial_rank != 0) return true;
    problem(fmt::format("reads an image, but {} gives {} features; put a reshape before it",
                        source_, input_.channels));
    return false;
  }

  // A layer of an image of two axes does nothing along z.
  void only_on_real_axes(const std::string& what, const Extent& values, std::int64_t nothing) {
    for (int axis = input_.spatial_rank; axis < 3; ++axis) {
      if (values[at(axis)] == nothing) continue;
      problem(
          fmt::format("{} is {} along {}, but {} gives an image without this axis ({}); it must "
                      "be {}",
                      what, values[at(axis)], kAxisNames[axis], source_, input_.text(), nothing));
    }
  }

  void check_weights(std::initializer_list<std::int64_t> shape) {
    if (product_within(shape, kMostWeights)) return;
    problem(fmt::format("its kernel would have more than {} weights; {} gives {}", kMostWeights,
                        source_, input_.text()));
  }

  void too_large(const std::string& what) {
    problem(
        fmt::format("{} makes more than {} elements of {}", what, kMostElements, input_.text()));
  }

  void divides(std::int64_t parts, const std::string& what) {
    if (input_.channels % parts == 0) return;
    problem(fmt::format("{} gives {}, and {} channels cannot be cut into {} {}", source_,
                        input_.text(), input_.channels, parts, what));
  }

  void finish(const Shape& output) {
    if (!result_.problems.empty()) return;
    const Extent& s = output.space;
    if (!product_within({s[0], s[1], s[2], output.channels}, kMostElements)) {
      return too_large("its output of " + output.text());
    }
    result_.shape = output;
  }

  LayerOutput result() { return std::move(result_); }

 private:
  const Shape& input_;
  const std::string& source_;
  std::span<const LayerSource> others_;
  LayerOutput result_;
};

void find_shape(ShapeRules& rules, const Dense& dense) {
  rules.check_weights({rules.input().elements(), dense.units});
  rules.finish(Shape::features(dense.units));
}

// A convolution with stride or dilation alone is computed from the phases of its image, which may
// be more than its cells (convolution_plan.h). `output`: that of the convolution, which is what a
// transposed one reads.
template <class Kind>
void check_phases(ShapeRules& rules, const Kind& convolution, const Shape& output) {
  if (is_cell_by_cell(convolution) || output.cells() == 0) return;
  std::int64_t cells = std::max(rules.input().channels, convolution.filters);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t steps = convolution.stride[axis] * convolution.dilation[axis];
    const std::int64_t of_phase = output.space[axis] + convolution.kernel[axis];
    if (!product_within({cells, steps, of_phase}, kMostPhaseCells)) {
      return rules.problem(
          fmt::format("its stride or dilation takes more than {} numbers of {} apart",
                      kMostPhaseCells, rules.input().text()));
    }
    cells *= steps == 1 ? output.space[axis] : steps * of_phase;
  }
}

void find_shape(ShapeRules& rules, const Convolution& convolution) {
  if (!rules.reads_image()) return;
  const Shape& input = rules.input();
  const Extent& k = convolution.kernel;
  rules.only_on_real_axes("kernel", k, 1);
  rules.only_on_real_axes("stride", convolution.stride, 1);
  rules.only_on_real_axes("dilation", convolution.dilation, 1);
  rules.divides(convolution.groups, "groups");
  rules.check_weights({k[0], k[1], k[2],
                       std::max<std::int64_t>(input.channels / convolution.groups, 1),
                       convolution.filters});
  Shape output = input;
  output.channels = convolution.filters;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t cells = input.space[at(axis)];
    const std::int64_t reach = convolution.dilation[at(axis)];
    if (!product_within({k[at(axis)], reach}, kMostElements)) {
      return rules.too_large(fmt::format("kernel {} along {}", k[at(axis)], kAxisNames[axis]));
    }
    output.space[at(axis)] = convolution_windows(convolution, axis, cells).output;
    if (axis < input.spatial_rank && output.space[at(axis)] == 0) {
      const std::int64_t window = window_cells(k[at(axis)], reach);
      const std::string dilated = reach == 1 ? "" : fmt::format(" with dilation {}", reach);
      rules.problem(fmt::format(
          "kernel {} along {}{} does not fit into {} of {}; pad by {} or use a smaller kernel",
          k[at(axis)], kAxisNames[axis], dilated, cells_text(cells), input.text(),
          (window - cells + 1) / 2));
    }
  }
  check_phases(rules, convolution, output);
  rules.finish(output);
}

void only_on_real_axes(ShapeRules& rules, const std::string& name, const Margins& amount) {
  rules.only_on_real_axes(name, amount.before, 0);
  if (amount.behind != amount.before) rules.only_on_real_axes(name + " behind", amount.behind, 0);
}

void find_shape(ShapeRules& rules, const TransposedConvolution& convolution) {
  if (!rules.reads_image()) return;
  const Shape& input = rules.input();
  const Extent& k = convolution.kernel;
  rules.only_on_real_axes("kernel", k, 1);
  rules.only_on_real_axes("stride", convolution.stride, 1);
  rules.only_on_real_axes("dilation", convolution.dilation, 1);
  if (convolution.pads) only_on_real_axes(rules, "pads", *convolution.pads);
  rules.divides(convolution.groups, "groups");
  rules.check_weights({k[0], k[1], k[2], input.channels,
                       std::max<std::int64_t>(convolution.filters / convolution.groups, 1)});
  Shape output = input;
  output.channels = convolution.filters;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t cells = input.space[at(axis)];
    if (!product_within({cells, convolution.stride[at(axis)]}, kMostElements)) {
      return rules.too_large(
          fmt::format("stride {} along {}", convolution.stride[at(axis)], kAxisNames[axis]));
    }
    if (!product_within({k[at(axis)], convolution.dilation[at(axis)]}, kMostElements)) {
      return rules.too_large(fmt::format("kernel {} along {}", k[at(axis)], kAxisNames[axis]));
    }
    const AxisWindows windows = transposed_windows(convolution, axis, cells);
    output.space[at(axis)] = windows.output;
    if (axis < input.spatial_rank && output.space[at(axis)] < 1) {
      const std::string pads = windows.before == windows.after
                                   ? fmt::format("{}", windows.before)
                                   : fmt::format("[{}, {}]", windows.before, windows.after);
      rules.problem(fmt::format("pads of {} along {} leave nothing of what {} of {} become", pads,
                                kAxisNames[axis], cells_text(cells), input.text()));
    }
  }
  check_phases(rules, convolution, input);
  rules.finish(output);
}

void find_shape(ShapeRules& rules, const Pad& pad) {
  if (!rules.reads_image()) return;
  only_on_real_axes(rules, "amount", pad.amount);
  Shape output = rules.input();
  output.space = padded(output.space, pad.amount);
  rules.finish(output);
}

void find_shape(ShapeRules& rules, const Crop& crop) {
  if (!rules.reads_image()) return;
  only_on_real_axes(rules, "amount", crop.amount);
  const Shape& input = rules.input();
  Shape output = input;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t before = crop.amount.before[at(axis)], behind = crop.amount.behind[at(axis)];
    const std::int64_t cells = input.space[at(axis)];
    output.space[at(axis)] = cells - before - behind;
    if (axis >= input.spatial_rank || output.space[at(axis)] > 0) continue;
    rules.problem(
        fmt::format("{} taken away before and {} behind along {} leave nothing of {} of {}", before,
                    behind, kAxisNames[axis], cells_text(cells), input.text()));
  }
  rules.finish(output);
}

void find_shape(ShapeRules& rules, const Upsample& upsample) {
  if (!rules.reads_image()) return;
  rules.only_on_real_axes("factor", upsample.factor, 1);
  Shape output = rules.input();
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t factor = upsample.factor[at(axis)];
    if (!product_within({output.space[at(axis)], factor}, kMostElements)) {
      return rules.too_large(fmt::format("factor {} along {}", factor, kAxisNames[axis]));
    }
    output.space[at(axis)] *= factor;
  }
  rules.finish(output);
}

template <class Pool>
void find_pooled_shape(ShapeRules& rules, const Pool& pool) {
  if (!rules.reads_image()) return;
  rules.only_on_real_axes("size", pool.size, 1);
  if (pool.stride) rules.only_on_real_axes("stride", *pool.stride, 1);
  const Shape& input = rules.input();
  Shape output = input;
  for (int axis = 0; axis < input.spatial_rank; ++axis) {
    const std::int64_t cells = input.space[at(axis)];
    output.space[at(axis)] = pool_windows(pool, axis, cells).output;
    if (output.space[at(axis)] == 0) {
      rules.problem(
          fmt::format("a window of {} along {} does not fit into {} of {}; make it "
                      "smaller, or give it padding: same",
                      pool.size[at(axis)], kAxisNames[axis], cells_text(cells), input.text()));
    }
  }
  rules.finish(output);
}
void find_shape(ShapeRules& rules, const AveragePool& pool) { find_pooled_shape(rules, pool); }
void find_shape(ShapeRules& rules, const MaxPool& pool) { find_pooled_shape(rules, pool); }
void find_shape(ShapeRules& rules, const GlobalAveragePool&) {
  if (rules.reads_image()) rules.finish(Shape::features(rules.input().channels));
}
void find_shape(ShapeRules& rules, const GlobalMaxPool&) {
  if (rules.reads_image()) rules.finish(Shape::features(rules.input().channels));
}

void find_shape(ShapeRules& rules, const InstanceNorm&) {
  if (rules.reads_image()) rules.finish(rules.input());
}
void find_shape(ShapeRules& rules, const GroupNorm& norm) {
  rules.divides(norm.groups, "groups");
  rules.finish(rules.input());
}

void find_shape(ShapeRules& rules, const Reshape& reshape) {
  const Shape& input = rules.input();
  if (reshape.to.elements() != input.elements()) {
    rules.problem(fmt::format(
        "{} has {} elements but {} gives {} ({}); a reshape keeps their "
        "number",
        reshape.to.text(), reshape.to.elements(), rules.source(), input.elements(), input.text()));
  }
  rules.finish(reshape.to);
}

// The cells along an axis of the shape, or its channels.
std::int64_t& along(Shape& shape, Axis axis) {
  return axis == Axis::kChannels ? shape.channels : shape.space[static_cast<std::size_t>(axis)];
}
const char* axis_name(Axis axis) {
  constexpr const char* kNames[] = {"x", "y", "z", "channels"};
  return kNames[static_cast<std::size_t>(axis)];
}
bool has_axis(ShapeRules& rules, Axis axis) {
  if (axis == Axis::kChannels || static_cast<int>(axis) < rules.input().spatial_rank) return true;
  rules.problem(fmt::format("means the axis {}, but {} gives {}", axis_name(axis), rules.source(),
                            rules.input().text()));
  return false;
}

void find_shape(ShapeRules& rules, const Permute& permute) {
  Shape input = rules.input(), output = input;
  std::vector<Axis> all;
  for (int axis = 0; axis < input.spatial_rank; ++axis) all.push_back(static_cast<Axis>(axis));
  all.push_back(Axis::kChannels);
  if (!std::is_permutation(all.begin(), all.end(), permute.order.begin(), permute.order.end())) {
    return rules.problem(fmt::format("its order must name each of the {} axes of {} ({}) once",
                                     all.size(), rules.source(), input.text()));
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    along(output, all[i]) = along(input, permute.order[i]);
  rules.finish(output);
}

void find_shape(ShapeRules& rules, const Slice& slice) {
  if (!has_axis(rules, slice.axis)) return;
  Shape output = rules.input();
  std::int64_t& cells = along(output, slice.axis);
  if (slice.begin > cells - slice.count) {
    rules.problem(fmt::format("{} from {} on are more than the {} along {} of {}, which {} gives",
                              slice.count, slice.begin, cells, axis_name(slice.axis),
                              rules.input().text(), rules.source()));
  }
  cells = slice.count;
  rules.finish(output);
}

// Add and Multiply: the same shape, or features for the channels.
void find_combined_shape(ShapeRules& rules) {
  const Shape& input = rules.input();
  for (const LayerSource& other : rules.others()) {
    if (other.shape == input || other.shape == Shape::features(input.channels)) continue;
    rules.problem(fmt::format(
        "{}; they must be equal, or {} {} features",
        told_apart(rules.source() + " gives", input, other.name + " gives", other.shape),
        other.name, input.channels));
  }
  rules.finish(input);
}
void find_shape(ShapeRules& rules, const Add&) { find_combined_shape(rules); }
void find_shape(ShapeRules& rules, const Multiply&) { find_combined_shape(rules); }

void find_shape(ShapeRules& rules, const Concatenate& concatenate) {
  if (!has_axis(rules, concatenate.axis)) return;
  Shape output = rules.input();
  std::int64_t& cells = along(output, concatenate.axis);
  for (const LayerSource& other : rules.others()) {
    Shape shape = other.shape, same = rules.input();
    const std::int64_t more = along(shape, concatenate.axis);
    along(same, concatenate.axis) = more;
    if (!(shape == same)) {
      // Channels of images may differ then, so that only cells are told.
      const bool of_channels =
          concatenate.axis == Axis::kChannels && shape.spatial_rank == same.spatial_rank;
      rules.problem(
          fmt::format("{}; they must be equal but along {}",
                      told_apart(rules.source() + " gives", of_channels ? same : rules.input(),
                                 other.name + " gives", other.shape),
                      axis_name(concatenate.axis)));
    }
    cells += more;
  }
  rules.finish(output);
}

void find_shape(ShapeRules& rules, const Embedding& embedding) {
  if (!(rules.input() == Shape::features(1))) {
    rules.problem(fmt::format("reads the number of a class, one feature, but {} gives {}",
                              rules.source(), rules.input().text()));
  }
  rules.check_weights({embedding.classes, embedding.units});
  rules.finish(Shape::features(embedding.units));
}

void find_shape(ShapeRules& rules, const Attention& attention) {
  if (!rules.reads_image()) return;
  if (!product_within({3, attention.heads}, kMostElements)) {
    return rules.too_large(fmt::format("{} heads", attention.heads));
  }
  rules.divides(3 * attention.heads, "queries, keys and values of its heads");
  Shape output = rules.input();
  if (output.cells() > kMostAttentionCells) {
    rules.problem(fmt::format("{} gives {}, which has {} cells; it looks at {} or fewer",
                              rules.source(), output.text(), output.cells(), kMostAttentionCells));
  }
  output.channels /= 3;
  rules.finish(output);
}

void find_shape(ShapeRules& rules, const Flatten&) {
  rules.finish(Shape::features(rules.input().elements()));
}
void find_shape(ShapeRules& rules, const Sum&) { rules.finish(Shape::features(1)); }
void find_shape(ShapeRules& rules, const Bins&) { rules.finish(Shape::features(kBinCount)); }

void find_shape(ShapeRules& rules, const Angle&) {
  const Shape& input = rules.input();
  if (input.spatial_rank != 3 || input.channels != 1) {
    rules.problem(fmt::format("reads an image of three axes and one channel, but {} gives {}",
                              rules.source(), input.text()));
  }
  rules.finish(Shape::features(1));
}

template <class Kind>
void find_shape(ShapeRules& rules, const Kind&) {  // number by number
  rules.finish(rules.input());
}

}  // namespace

LayerOutput layer_output(const LayerKind& kind, const LayerSource& input,
                         std::span<const LayerSource> others) {
  ShapeRules rules(input, others);
  std::visit([&](const auto& each) { find_shape(rules, each); }, kind);
  return rules.result();
}

}  // namespace troupe::model

#include "model/layer_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace troupe::model {
namespace {

constexpr std::int64_t kMostSteps = 4096;  // of a convolution from one tap or window to the next

class OptionRules {
 public:
  void count(const std::string& what, std::int64_t value, std::int64_t least) {
    if (value < least) {
      problems.push_back(fmt::format("{} is {}, it must be {} or more", what, value, least));
    } else if (value > kMostElements) {
      problems.push_back(
          fmt::format("{} is {}, it must be {} or less", what, value, kMostElements));
    }
  }
  void counts(const std::string& what, const Extent& values, std::int64_t least) {
    for (int axis = 0; axis < 3; ++axis) {
      count(fmt::format("{} along {}", what, kAxisNames[axis]), values[axis], least);
    }
  }
  void positive(const std::string& what, double value) {
    require(value > 0.0 && std::isfinite(value), what, value, "more than 0");
  }
  void require(bool holds, const std::string& what, double value, const std::string& rule) {
    if (!holds) problems.push_back(fmt::format("{} is {}, it must be {}", what, value, rule));
  }
  void names(const std::string& what, const std::vector<std::string>& names) {
    const bool empty =
        std::any_of(names.begin(), names.end(), [](const auto& n) { return n.empty(); });
    if (names.empty() || empty) problems.push_back(what + " names no layer");
  }

  std::vector<std::string> problems;
};

void check(OptionRules& rules, const Dense& dense) { rules.count("units", dense.units, 1); }
// Those of a convolution and of a transposed one.
template <class Kind>
void check_convolution(OptionRules& rules, const Kind& convolution) {
  rules.count("filters", convolution.filters, 1);
  rules.counts("kernel", convolution.kernel, 1);
  rules.counts("stride", convolution.stride, 1);
  rules.counts("dilation", convolution.dilation, 1);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t steps = std::max(convolution.stride[axis], convolution.dilation[axis]);
    if (steps <= kMostSteps) continue;
    rules.problems.push_back(fmt::format("a stride or dilation of {} along {}, {} is possible",
                                         steps, kAxisNames[axis], kMostSteps));
  }
  rules.count("groups", convolution.groups, 1);
  if (convolution.groups > 1 && convolution.filters % convolution.groups != 0) {
    rules.problems.push_back(fmt::format("{} filters cannot be cut into {} groups",
                                         convolution.filters, convolution.groups));
  }
}
void check(OptionRules& rules, const Convolution& convolution) {
  check_convolution(rules, convolution);
}
void check_margins(OptionRules& rules, const std::string& name, const Margins& amount) {
  rules.counts(name, amount.before, 0);
  if (amount.behind != amount.before) rules.counts(name + " behind", amount.behind, 0);
}
void check(OptionRules& rules, const TransposedConvolution& convolution) {
  check_convolution(rules, convolution);
  if (convolution.pads) check_margins(rules, "pads", *convolution.pads);
  const Extent more = convolution.output_padding.value_or(Extent{0, 0, 0});
  rules.counts("output_padding", more, 0);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (more[axis] == 0 || more[axis] < convolution.stride[axis]) continue;
    rules.problems.push_back(
        fmt::format("output_padding is {} along {}, it must be less than the stride, {}",
                    more[axis], kAxisNames[axis], convolution.stride[axis]));
  }
  if (convolution.padding != Padding::kSame) return;
  if (!convolution.pads && !convolution.output_padding) return;
  rules.problems.push_back(
      "has padding: same, which says how many cells there are, and pads or output_padding; leave "
      "one of them out");
}
void check(OptionRules& rules, const Pad& pad) { check_margins(rules, "amount", pad.amount); }
void check(OptionRules& rules, const Crop& crop) { check_margins(rules, "amount", crop.amount); }
void check(OptionRules& rules, const Upsample& upsample) {
  rules.counts("factor", upsample.factor, 1);
}
template <class Pool>
void check_pool(OptionRules& rules, const Pool& pool) {
  rules.counts("size", pool.size, 1);
  if (pool.stride) rules.counts("stride", *pool.stride, 1);
}
void check(OptionRules& rules, const AveragePool& pool) { check_pool(rules, pool); }
void check(OptionRules& rules, const MaxPool& pool) { check_pool(rules, pool); }
void check(OptionRules& rules, const BatchNorm& norm) {
  rules.require(norm.momentum >= 0.0 && norm.momentum <= 1.0, "momentum", norm.momentum,
                "in [0, 1]");
  rules.positive("epsilon", norm.epsilon);
}
void check(OptionRules& rules, const LayerNorm& norm) { rules.positive("epsilon", norm.epsilon); }
void check(OptionRules& rules, const InstanceNorm& norm) {
  rules.positive("epsilon", norm.epsilon);
}
void check(OptionRules& rules, const GroupNorm& norm) {
  rules.count("groups", norm.groups, 1);
  rules.positive("epsilon", norm.epsilon);
}
void check(OptionRules& rules, const Dropout& dropout) {
  rules.require(dropout.rate >= 0.0 && dropout.rate < 1.0, "rate", dropout.rate, "in [0, 1)");
}
// The backward pass sees only the result. With a negative slope it could not tell on which side of
// 0 the input was.
void check(OptionRules& rules, const Activation& activation) {
  if (activation.kind != ActivationKind::kLeakyRelu) return;
  rules.require(activation.slope >= 0.0 && std::isfinite(activation.slope), "slope",
                activation.slope, "0 or more");
}
void check(OptionRules& rules, const Power& power) { rules.positive("exponent", power.exponent); }
void check(OptionRules& rules, const Reshape& reshape) {
  if (std::string problem = shape_problem(reshape.to); !problem.empty()) {
    rules.problems.push_back("to: " + problem);
  }
}
void check(OptionRules& rules, const Slice& slice) {
  rules.count("begin", slice.begin, 0);
  rules.count("count", slice.count, 1);
}
void check(OptionRules& rules, const Add& add) { rules.names("with", add.with); }
void check(OptionRules& rules, const Concatenate& concatenate) {
  rules.names("with", concatenate.with);
}
void check(OptionRules& rules, const Multiply& multiply) { rules.names("with", {multiply.with}); }
void check(OptionRules& rules, const Embedding& embedding) {
  rules.count("classes", embedding.classes, 1);
  rules.count("units", embedding.units, 1);
}
void check(OptionRules& rules, const Attention& attention) {
  rules.count("heads", attention.heads, 1);
}
template <class Kind>
void check(OptionRules&, const Kind&) {}  // without numbers of its own

AxisWindows windows_over(std::int64_t cells, std::int64_t window, std::int64_t stride,
                         Padding padding) {
  if (padding == Padding::kValid) {
    return {0, 0, cells < window ? 0 : (cells - window) / stride + 1};
  }
  const std::int64_t count = (cells + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>((count - 1) * stride + window - cells, 0);
  return {total / 2, total - total / 2, count};
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string whole_text(const Shape& shape) {
  return shape.spatial_rank == 0 ? counted(shape.channels, "feature") : "the shape " + shape.text();
}

}  // namespace

std::string cells_text(const Shape& image) {
  if (image.spatial_rank == 0) return "no cells";
  const auto rank = static_cast<std::size_t>(image.spatial_rank);
  return fmt::format("{} cells", fmt::join(std::span(image.space).first(rank), "x"));
}

std::string told_apart(std::string_view one, const Shape& of_one, std::string_view other,
                       const Shape& of_other) {
  const auto told = [&](const std::string& a, const std::string& b) {
    return fmt::format("{} {}, but {} {}", one, a, other, b);
  };
  const bool are_images = of_one.spatial_rank == of_other.spatial_rank && of_one.spatial_rank > 0;
  if (are_images && of_one.space == of_other.space) {
    return told(counted(of_one.channels, "channel"), counted(of_other.channels, "channel"));
  }
  if (!are_images || of_one.channels != of_other.channels) {
    return told(whole_text(of_one), whole_text(of_other));
  }
  std::vector<std::string> axes;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (of_one.space[axis] == of_other.space[axis]) continue;
    axes.push_back(fmt::format("{} and {} along {}", of_one.space[axis], of_other.space[axis],
                               kAxisNames[axis]));
  }
  return fmt::format("{}: {}", told(cells_text(of_one), cells_text(of_other)),
                     fmt::join(axes, ", "));
}

bool product_within(std::initializer_list<std::int64_t> factors, std::int64_t most) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor > most / product) return false;
    product *= factor;
  }
  return true;
}

std::string shape_problem(const Shape& shape) {
  const int rank = shape.spatial_rank;
  if (rank < 0 || rank > 3) return fmt::format("an image has 1 to 3 axes, not {}", rank);
  for (int axis = 0; axis < 3; ++axis) {
    if (shape.space[axis] < 1) {
      return fmt::format("{} cells along {}, there must be 1 or more", shape.space[axis],
                         kAxisNames[axis]);
    }
    if (axis >= rank && shape.space[axis] != 1) {
      return fmt::format("{} cells along {}, an axis it does not have", shape.space[axis],
                         kAxisNames[axis]);
    }
  }
  if (shape.channels < 1) {
    return fmt::format("{} {}, there must be 1 or more", shape.channels,
                       rank == 0 ? "features" : "channels");
  }
  const Extent& s = shape.space;
  if (!product_within({s[0], s[1], s[2], shape.channels}, kMostElements)) {
    return fmt::format("{} has more than {} elements", shape.text(), kMostElements);
  }
  return {};
}

std::vector<std::string> option_problems(const LayerKind& kind) {
  OptionRules rules;
  std::visit([&](const auto& each) { check(rules, each); }, kind);
  return std::move(rules.problems);
}

std::int64_t window_cells(std::int64_t kernel, std::int64_t dilation) {
  return (kernel - 1) * dilation + 1;
}

namespace {

template <class Kind>
bool has_no_phases(const Kind& convolution) {
  if (convolution.groups > 1) return true;
  bool strided = false, dilated = false;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    strided |= convolution.stride[axis] > 1;
    dilated |= convolution.dilation[axis] > 1 && convolution.kernel[axis] > 1;
  }
  return strided && dilated;
}

}  // namespace

bool is_cell_by_cell(const Convolution& convolution) { return has_no_phases(convolution); }
bool is_cell_by_cell(const TransposedConvolution& convolution) {
  return has_no_phases(convolution);
}

AxisWindows convolution_windows(const Convolution& convolution, int axis, std::int64_t cells) {
  const auto i = static_cast<std::size_t>(axis);
  return windows_over(cells, window_cells(convolution.kernel[i], convolution.dilation[i]),
                      convolution.stride[i], convolution.padding);
}

AxisWindows pool_windows(const AveragePool& pool, int axis, std::int64_t cells) {
  const auto i = static_cast<std::size_t>(axis);
  return windows_over(cells, pool.size[i], stride_of(pool)[i], pool.padding);
}
AxisWindows pool_windows(const MaxPool& pool, int axis, std::int64_t cells) {
  return pool_windows(AveragePool{pool.size, pool.stride, pool.padding}, axis, cells);
}

AxisWindows transposed_windows(const TransposedConvolution& convolution, int axis,
                               std::int64_t cells) {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t stride = convolution.stride[i];
  const std::int64_t window = window_cells(convolution.kernel[i], convolution.dilation[i]);
  if (convolution.pads || convolution.output_padding) {
    const Margins pads = convolution.pads.value_or(Margins{});
    const std::int64_t before = pads.before[i], behind = pads.behind[i];
    const std::int64_t more = convolution.output_padding ? (*convolution.output_padding)[i] : 0;
    return {before, behind, (cells - 1) * stride + window + more - before - behind};
  }
  const std::int64_t beyond = std::max<std::int64_t>(window - stride, 0);
  if (convolution.padding == Padding::kValid) return {0, 0, cells * stride + beyond};
  return {beyond / 2, beyond - beyond / 2, cells * stride};
}

}  // namespace troupe::model

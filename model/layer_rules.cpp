#include "model/layer_rules.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

namespace troupe::model {
namespace {

constexpr char kAxes[] = "xyz";
constexpr std::int64_t kBinCount = 8;

// True if the product of the positive factors is at most `most`; computed without overflow.
bool product_within(std::initializer_list<std::int64_t> factors, std::int64_t most) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor > most / product) return false;
    product *= factor;
  }
  return true;
}

class OptionRules {
 public:
  std::vector<std::string> problems;

  void operator()(const Dense& dense) { count("units", dense.units, 1); }
  void operator()(const Convolution& convolution) {
    count("filters", convolution.filters, 1);
    counts("kernel", convolution.kernel, 1);
  }
  void operator()(const Pad& pad) { counts("amount", pad.amount, 0); }
  void operator()(const Upsample& upsample) { counts("factor", upsample.factor, 1); }
  void operator()(const AveragePool& pool) { counts("size", pool.size, 1); }
  void operator()(const BatchNorm& norm) {
    require(norm.momentum >= 0.0 && norm.momentum <= 1.0, "momentum", norm.momentum, "in [0, 1]");
    positive("epsilon", norm.epsilon);
  }
  void operator()(const Dropout& dropout) {
    require(dropout.rate >= 0.0 && dropout.rate < 1.0, "rate", dropout.rate, "in [0, 1)");
  }
  // The backward pass sees only the result. With a negative slope it could not tell on which side
  // of 0 the input was.
  void operator()(const Activation& activation) {
    if (activation.kind != ActivationKind::kLeakyRelu) return;
    require(activation.slope >= 0.0 && std::isfinite(activation.slope), "slope", activation.slope,
            "0 or more");
  }
  void operator()(const Power& power) { positive("exponent", power.exponent); }
  void operator()(const Reshape& reshape) {
    if (std::string problem = shape_problem(reshape.to); !problem.empty()) {
      problems.push_back("to: " + problem);
    }
  }
  void operator()(const Flatten&) {}
  void operator()(const Sum&) {}
  void operator()(const Angle&) {}
  void operator()(const Bins&) {}

 private:
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
      count(fmt::format("{} along {}", what, kAxes[axis]), values[axis], least);
    }
  }
  void positive(const std::string& what, double value) {
    require(value > 0.0 && std::isfinite(value), what, value, "more than 0");
  }
  void require(bool holds, const std::string& what, double value, const std::string& rule) {
    if (!holds) problems.push_back(fmt::format("{} is {}, it must be {}", what, value, rule));
  }
};

class ShapeRules {
 public:
  ShapeRules(const Shape& input, const std::string& source) : input_(input), source_(source) {}
  LayerOutput result;

  void operator()(const Dense& dense) {
    check_weights(product_within({input_.elements(), dense.units}, kMostWeights));
    finish(Shape::features(dense.units));
  }

  void operator()(const Convolution& convolution) {
    if (!reads_image()) return;
    const Extent& k = convolution.kernel;
    only_on_real_axes("kernel", k, 1);
    check_weights(
        product_within({k[0], k[1], k[2], input_.channels, convolution.filters}, kMostWeights));
    Shape output = input_;
    output.channels = convolution.filters;
    for (int axis = 0; axis < 3; ++axis) {
      const std::int64_t cells = input_.space[axis];
      if (convolution.padding == Padding::kSame) continue;
      output.space[axis] = cells - k[axis] + 1;
      if (axis < input_.spatial_rank && k[axis] > cells) {
        problem(fmt::format(
            "kernel {} along {} does not fit into {} cell{}; pad by {} or use a smaller kernel",
            k[axis], kAxes[axis], cells, cells == 1 ? "" : "s", (k[axis] - cells + 1) / 2));
      }
    }
    finish(output);
  }

  void operator()(const Pad& pad) {
    if (!reads_image()) return;
    only_on_real_axes("amount", pad.amount, 0);
    Shape output = input_;
    for (int axis = 0; axis < 3; ++axis) output.space[axis] += 2 * pad.amount[axis];
    finish(output);
  }

  void operator()(const Upsample& upsample) {
    if (!reads_image()) return;
    only_on_real_axes("factor", upsample.factor, 1);
    Shape output = input_;
    for (int axis = 0; axis < 3; ++axis) {
      if (!product_within({output.space[axis], upsample.factor[axis]}, kMostElements)) {
        return too_large(fmt::format("factor {} along {}", upsample.factor[axis], kAxes[axis]));
      }
      output.space[axis] *= upsample.factor[axis];
    }
    finish(output);
  }

  void operator()(const AveragePool& pool) {
    if (!reads_image()) return;
    only_on_real_axes("size", pool.size, 1);
    Shape output = input_;
    for (int axis = 0; axis < 3; ++axis) {
      output.space[axis] /= pool.size[axis];
      if (axis < input_.spatial_rank && output.space[axis] == 0) {
        problem(fmt::format("a window of {} along {} does not fit into {} cell{}", pool.size[axis],
                            kAxes[axis], input_.space[axis], input_.space[axis] == 1 ? "" : "s"));
      }
    }
    finish(output);
  }

  void operator()(const BatchNorm&) { finish(input_); }
  void operator()(const Dropout&) { finish(input_); }
  void operator()(const Activation&) { finish(input_); }
  void operator()(const Power&) { finish(input_); }

  void operator()(const Reshape& reshape) {
    if (reshape.to.elements() != input_.elements()) {
      problem(fmt::format("{} has {} elements but {} gives {} ({}); a reshape keeps their number",
                          reshape.to.text(), reshape.to.elements(), source_, input_.elements(),
                          input_.text()));
    }
    finish(reshape.to);
  }

  void operator()(const Flatten&) { finish(Shape::features(input_.elements())); }
  void operator()(const Sum&) { finish(Shape::features(1)); }
  void operator()(const Bins&) { finish(Shape::features(kBinCount)); }

  void operator()(const Angle&) {
    if (input_.spatial_rank != 3 || input_.channels != 1) {
      problem(fmt::format("reads an image of three axes and one channel, but {} gives {}", source_,
                          input_.text()));
    }
    finish(Shape::features(1));
  }

 private:
  void problem(std::string text) { result.problems.push_back(std::move(text)); }

  bool reads_image() {
    if (input_.spatial_rank != 0) return true;
    problem(fmt::format("reads an image, but {} gives {} features; put a reshape before it",
                        source_, input_.channels));
    return false;
  }

  // A layer of an image of two axes does nothing along z.
  void only_on_real_axes(const std::string& what, const Extent& values, std::int64_t nothing) {
    for (int axis = input_.spatial_rank; axis < 3; ++axis) {
      if (values[axis] == nothing) continue;
      problem(
          fmt::format("{} is {} along {}, but {} gives an image without this axis ({}); it must "
                      "be {}",
                      what, values[axis], kAxes[axis], source_, input_.text(), nothing));
    }
  }

  void check_weights(bool fits) {
    if (!fits) problem(fmt::format("its kernel would have more than {} weights", kMostWeights));
  }

  void too_large(const std::string& what) {
    problem(
        fmt::format("{} makes more than {} elements of {}", what, kMostElements, input_.text()));
  }

  void finish(const Shape& output) {
    if (!result.problems.empty()) return;
    const Extent& s = output.space;
    if (!product_within({s[0], s[1], s[2], output.channels}, kMostElements)) {
      return too_large("its output of " + output.text());
    }
    result.shape = output;
  }

  const Shape& input_;
  const std::string& source_;
};

}  // namespace

std::string shape_problem(const Shape& shape) {
  const int rank = shape.spatial_rank;
  if (rank != 0 && rank != 2 && rank != 3) {
    return fmt::format("an image has 2 or 3 axes, not {}", rank);
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (shape.space[axis] < 1) {
      return fmt::format("{} cells along {}, there must be 1 or more", shape.space[axis],
                         kAxes[axis]);
    }
    if (axis >= rank && shape.space[axis] != 1) {
      return fmt::format("{} cells along {}, an axis it does not have", shape.space[axis],
                         kAxes[axis]);
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
  std::visit(rules, kind);
  return std::move(rules.problems);
}

LayerOutput layer_output(const LayerKind& kind, const Shape& input, const std::string& source) {
  ShapeRules rules(input, source);
  std::visit(rules, kind);
  return std::move(rules.result);
}

AxisPadding convolution_padding(const Convolution& convolution, int axis) {
  if (convolution.padding == Padding::kValid) return {};
  const std::int64_t total = convolution.kernel[axis] - 1;
  return {total / 2, total - total / 2};
}

}  // namespace troupe::model

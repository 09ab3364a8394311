#include "tests/model/op_support.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include <gtest/gtest.h>

#include "runtime/base/buffer.h"

namespace troupe::model {
namespace {

using List = std::vector<OperandDescription>;

std::int64_t cells(const Extent& e) { return e[0] * e[1] * e[2]; }

struct Describe {
  static List dense(const DenseForward& d, List list) {
    if (!d.bias) {
      for (auto& operand : list) {
        if (operand.name == "bias" || operand.name == "dbias") operand.size = 0;
      }
    }
    return list;
  }
  List operator()(const DenseForward& d) const {
    return dense(d, {{"x", d.batch * d.inputs},
                     {"kernel", d.inputs * d.units},
                     {"bias", d.units},
                     {"y", d.batch * d.units, Content::kWritten}});
  }
  List operator()(const DenseBackwardInput& d) const {
    return {{"dy", d.batch * d.units},
            {"kernel", d.inputs * d.units},
            {"dx", d.batch * d.inputs, Content::kWritten}};
  }
  List operator()(const DenseBackwardParameters& d) const {
    return dense({d.batch, d.inputs, d.units, d.bias},
                 {{"x", d.batch * d.inputs},
                  {"dy", d.batch * d.units},
                  {"dkernel", d.inputs * d.units, Content::kWritten},
                  {"dbias", d.units, Content::kWritten}});
  }
  static std::int64_t x_size(const ConvolutionGeometry& g) {
    return g.batch * cells(g.in) * g.in_channels;
  }
  static std::int64_t y_size(const ConvolutionGeometry& g) {
    return g.batch * cells(g.out) * g.out_channels;
  }
  static std::int64_t kernel_size(const ConvolutionGeometry& g) {
    return cells(g.kernel) * g.in_channels * g.out_channels;
  }
  List operator()(const ConvolutionForward& c) const {
    const auto& g = c.geometry;
    return {{"x", x_size(g)},
            {"kernel", kernel_size(g)},
            {"bias", g.bias ? g.out_channels : 0},
            {"y", y_size(g), Content::kWritten}};
  }
  List operator()(const ConvolutionBackwardInput& c) const {
    const auto& g = c.geometry;
    return {{"dy", y_size(g)}, {"kernel", kernel_size(g)}, {"dx", x_size(g), Content::kWritten}};
  }
  List operator()(const ConvolutionBackwardParameters& c) const {
    const auto& g = c.geometry;
    return {{"x", x_size(g)},
            {"dy", y_size(g)},
            {"dkernel", kernel_size(g), Content::kWritten},
            {"dbias", g.bias ? g.out_channels : 0, Content::kWritten}};
  }
  static std::int64_t grouped_kernel(const GroupedGeometry& g) {
    return cells(g.kernel) * g.in_channels / g.groups * g.out_channels;
  }
  List operator()(const GroupedConvolutionForward& c) const {
    const auto& g = c.geometry;
    return {{"x", g.batch * cells(g.in) * g.in_channels},
            {"kernel", grouped_kernel(g)},
            {"bias", g.bias ? g.out_channels : 0},
            {"y", g.batch * cells(g.out) * g.out_channels, Content::kWritten}};
  }
  List operator()(const GroupedConvolutionBackwardInput& c) const {
    const auto& g = c.geometry;
    return {{"dy", g.batch * cells(g.out) * g.out_channels},
            {"kernel", grouped_kernel(g)},
            {"dx", g.batch * cells(g.in) * g.in_channels, Content::kWritten}};
  }
  List operator()(const GroupedConvolutionBackwardParameters& c) const {
    const auto& g = c.geometry;
    return {{"x", g.batch * cells(g.in) * g.in_channels},
            {"dy", g.batch * cells(g.out) * g.out_channels},
            {"dkernel", grouped_kernel(g), Content::kWritten}};
  }
  static std::int64_t images(const Phases& p) { return p.batch * cells(p.space) * p.channels; }
  static std::int64_t phases(const Phases& p) {
    return p.batch * cells(p.cells) * cells(p.stride) * p.channels;
  }
  List operator()(const SplitPhases& s) const {
    return {{"x", images(s.phases)}, {"y", phases(s.phases), Content::kWritten}};
  }
  List operator()(const JoinPhases& j) const {
    return {{"y", phases(j.phases)}, {"x", images(j.phases), Content::kWritten}};
  }
  List operator()(const AddBias& a) const {
    return {{"bias", a.channels}, {"y", a.rows * a.channels, Content::kUpdated}};
  }
  List operator()(const SumRows& s) const {
    return {{"dy", s.batch * s.rows * s.channels}, {"dx", s.batch * s.channels, Content::kWritten}};
  }
  List operator()(const RepeatRows& r) const {
    return {{"x", r.batch * r.channels}, {"y", r.batch * r.rows * r.channels, Content::kWritten}};
  }
  List operator()(const PadForward& p) const {
    const std::int64_t n = p.batch * p.channels;
    return {{"x", n * cells(p.in)}, {"y", n * cells(padded(p.in, p.amount)), Content::kWritten}};
  }
  List operator()(const PadBackward& p) const {
    const std::int64_t n = p.batch * p.channels;
    return {{"dy", n * cells(padded(p.in, p.amount))}, {"dx", n * cells(p.in), Content::kWritten}};
  }
  List operator()(const UpsampleForward& u) const {
    const std::int64_t n = u.batch * u.channels * cells(u.in);
    return {{"x", n}, {"y", n * cells(u.factor), Content::kWritten}};
  }
  List operator()(const UpsampleBackward& u) const {
    const std::int64_t n = u.batch * u.channels * cells(u.in);
    return {{"dy", n * cells(u.factor)}, {"dx", n, Content::kWritten}};
  }
  static std::int64_t pooled(const PoolGeometry& g) { return g.batch * g.channels * cells(g.out); }
  static std::int64_t image(const PoolGeometry& g) { return g.batch * g.channels * cells(g.in); }
  List operator()(const AveragePoolForward& p) const {
    return {{"x", image(p.geometry)}, {"y", pooled(p.geometry), Content::kWritten}};
  }
  List operator()(const AveragePoolBackward& p) const {
    return {{"dy", pooled(p.geometry)}, {"dx", image(p.geometry), Content::kWritten}};
  }
  List operator()(const MaxPoolForward& p) const {
    return {{"x", image(p.geometry)}, {"y", pooled(p.geometry), Content::kWritten}};
  }
  List operator()(const MaxPoolBackward& p) const {
    return {{"x", image(p.geometry)},
            {"dy", pooled(p.geometry)},
            {"dx", image(p.geometry), Content::kWritten}};
  }
  List operator()(const GroupNormForward& g) const {
    const std::int64_t n = g.samples * g.rows * g.channels;
    return {{"x", n},
            {"gamma", g.channels, Content::kPositive},
            {"beta", g.channels},
            {"y", n, Content::kWritten},
            {"mean", g.samples * g.groups, Content::kWritten},
            {"inverse_deviation", g.samples * g.groups, Content::kWritten}};
  }
  List operator()(const GroupNormBackward& g) const {
    const std::int64_t n = g.samples * g.rows * g.channels;
    return {{"x", n},
            {"dy", n},
            {"gamma", g.channels, Content::kPositive},
            {"mean", g.samples * g.groups},
            {"inverse_deviation", g.samples * g.groups, Content::kPositive},
            {"dx", n, Content::kWritten},
            {"dgamma", g.channels, Content::kWritten},
            {"dbeta", g.channels, Content::kWritten}};
  }
  List operator()(const BatchNormTraining& b) const {
    return {{"x", b.rows * b.channels},
            {"gamma", b.channels, Content::kPositive},
            {"beta", b.channels},
            {"y", b.rows * b.channels, Content::kWritten},
            {"mean", b.channels, Content::kWritten},
            {"inverse_deviation", b.channels, Content::kWritten},
            {"batch_mean", b.channels, Content::kWritten},
            {"batch_variance", b.channels, Content::kWritten}};
  }
  List operator()(const BatchNormInference& b) const {
    return {{"x", b.rows * b.channels},
            {"gamma", b.channels, Content::kPositive},
            {"beta", b.channels},
            {"moving_mean", b.channels},
            {"moving_variance", b.channels, Content::kPositive},
            {"y", b.rows * b.channels, Content::kWritten}};
  }
  List operator()(const BatchNormBackward& b) const {
    return {{"x", b.rows * b.channels},
            {"dy", b.rows * b.channels},
            {"gamma", b.channels, Content::kPositive},
            {"mean", b.channels},
            {"inverse_deviation", b.channels, Content::kPositive},
            {"dx", b.rows * b.channels, Content::kWritten},
            {"dgamma", b.channels, Content::kWritten},
            {"dbeta", b.channels, Content::kWritten}};
  }
  static List map(std::int64_t n, Content content = Content::kSigned) {
    return {{"x", n, content}, {"y", n, Content::kWritten}};
  }
  static List map_back(std::int64_t n, Content content = Content::kSigned) {
    return {{"x", n, content}, {"dy", n}, {"dx", n, Content::kWritten}};
  }
  List operator()(const DropoutForward& d) const { return map(d.elements); }
  List operator()(const DropoutBackward& d) const { return map(d.elements); }
  List operator()(const ActivationForward& a) const { return map(a.elements); }
  List operator()(const ActivationBackward& a) const { return map_back(a.elements); }
  List operator()(const SoftmaxForward& s) const { return map(s.rows * s.channels); }
  List operator()(const SoftmaxBackward& s) const { return map_back(s.rows * s.channels); }
  List operator()(const AttentionForward& a) const {
    const std::int64_t n = a.batch * a.cells * a.heads * a.width;
    return {{"x", 3 * n}, {"y", n, Content::kWritten}};
  }
  List operator()(const AttentionBackward& a) const {
    const std::int64_t n = a.batch * a.cells * a.heads * a.width;
    return {{"x", 3 * n}, {"dy", n}, {"dx", 3 * n, Content::kWritten}};
  }
  List operator()(const EmbeddingForward& e) const {
    return {{"x", e.batch, Content::kClass},
            {"kernel", e.classes * e.units},
            {"y", e.batch * e.units, Content::kWritten}};
  }
  List operator()(const EmbeddingBackward& e) const {
    return {{"x", e.batch, Content::kClass},
            {"dy", e.batch * e.units},
            {"dkernel", e.classes * e.units, Content::kWritten}};
  }
  List operator()(const Product& p) const {
    return {{"a", p.elements}, {"b", p.elements}, {"y", p.elements, Content::kWritten}};
  }
  List operator()(const PermuteAxes& p) const {
    return map(p.batch * p.in[0] * p.in[1] * p.in[2] * p.in[3]);
  }
  List operator()(const CopyParts& c) const {
    return {{"from", c.from_size},
            {"to", c.to_size, c.begins ? Content::kWritten : Content::kUpdated}};
  }
  List operator()(const PowerForward& p) const { return map(p.elements, Content::kImage); }
  List operator()(const PowerBackward& p) const { return map_back(p.elements, Content::kImage); }
  List operator()(const AngleForward& a) const {
    return {{"x", a.batch * cells(a.space), Content::kImage}, {"y", a.batch, Content::kWritten}};
  }
  List operator()(const AngleBackward& a) const {
    return {{"x", a.batch * cells(a.space), Content::kImage},
            {"dy", a.batch},
            {"dx", a.batch * cells(a.space), Content::kWritten}};
  }
  List operator()(const BinsForward& b) const {
    return {{"x", b.batch * b.cells, Content::kImage}, {"y", 8 * b.batch, Content::kWritten}};
  }
  List operator()(const Accumulate& a) const {
    return {{"from", a.elements}, {"into", a.elements, Content::kUpdated}};
  }
  List operator()(const ZeroFill& z) const { return {{"y", z.elements, Content::kWritten}}; }
  List operator()(const MeanLoss& l) const {
    return {{"p", l.elements, Content::kImage},
            {"t", l.elements, Content::kPositive},
            {"value", 1, Content::kWritten},
            {"gradient", l.elements, Content::kWritten}};
  }
  List operator()(const ClassCrossentropy& c) const {
    return {{"p", c.batch * c.classes},
            {"t", c.batch, Content::kClass},
            {"value", 1, Content::kWritten},
            {"gradient", c.batch * c.classes, Content::kWritten}};
  }
  List operator()(const CountEmpty& c) const {
    return {{"x", c.batch * c.cells, Content::kImage}, {"y", 1, Content::kWritten}};
  }
  List operator()(const MixEvents& m) const {
    return {{"a", m.batch * m.cells},
            {"b", m.batch * m.cells, Content::kImage},
            {"u", m.batch, Content::kPositive},
            {"y", m.batch * m.cells, Content::kWritten}};
  }
  List operator()(const SlopeProbes& s) const {
    return {{"x", s.batch * s.cells, Content::kImage},
            {"dx", s.batch * s.cells},
            {"slope", s.batch, Content::kWritten},
            {"above", s.batch * s.cells, Content::kWritten},
            {"below", s.batch * s.cells, Content::kWritten},
            {"factors", 2 * s.batch, Content::kWritten}};
  }
};

}  // namespace

List operands_of(const Operation& operation) { return std::visit(Describe{}, operation); }

double Draw::uniform() { return runtime::random_uniform(position_, next_++); }

std::int64_t Draw::between(std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(uniform() * static_cast<double>(last - first + 1));
}

std::vector<double> Draw::contents(const OperandDescription& operand) {
  std::vector<double> values(static_cast<std::size_t>(operand.size));
  for (double& value : values) {
    const double u = uniform();
    switch (operand.content) {
      case Content::kSigned:
      case Content::kUpdated:
        value = static_cast<float>(2.0 * u - 1.0);
        break;
      case Content::kPositive:
        value = static_cast<float>(u + 0.5);
        break;
      case Content::kClass:
        value = std::floor(5.0 * u);
        break;
      case Content::kImage:
        value = u < 0.5 ? 0.0 : static_cast<float>(0.2 * (u - 0.5));
        break;
      case Content::kWritten:
        value = std::numeric_limits<double>::quiet_NaN();
        break;
    }
  }
  return values;
}

Operands<double> random_operands(const Operation& operation, Draw& draw) {
  Operands<double> operands;
  for (const auto& operand : operands_of(operation)) operands.push_back(draw.contents(operand));
  return operands;
}

template <class T>
Operands<T> converted(const Operands<double>& operands) {
  Operands<T> result;
  for (const auto& operand : operands) result.emplace_back(operand.begin(), operand.end());
  return result;
}

bool same_bits(const Operands<float>& a, const Operands<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    if (!a[i].empty() && std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

template <class T>
void run_kernel(const Kernel& kernel, Operands<T>& operands,
                const runtime::RandomPosition& random) {
  constexpr std::size_t kGuard = 64;
  constexpr std::byte kGuardByte{0xa5};
  std::vector<void*> pointers;
  for (auto& operand : operands) {
    const std::size_t size = operand.size();
    operand.resize(size + kGuard);
    std::memset(operand.data() + size, static_cast<int>(kGuardByte), kGuard * sizeof(T));
    pointers.push_back(size == 0 ? nullptr : operand.data());
  }
  // Garbage, so that a kernel that expects zeros is found out.
  std::vector<std::byte> memory(kernel.scratch_bytes() + 64 + kGuard, std::byte{0xff});
  void* scratch = memory.data();
  std::size_t space = memory.size();
  std::align(64, kernel.scratch_bytes(), scratch, space);
  auto* scratch_end = static_cast<std::byte*>(scratch) + kernel.scratch_bytes();
  std::fill(scratch_end, memory.data() + memory.size(), kGuardByte);
  kernel.run(pointers, random, static_cast<std::byte*>(scratch));
  const auto untouched = [&](const std::byte* begin, const std::byte* end) {
    return std::all_of(begin, end, [&](std::byte b) { return b == kGuardByte; });
  };
  EXPECT_TRUE(untouched(scratch_end, memory.data() + memory.size())) << "beyond the scratch";
  for (auto& operand : operands) {
    const std::size_t size = operand.size() - kGuard;
    const auto* bytes = reinterpret_cast<const std::byte*>(operand.data());
    EXPECT_TRUE(untouched(bytes + size * sizeof(T), bytes + operand.size() * sizeof(T)))
        << "beyond operand " << &operand - operands.data();
    operand.resize(size);
  }
}

template <class T>
void run_operation(const Backend& backend, const Operation& operation, Operands<T>& operands,
                   const runtime::RandomPosition& random) {
  auto kernel = backend.make_kernel(operation);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  run_kernel(**kernel, operands, random);
}

template Operands<float> converted(const Operands<double>&);
template Operands<double> converted(const Operands<double>&);
template void run_kernel(const Kernel&, Operands<float>&, const runtime::RandomPosition&);
template void run_kernel(const Kernel&, Operands<double>&, const runtime::RandomPosition&);
template void run_operation(const Backend&, const Operation&, Operands<float>&,
                            const runtime::RandomPosition&);
template void run_operation(const Backend&, const Operation&, Operands<double>&,
                            const runtime::RandomPosition&);

}  // namespace troupe::model

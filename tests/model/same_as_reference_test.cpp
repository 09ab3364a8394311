// Kernels of the cpu backends that have the reference's bits: exponentials, powers, softmax,
// attention, norms of samples, pools, convolutions in groups, phases.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "model/backend/cpu/plane_vectors.h"
#include "tests/model/only_targets.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

// By the reference and, with AVX2 and the widest vectors, by the portable backend.
void expect_same_bits(const Operation& operation, const Operands<float>& given) {
  const auto portable = make_portable_backend();
  ASSERT_TRUE(portable.ok());
  (*portable)->prepare_thread();
  Operands<float> want = given, narrow = given, wide = given;
  run_operation(*make_reference_backend(DataType::kFloat32), operation, want);
  {
    const OnlyTargets only(HWY_AVX2);
    run_operation(**portable, operation, narrow);
  }
  run_operation(**portable, operation, wide);
  EXPECT_TRUE(same_bits(want, narrow)) << operation_name(operation);
  EXPECT_TRUE(same_bits(want, wide)) << operation_name(operation);
}

void expect_same_bits(const Operation& operation, Draw& draw) {
  expect_same_bits(operation, converted<float>(random_operands(operation, draw)));
}

class SameAsReference : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  }
};

// Every order of magnitude, both signs, the ends of the ranges that vectors know, and beyond.
std::vector<float> magnitudes() {
  std::vector<float> values;
  for (int exponent = -149; exponent <= 127; ++exponent) {
    for (int step = 0; step < 6; ++step) {
      const float value = std::ldexp(1.0F + 0.17F * static_cast<float>(step), exponent);
      values.insert(values.end(), {value, -value});
    }
  }
  for (const float edge : {20.0F, 87.3F, 88.8F, 350.0F, 699.9F, 700.1F, 710.0F, 745.3F}) {
    values.insert(values.end(), {edge, -edge});
  }
  return values;
}

TEST_F(SameAsReference, ActivationsOfEveryMagnitude) {
  const std::vector<float> x = magnitudes();
  std::vector<float> dy(x.size());
  Draw draw(4);
  for (float& value : dy) value = static_cast<float>(2.0 * draw.uniform() - 1.0);
  const auto elements = static_cast<std::int64_t>(x.size());
  for (int kind = 0; kind <= static_cast<int>(ActivationKind::kElu); ++kind) {
    SCOPED_TRACE(kind);
    const Activation activation{static_cast<ActivationKind>(kind), 0.3};
    const std::vector<float> nothing(x.size(), NAN);
    expect_same_bits(ActivationForward{elements, activation}, {x, nothing});
    expect_same_bits(ActivationBackward{elements, activation}, {x, dy, nothing});
  }
}

TEST_F(SameAsReference, Phases) {
  Draw draw(6);
  for (int i = 0; i < 200; ++i) {
    const ::troupe::model::Phases phases = random_phases(draw);
    expect_same_bits(SplitPhases{phases}, draw);
    expect_same_bits(JoinPhases{phases}, draw);
  }
}

// Exponents that vectors know, and those whose powers they leave to the reference.
TEST_F(SameAsReference, PowersOfEveryMagnitude) {
  std::vector<float> x = magnitudes();
  x.insert(x.begin() + 200, {0.0F, -0.0F});  // among numbers that vectors know
  x.insert(x.begin() + 100, {std::numeric_limits<float>::infinity(), NAN});
  const auto elements = static_cast<std::int64_t>(x.size());
  std::vector<float> dy(x.size());
  Draw draw(5);
  for (float& value : dy) value = static_cast<float>(2.0 * draw.uniform() - 1.0);
  for (const double exponent :
       {-9.0, -6.7, -0.5, 0.0, 0.1, 0.35, 0.5, 0.7, 1.0, 2.0, 6.7, 7.7, 40.0}) {
    SCOPED_TRACE(exponent);
    const std::vector<float> nothing(x.size(), NAN);
    expect_same_bits(PowerForward{elements, exponent}, {x, nothing});
    expect_same_bits(PowerBackward{elements, exponent}, {x, dy, nothing});
  }
}

// Threads take these by parts.
TEST_F(SameAsReference, LongActivationsAreWhole) {
  Draw draw(6);
  for (const std::int64_t elements : {32768, 32769, 70001}) {
    expect_same_bits(ActivationForward{elements, {ActivationKind::kTanh}}, draw);
    expect_same_bits(ActivationBackward{elements, {ActivationKind::kElu}}, draw);
    expect_same_bits(PowerForward{elements, 0.1}, draw);
    expect_same_bits(PowerBackward{elements, 0.7}, draw);
  }
}

TEST_F(SameAsReference, ActivationsKeepNotANumberAndInfinity) {
  const auto backend = make_portable_backend();
  ASSERT_TRUE(backend.ok());
  const float infinity = std::numeric_limits<float>::infinity();
  for (int kind = 0; kind <= static_cast<int>(ActivationKind::kElu); ++kind) {
    const Activation activation{static_cast<ActivationKind>(kind), 0.3};
    Operands<float> found(2, std::vector<float>(21, 0.5F));
    found[0][3] = NAN;
    found[0][11] = infinity;
    Operands<float> want = found;
    run_operation(**backend, ActivationForward{21, activation}, found);
    run_operation(*make_reference_backend(DataType::kFloat32), ActivationForward{21, activation},
                  want);
    EXPECT_TRUE(std::isnan(found[1][3])) << kind;
    EXPECT_EQ(found[1][11], want[1][11]) << kind;
    EXPECT_EQ(found[1][2], want[1][2]) << kind;
    EXPECT_EQ(found[1][20], want[1][20]) << kind;
  }
}

TEST_F(SameAsReference, SoftmaxOfShortAndLongRows) {
  for (const std::int64_t channels : {1, 3, 10, 16, 700}) {
    Draw draw(static_cast<std::uint64_t>(channels));
    expect_same_bits(SoftmaxForward{41, channels}, draw);
  }
}

// Cells and values of a head that fill vectors and that do not, and numbers so large that most
// weights are 0.
TEST_F(SameAsReference, AttentionOfManyShapes) {
  struct Case {
    std::int64_t cells, heads, width;
  };
  for (const Case& c : {Case{1, 1, 1}, Case{5, 2, 3}, Case{8, 1, 8}, Case{27, 4, 12},
                        Case{30, 3, 4}, Case{33, 1, 17}}) {
    for (const float size : {1.0F, 300.0F}) {
      SCOPED_TRACE(c.cells);
      Draw draw(static_cast<std::uint64_t>(c.cells));
      const AttentionForward forward{3, c.cells, c.heads, c.width};
      const AttentionBackward backward{3, c.cells, c.heads, c.width};
      Operands<float> operands = converted<float>(random_operands(forward, draw));
      Operands<float> derived = converted<float>(random_operands(backward, draw));
      for (float& value : operands[0]) value *= size;
      derived[0] = operands[0];
      expect_same_bits(forward, operands);
      expect_same_bits(backward, derived);
    }
  }
}

TEST_F(SameAsReference, AttentionKeepsNotANumberInItsHead) {
  const auto backend = make_portable_backend();
  ASSERT_TRUE(backend.ok());
  Draw draw(2);
  const AttentionForward attention{1, 9, 2, 3};
  Operands<float> found = converted<float>(random_operands(attention, draw));
  found[0][static_cast<std::size_t>(4 * 18 + 6)] = NAN;  // in a key of the first head
  Operands<float> want = found;
  run_operation(**backend, attention, found);
  run_operation(*make_reference_backend(DataType::kFloat32), attention, want);
  for (std::size_t i = 0; i < want[1].size(); ++i) {
    EXPECT_EQ(std::isnan(found[1][i]), i % 6 < 3) << i;
    EXPECT_EQ(std::isnan(want[1][i]), i % 6 < 3) << i;
  }
}

TEST_F(SameAsReference, NormsOfGroups) {
  struct Case {
    std::int64_t rows, channels, groups;
    std::int64_t samples = 3;
  };
  for (const Case& c : {Case{50, 8, 2}, Case{27, 48, 8}, Case{1, 16, 1}, Case{40, 16, 16},
                        Case{33, 19, 1}, Case{9, 30, 3}, Case{1, 1, 1}, Case{1, 16, 1, 8},
                        Case{1, 21, 1, 45}, Case{1, 5, 1, 3000}}) {
    Draw draw(static_cast<std::uint64_t>(c.channels));
    expect_same_bits(GroupNormForward{c.samples, c.rows, c.channels, c.groups, 1e-3}, draw);
    expect_same_bits(GroupNormBackward{c.samples, c.rows, c.channels, c.groups}, draw);
  }
}

// Channels that fill vectors and that do not, rows of more cells than a block, every stride.
TEST_F(SameAsReference, ConvolutionsInGroups) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    GroupedGeometry g = random_grouped_geometry(draw);
    g.groups = draw.between(1, 9);
    const bool depthwise = draw.between(0, 4) == 0;
    g.in_channels = g.groups * (depthwise ? 1 : draw.between(1, 9));
    g.out_channels = g.groups * (depthwise ? 1 : draw.between(1, 20));
    const auto rank = static_cast<std::size_t>(draw.between(1, 3));
    for (std::size_t axis = rank; axis < 3; ++axis) {
      g.in[axis] = g.out[axis] = g.kernel[axis] = g.stride[axis] = 1;
      g.pad_before[axis] = 0;
    }
    const std::int64_t more = draw.between(0, 15);  // outputs along the last axis
    g.in[rank - 1] += more * g.stride[rank - 1];
    g.out[rank - 1] += more;
    expect_same_bits(GroupedConvolutionForward{g}, draw);
    expect_same_bits(GroupedConvolutionBackwardInput{g}, draw);
    expect_same_bits(GroupedConvolutionBackwardParameters{g}, draw);
  }
}

// Spread for vectors, this image would take 250 MiB for each thread.
TEST_F(SameAsReference, LargeConvolutionsInOneGroupTakeLittleMemory) {
  const auto backend = make_portable_backend();
  ASSERT_TRUE(backend.ok());
  const GroupedGeometry g{2,         {25, 25, 25}, {12, 12, 12}, {2, 2, 2}, {},
                          {2, 2, 2}, {2, 2, 2},    64,           64};
  for (const Operation& operation :
       {Operation{GroupedConvolutionForward{g}}, Operation{GroupedConvolutionBackwardInput{g}},
        Operation{GroupedConvolutionBackwardParameters{g}}}) {
    const auto kernel = (*backend)->make_kernel(operation);
    ASSERT_TRUE(kernel.ok());
    EXPECT_LT((*kernel)->scratch_bytes(), std::size_t{1} << 24);
  }
}

void expect_same_pools(const PoolGeometry& pool, Draw& draw) {
  Operands<float> operands = converted<float>(random_operands(MaxPoolForward{pool}, draw));
  Operands<float> derived = converted<float>(random_operands(MaxPoolBackward{pool}, draw));
  // Few different numbers, so that windows have equal ones.
  for (float& value : operands[0]) value = std::round(3.0F * value) / 3.0F;
  operands[0][4] = operands[0][static_cast<std::size_t>(7 * pool.channels)] = NAN;
  derived[0] = operands[0];
  derived[1][0] = -0.0F;
  expect_same_bits(MaxPoolForward{pool}, operands);
  expect_same_bits(MaxPoolBackward{pool}, derived);
}

TEST_F(SameAsReference, PoolsOfEqualCellsAndNotANumber) {
  for (const std::int64_t channels : {1, 8, 24, 13}) {
    Draw draw(static_cast<std::uint64_t>(channels));
    expect_same_pools({2, channels, {5, 4, 7}, {2, 2, 3}}, draw);
  }
}

TEST_F(SameAsReference, PoolsOfRandomWindows) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    PoolGeometry pool = random_pool(draw);
    pool.channels = 8 * draw.between(1, 3);
    expect_same_pools(pool, draw);
  }
}

}  // namespace
}  // namespace troupe::model

// What is particular to the cpu backend: its own code against the library's, and their edges.

#include <cmath>

#include <gtest/gtest.h>

#include "model/backend/cpu/convolution.h"
#include "model/backend/cpu/dropout.h"
#include "model/backend/cpu/plane_convolution.h"
#include "model/backend/cpu/plane_vectors.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

TEST(OpCpu, DropoutThresholdIsTheFirstWordWhoseUniformReachesTheRate) {
  Draw draw(1);
  for (int i = 0; i < 2000; ++i) {
    double rate = draw.uniform();
    if (i % 4 == 1) rate = std::nextafter(rate, 0.0);  // uniform() is a word's number exactly
    if (i % 4 == 2) rate *= draw.uniform() * 0x1p-30;  // of the smallest words
    if (i % 4 == 3) rate = 1.0 - rate * 0x1p-30;       // of the largest
    const std::uint64_t threshold = cpu::dropout_threshold(rate);
    if (threshold <= 0xffffffff) {
      EXPECT_GE(runtime::uniform(static_cast<std::uint32_t>(threshold)), rate);
    }
    if (threshold > 0) {
      EXPECT_LT(runtime::uniform(static_cast<std::uint32_t>(threshold - 1)), rate);
    }
  }
  EXPECT_EQ(cpu::dropout_threshold(0.0), 0u);
}

ConvolutionGeometry cube(std::int64_t in_channels, std::int64_t out_channels) {
  ConvolutionGeometry g;
  g.batch = 1;
  g.in_channels = in_channels;
  g.out_channels = out_channels;
  g.in = g.out = {3, 3, 3};
  g.kernel = {3, 3, 3};
  g.pad_before = g.pad_after = {1, 1, 1};
  return g;
}

// The library's own ReLU turns NaN into 0 in some of its implementations.
TEST(OpCpu, NotANumberStaysOneThroughEveryActivationOfTheLibrarysConvolutions) {
  make_cpu_backend()->prepare_thread();
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  for (const std::int64_t channels : {1, 8, 16, 32}) {
    const ConvolutionGeometry g = cube(8, channels);
    for (int kind = 0; kind < 3; ++kind) {
      const ConvolutionForward convolution{g, {static_cast<ActivationKind>(kind), 0.3}};
      Draw draw(2);
      Operands<float> operands = converted<float>(random_operands(convolution, draw));
      operands[0][0] = NAN;
      run_kernel(*cpu::make_onednn_kernel(convolution, engine), operands);
      EXPECT_TRUE(std::isnan(operands[3][0])) << kind << " " << channels;
      EXPECT_FALSE(std::isnan(operands[3][static_cast<std::size_t>(26 * channels)]));
    }
  }
}

// A mistake of ours and the same one in the reference would agree; the library shares no code.
template <class Convolution>
void expect_ours_agrees_with_library(const Convolution& convolution, std::uint64_t seed) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  Draw draw(seed);
  Operands<float> ours = converted<float>(random_operands(convolution, draw));
  Operands<float> theirs = ours;
  run_kernel(*cpu::make_plane_kernel(convolution, Precision::kFp32), ours);
  run_kernel(*cpu::make_onednn_kernel(convolution, engine), theirs);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    for (std::size_t k = 0; k < ours[i].size(); ++k) {
      ASSERT_NEAR(ours[i][k], theirs[i][k], 1e-3)
          << operation_name(convolution) << " seed " << seed;
    }
  }
}

TEST(OpCpu, OurConvolutionsAgreeWithTheLibrary) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  make_cpu_backend()->prepare_thread();
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    Draw draw(seed);
    const ConvolutionGeometry g = random_geometry(draw);
    bool wide = false;  // padding beyond the kernel: not for the library
    for (std::size_t axis = 0; axis < 3; ++axis) {
      wide = wide || g.pad_before[axis] >= g.kernel[axis] || g.pad_after[axis] >= g.kernel[axis];
    }
    if (wide) continue;
    expect_ours_agrees_with_library(ConvolutionForward{g, {ActivationKind::kLeakyRelu, 0.3}}, seed);
    expect_ours_agrees_with_library(ConvolutionBackwardInput{g}, seed);
    expect_ours_agrees_with_library(ConvolutionBackwardParameters{g}, seed);
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

TEST(OpCpu, OurCodeTakesTilesAndSingleOutputsAndLeavesTheRest) {
  ConvolutionGeometry large = cube(32, 8);
  large.in = large.out = {12, 12, 12};
  EXPECT_TRUE(cpu::prefers_planes(ConvolutionForward{large, {}}));
  EXPECT_TRUE(cpu::prefers_planes(ConvolutionBackwardInput{large}));
  EXPECT_TRUE(cpu::prefers_planes(ConvolutionBackwardParameters{large}));
  // Too small for tiles to fill a vector.
  EXPECT_FALSE(cpu::prefers_planes(ConvolutionForward{cube(32, 8), {}}));
  ConvolutionGeometry pointwise = cube(32, 64);
  pointwise.kernel = {1, 1, 1};
  pointwise.pad_before = pointwise.pad_after = {0, 0, 0};
  EXPECT_FALSE(cpu::prefers_planes(ConvolutionForward{pointwise, {}}));
  EXPECT_FALSE(cpu::prefers_planes(ConvolutionBackwardInput{pointwise}));
  EXPECT_FALSE(cpu::prefers_planes(ConvolutionBackwardParameters{pointwise}));
  pointwise.out_channels = 1;
  EXPECT_TRUE(cpu::prefers_planes(ConvolutionForward{pointwise, {}}));
}

}  // namespace
}  // namespace troupe::model

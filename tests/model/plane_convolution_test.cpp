// Our own convolutions against the reference in double, and against themselves with narrower
// vectors.

#include "model/backend/cpu/plane_convolution.h"

#include <cmath>

#include <gtest/gtest.h>

#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/upsampled_convolution.h"
#include "tests/model/only_targets.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

// Rows long enough for several tiles, kernels with every number of taps.
ConvolutionGeometry long_geometry(Draw& draw) {
  ConvolutionGeometry g = random_geometry(draw);
  g.in[1] = draw.between(1, 9);
  g.kernel[1] = std::min(g.kernel[1], g.in[1]);
  g.in[2] = draw.between(15, 40);
  g.kernel[2] = draw.between(1, 15);
  g.pad_before[2] = draw.between(0, g.kernel[2] + 1);
  g.pad_after[2] = draw.between(0, g.kernel[2] + 1);
  if (g.in[2] + g.pad_before[2] + g.pad_after[2] < g.kernel[2]) g.in[2] = g.kernel[2];
  return with_output(g);
}

// Each kind in turn.
ConvolutionGeometry geometry_of(std::uint64_t seed, Draw& draw) {
  if (seed % 3 == 0) return random_upsampled_geometry(draw);
  return seed % 3 == 1 ? random_geometry(draw) : long_geometry(draw);
}

// The norm of the difference as a part of the judge's norm; NaN if one of `values` is.
double relative_error(const std::vector<float>& values, const std::vector<double>& judge) {
  double errors = 0.0, squares = 1e-12;
  for (std::size_t i = 0; i < judge.size(); ++i) {
    errors += std::pow(static_cast<double>(values[i]) - judge[i], 2);
    squares += judge[i] * judge[i];
  }
  return std::sqrt(errors / squares);
}

template <class Convolution>
std::unique_ptr<Kernel> ours_for(const Convolution& convolution) {
  return cpu::upsamples(convolution.geometry) ? cpu::make_upsampled_kernel(convolution)
                                              : cpu::make_plane_kernel(convolution);
}

template <class Convolution>
void expect_agreement(const Convolution& convolution, std::uint64_t seed) {
  Draw draw(seed);
  Operands<double> judged = random_operands(convolution, draw);
  Operands<float> ours = converted<float>(judged);
  run_operation(*make_reference_backend(DataType::kFloat64), convolution, judged);
  run_kernel(*ours_for(convolution), ours);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_LT(relative_error(ours[i], judged[i]), 1e-5)
        << operation_name(convolution) << " operand " << i << " seed " << seed;
  }
}

TEST(PlaneConvolution, MatchesTheDoubleReferenceInAllDirections) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  int tiled = 0, in_parts = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Draw draw(seed);
    const ConvolutionGeometry g = geometry_of(seed, draw);
    const auto activation = static_cast<ActivationKind>(draw.between(0, 2));
    if (!cpu::upsamples(g)) {
      const cpu::Tiling tiling = cpu::tiling_of(cpu::with_long_rows(g));
      tiled += tiling.tiles() ? 1 : 0;
      in_parts += tiling.parts > 1 ? 1 : 0;
    }
    expect_agreement(ConvolutionForward{g, {activation, 0.3}}, seed);
    expect_agreement(ConvolutionBackwardInput{g}, seed);
    expect_agreement(ConvolutionBackwardParameters{g}, seed);
  }
  EXPECT_GT(tiled, 40);
  EXPECT_GT(in_parts, 15);
}

template <class Convolution>
void expect_same_bits(const Convolution& convolution, std::uint64_t seed) {
  Draw draw(seed);
  Operands<float> narrow = converted<float>(random_operands(convolution, draw)), wide = narrow;
  const auto kernel = ours_for(convolution);
  {
    const OnlyTargets only(HWY_AVX2);
    EXPECT_EQ(cpu::vector_lanes(), 8);
    run_kernel(*kernel, narrow);
  }
  EXPECT_EQ(cpu::vector_lanes(), 16);
  run_kernel(*kernel, wide);
  EXPECT_TRUE(same_bits(narrow, wide)) << operation_name(convolution) << " seed " << seed;
}

TEST(PlaneConvolution, IsTheSameBitsWithAvx2AndAvx512) {
  if ((hwy::SupportedTargets() & HWY_AVX3) == 0) GTEST_SKIP() << "no AVX-512 on this host";
  for (std::uint64_t seed = 1; seed <= 90; ++seed) {
    Draw draw(seed);
    const ConvolutionGeometry g = geometry_of(seed, draw);
    expect_same_bits(ConvolutionForward{g, {ActivationKind::kLeakyRelu, 0.3}}, seed);
    expect_same_bits(ConvolutionBackwardInput{g}, seed);
    expect_same_bits(ConvolutionBackwardParameters{g}, seed);
  }
}

// As the plain sum, and as PyTorch: the gradient at the kink of an activation hangs on it.
TEST(PlaneConvolution, EmptyPartsOfAShowerGiveZeroBesideCellsThatAreNot) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  for (const std::int64_t taps : {3, 4, 5, 6, 7, 8}) {
    for (const std::int64_t channels : {1, 8, 32}) {
      ConvolutionGeometry g{.batch = 1, .in = {5, 5, 30}, .out = {}, .kernel = {5, 5, taps}};
      g.in_channels = channels;
      g.out_channels = 8;
      const ConvolutionForward convolution{with_output(g), {}};
      Draw draw(4);
      Operands<float> operands = converted<float>(random_operands(convolution, draw));
      const auto row = static_cast<std::size_t>(30 * channels);
      for (std::size_t i = 0; i < operands[0].size(); ++i) {
        if (i % row >= row / 2) operands[0][i] = 0.0f;  // z = 15 and more
      }
      operands[2].assign(operands[2].size(), 0.0f);
      run_kernel(*cpu::make_plane_kernel(convolution), operands);
      for (std::size_t i = 0; i < operands[3].size(); ++i) {
        EXPECT_EQ(operands[3][i] == 0.0f, i / 8 >= 15) << taps << " " << channels << " " << i;
      }
    }
  }
}

TEST(PlaneConvolution, NotANumberStaysOneThroughEveryActivation) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  ConvolutionGeometry g{.batch = 1, .in = {3, 3, 20}, .out = {}, .kernel = {3, 3, 5}};
  g.in_channels = g.out_channels = 2;
  for (int kind = 0; kind < 3; ++kind) {
    const ConvolutionForward convolution{with_output(g), {static_cast<ActivationKind>(kind), 0.3}};
    Draw draw(2);
    Operands<float> operands = converted<float>(random_operands(convolution, draw));
    operands[0][0] = NAN;
    run_kernel(*cpu::make_plane_kernel(convolution), operands);
    EXPECT_TRUE(std::isnan(operands[3].front())) << kind;
    EXPECT_FALSE(std::isnan(operands[3].back())) << kind;
  }
}

}  // namespace
}  // namespace troupe::model

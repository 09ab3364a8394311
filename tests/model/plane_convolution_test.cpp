// Our own convolutions against the reference in double, and against themselves with narrower
// vectors.

#include "model/backend/cpu/plane_convolution.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "model/backend/cpu/bfloat16_cells.h"
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
std::unique_ptr<Kernel> ours_for(const Convolution& convolution, Precision precision) {
  return cpu::upsamples(convolution.geometry) ? cpu::make_upsampled_kernel(convolution, precision)
                                              : cpu::make_plane_kernel(convolution, precision);
}

template <class Convolution>
void expect_agreement(const Convolution& convolution, std::uint64_t seed, Precision precision) {
  Draw draw(seed);
  Operands<double> judged = random_operands(convolution, draw);
  Operands<float> ours = converted<float>(judged);
  run_operation(*make_reference_backend(DataType::kFloat64), convolution, judged);
  run_kernel(*ours_for(convolution, precision), ours);
  const double bound = precision == Precision::kFp32 ? 1e-5 : 1.6e-2;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_LT(relative_error(ours[i], judged[i]), bound)
        << operation_name(convolution) << " operand " << i << " seed " << seed;
  }
}

void expect_agreement_in_all_directions(Precision precision) {
  int tiled = 0, in_parts = 0, from_cells = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Draw draw(seed);
    const ConvolutionGeometry g = geometry_of(seed, draw);
    const auto activation = static_cast<ActivationKind>(draw.between(0, 2));
    if (!cpu::upsamples(g)) {
      const auto rows = cpu::with_long_rows(g);
      const cpu::Tiling tiling = precision == Precision::kFp32
                                     ? cpu::tiling_of<float>(rows)
                                     : cpu::tiling_of<cpu::Bfloat16Pair>(rows);
      tiled += tiling.tiles() ? 1 : 0;
      in_parts += tiling.parts > 1 ? 1 : 0;
      from_cells += tiling.tiles() && cpu::prefers_cells(g.in_channels) ? 1 : 0;
    }
    expect_agreement(ConvolutionForward{g, {activation, 0.3}}, seed, precision);
    expect_agreement(ConvolutionBackwardInput{g}, seed, precision);
    expect_agreement(ConvolutionBackwardParameters{g}, seed, precision);
  }
  EXPECT_GT(tiled, 40);
  EXPECT_GT(in_parts, 15);
  EXPECT_GT(from_cells, 20);
}

TEST(PlaneConvolution, MatchesTheDoubleReferenceInAllDirections) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  expect_agreement_in_all_directions(Precision::kFp32);
}

TEST(PlaneConvolution, MatchesTheDoubleReferenceInAllDirectionsToEightBits) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  expect_agreement_in_all_directions(Precision::kBf16);
}

// With the vectors of this host as with those of hosts that have less.
template <class Convolution>
void expect_same_bits(const Convolution& convolution, std::uint64_t seed, Precision precision) {
  Draw draw(seed);
  const Operands<float> given = converted<float>(random_operands(convolution, draw));
  Operands<float> with_all = given;
  EXPECT_EQ(cpu::vector_lanes(), 16);
  {
    const PairsAtOnceIs at_once(true);
    run_kernel(*ours_for(convolution, precision), with_all);
  }
  {
    const PairsAtOnceIs in_turn(false);
    Operands<float> all_in_turn = given;
    run_kernel(*ours_for(convolution, precision), all_in_turn);
    EXPECT_TRUE(same_bits(all_in_turn, with_all))
        << operation_name(convolution) << " seed " << seed;
  }
  for (const std::int64_t target : {HWY_AVX2, HWY_AVX3}) {
    const OnlyTargets only(target);
    EXPECT_EQ(cpu::vector_lanes(), target == HWY_AVX2 ? 8 : 16);
    EXPECT_FALSE(cpu::multiplies_pairs_at_once());
    Operands<float> with_less = given;
    run_kernel(*ours_for(convolution, precision), with_less);
    EXPECT_TRUE(same_bits(with_less, with_all)) << operation_name(convolution) << " seed " << seed;
  }
}

// A convolution of phases, some of which lack the last tap along some axes.
ConvolutionGeometry geometry_of_phases(Draw& draw) {
  ConvolutionGeometry g = draw.between(0, 1) == 0 ? random_geometry(draw) : long_geometry(draw);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    g.phases[axis] = draw.between(1, 3);
    g.whole_phases[axis] = draw.between(1, g.phases[axis]);
  }
  g.in_channels = cells(g.phases) * draw.between(1, 8);
  g.out_channels = draw.between(1, 40);
  return g;
}

// Calls use(tap, channel) for what a kernel does not have.
template <class Use>
void over_lacking(const ConvolutionGeometry& g, const Use& use) {
  for (std::int64_t tap = 0; tap < cells(g.kernel); ++tap) {
    const Extent place{tap / (g.kernel[1] * g.kernel[2]), tap / g.kernel[2] % g.kernel[1],
                       tap % g.kernel[2]};
    for (std::int64_t channel = 0; channel < g.in_channels; ++channel) {
      const std::int64_t number = channel / (g.in_channels / cells(g.phases));
      const Extent phase{number / (g.phases[1] * g.phases[2]), number / g.phases[2] % g.phases[1],
                         number % g.phases[2]};
      bool lacks = false;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        lacks |= place[axis] == g.kernel[axis] - 1 && phase[axis] >= g.whole_phases[axis];
      }
      if (lacks) use(tap, channel);
    }
  }
}

void clear_lacking(const ConvolutionGeometry& g, std::vector<float>& kernel) {
  over_lacking(g, [&](std::int64_t tap, std::int64_t channel) {
    std::fill_n(kernel.begin() + (tap * g.in_channels + channel) * g.out_channels, g.out_channels,
                0.0f);
  });
}

// With zeros for the taps that phases lack, left out or not. `kernel`: the operand.
template <class Convolution>
void expect_bits_of_all_taps(const Convolution& convolution, std::size_t kernel, Draw& draw,
                             Precision precision) {
  Operands<float> some = converted<float>(random_operands(convolution, draw));
  clear_lacking(convolution.geometry, some[kernel]);
  Operands<float> all = some;
  Convolution plain = convolution;
  plain.geometry.phases = plain.geometry.whole_phases = {1, 1, 1};
  for (const std::int64_t target : {std::int64_t{0}, std::int64_t{HWY_AVX2}}) {
    const OnlyTargets only(target);
    run_kernel(*cpu::make_plane_kernel(convolution, precision), some);
    run_kernel(*cpu::make_plane_kernel(plain, precision), all);
    clear_lacking(convolution.geometry, all[kernel]);
    clear_lacking(convolution.geometry, some[kernel]);
    EXPECT_TRUE(same_bits(some, all)) << operation_name(convolution);
  }
}

void expect_bits_of_all_taps(Precision precision) {
  std::int64_t lacking = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const ConvolutionGeometry g = geometry_of_phases(draw);
    expect_bits_of_all_taps(ConvolutionForward{g, {ActivationKind::kLeakyRelu, 0.3}}, 1, draw,
                            precision);
    expect_bits_of_all_taps(ConvolutionBackwardInput{g}, 1, draw, precision);
    expect_bits_of_all_taps(ConvolutionBackwardParameters{g}, 2, draw, precision);
    over_lacking(g, [&](std::int64_t, std::int64_t) { ++lacking; });
  }
  EXPECT_GT(lacking, 10000);
}

TEST(PlaneConvolution, TapsThatPhasesLackAreLeftOutToTheSameBits) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  expect_bits_of_all_taps(Precision::kFp32);
}

TEST(PlaneConvolution, TapsThatPhasesLackAreLeftOutToTheSameBitsOfPairs) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  expect_bits_of_all_taps(Precision::kBf16);
}

void expect_same_bits_in_all_directions(Precision precision) {
  for (std::uint64_t seed = 1; seed <= 90; ++seed) {
    Draw draw(seed);
    const ConvolutionGeometry g = geometry_of(seed, draw);
    expect_same_bits(ConvolutionForward{g, {ActivationKind::kLeakyRelu, 0.3}}, seed, precision);
    expect_same_bits(ConvolutionBackwardInput{g}, seed, precision);
    expect_same_bits(ConvolutionBackwardParameters{g}, seed, precision);
  }
}

TEST(PlaneConvolution, IsTheSameBitsWithAvx2AndAvx512) {
  if ((hwy::SupportedTargets() & HWY_AVX3) == 0) GTEST_SKIP() << "no AVX-512 on this host";
  expect_same_bits_in_all_directions(Precision::kFp32);
}

// Where there is an instruction, against what stands for it elsewhere.
TEST(PlaneConvolution, IsTheSameBitsWithAvx2AndAvx512ToEightBits) {
  if ((hwy::SupportedTargets() & HWY_AVX3) == 0) GTEST_SKIP() << "no AVX-512 on this host";
  expect_same_bits_in_all_directions(Precision::kBf16);
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
      run_kernel(*cpu::make_plane_kernel(convolution, Precision::kFp32), operands);
      for (std::size_t i = 0; i < operands[3].size(); ++i) {
        EXPECT_EQ(operands[3][i] == 0.0f, i / 8 >= 15) << taps << " " << channels << " " << i;
      }
    }
  }
}

void expect_nan_to_stay(Precision precision) {
  ConvolutionGeometry g{.batch = 1, .in = {3, 3, 20}, .out = {}, .kernel = {3, 3, 5}};
  g.in_channels = g.out_channels = 2;
  for (int kind = 0; kind < 3; ++kind) {
    const ConvolutionForward convolution{with_output(g), {static_cast<ActivationKind>(kind), 0.3}};
    Draw draw(2);
    Operands<float> operands = converted<float>(random_operands(convolution, draw));
    operands[0][0] = NAN;
    run_kernel(*cpu::make_plane_kernel(convolution, precision), operands);
    EXPECT_TRUE(std::isnan(operands[3].front())) << kind;
    EXPECT_FALSE(std::isnan(operands[3].back())) << kind;
  }
}

TEST(PlaneConvolution, NotANumberStaysOneThroughEveryActivation) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  expect_nan_to_stay(Precision::kFp32);
  expect_nan_to_stay(Precision::kBf16);
}

cpu::Tiling tiling_of(std::int64_t taps, std::int64_t outputs) {
  ConvolutionGeometry g{
      .batch = 1, .in = {3, 3, outputs + taps - 1}, .out = {}, .kernel = {3, 3, taps}};
  return cpu::tiling_of(with_output(g), 1);
}

// Products of a row for each are points x tiles x parts.
TEST(PlaneConvolution, TapsAreDividedIntoThePartsThatMakeTheFewestProducts) {
  struct Case {
    std::int64_t taps, outputs;
    std::int64_t parts, tiles;  // 1, 0: no tiles
  };
  const Case cases[] = {
      {5, 25, 1, 7},                 // 56 instead of 125
      {6, 25, 1, 9},                 // 72; two parts of three taps: 80
      {6, 6, 1, 2},                  // 16, and two parts of three make as many
      {7, 24, 1, 12},                // 96 instead of 210
      {12, 5, 3, 1},                 // 24; two of six: 32
      {2, 25, 1, 0},  {3, 1, 1, 0},  // 8 instead of 9: less than a fifth
  };
  for (const Case& c : cases) {
    const cpu::Tiling tiling = tiling_of(c.taps, c.outputs);
    EXPECT_EQ(tiling.tiles(), c.tiles > 0) << c.taps << " " << c.outputs;
    EXPECT_EQ(tiling.parts, c.parts) << c.taps << " " << c.outputs;
    if (c.tiles > 0) {
      EXPECT_EQ(tiling.row, c.tiles) << c.taps << " " << c.outputs;
    }
  }
}

}  // namespace
}  // namespace troupe::model

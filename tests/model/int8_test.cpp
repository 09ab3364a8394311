// Convolutions in int8: that they are what int8.h defines, on every kind of vector.

#include "model/int8.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "model/backend/cpu/int8.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/quad_vectors.h"
#include "model/backend/cpu/quantised_convolution.h"
#include "model/backend/float_environment.h"
#include "tests/model/only_targets.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

using Numbers = std::vector<float>;

// A convolution of several channels to several, without upsampling half of the time.
ConvolutionForward some_convolution(Draw& draw) {
  ConvolutionForward convolution;
  convolution.geometry =
      draw.between(0, 1) == 0 ? random_geometry(draw) : random_upsampled_geometry(draw);
  convolution.geometry.in_channels = draw.between(2, 9);
  convolution.geometry.out_channels = draw.between(2, 14);
  convolution.activation.kind = static_cast<ActivationKind>(draw.between(0, 2));
  return convolution;
}

Numbers some_ranges(const ConvolutionForward& convolution, Draw& draw) {
  Numbers ranges;
  for (std::int64_t c = 0; c < convolution.geometry.in_channels; ++c) {
    ranges.push_back(static_cast<float>(draw.uniform() * 0.9 + 0.1));
  }
  return ranges;
}

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

float nearest(float value) { return std::nearbyint(std::min(std::max(value, -127.0f), 127.0f)); }

float activated(float value, const Activation& activation) {
  if (activation.kind == ActivationKind::kLinear || value > 0 || std::isnan(value)) return value;
  return activation.kind == ActivationKind::kRelu ? 0.0f
                                                  : value * static_cast<float>(activation.slope);
}

// Kernel cells that meet one cell of the image, for each output: the collapsed kernel is found by
// walking over the taps of the upsampled image, and added in double.
class Definition {
 public:
  Definition(const ConvolutionForward& convolution, const Numbers& kernel, const Numbers& ranges)
      : op_(convolution), g_(convolution.geometry), kernel_(kernel), ranges_(ranges) {
    const auto phases = g_.upsample;
    steps_.assign(at(g_.out_channels), 0.0f);
    for (std::int64_t o = 0; o < g_.out_channels; ++o) {
      float largest = 0.0f;
      for (std::int64_t px = 0; px < phases[0]; ++px) {
        for (std::int64_t py = 0; py < phases[1]; ++py) {
          for (std::int64_t pz = 0; pz < phases[2]; ++pz) {
            for_each_coarse({px, py, pz}, [&](const Extent& tap) {
              for (std::int64_t c = 0; c < g_.in_channels; ++c) {
                largest = std::max(largest, std::abs(weight({px, py, pz}, tap, c, o)));
              }
            });
          }
        }
      }
      steps_[at(o)] = largest / 127.0f;
    }
  }

  // The outputs of one event.
  Numbers outputs(const float* image, const float* bias) const {
    Numbers largest(at(g_.in_channels), 0.0f);
    for (std::int64_t i = 0; i < g_.in[0] * g_.in[1] * g_.in[2] * g_.in_channels; ++i) {
      float& most = largest[at(i % g_.in_channels)];
      most = std::max(most, std::abs(image[i]));
    }
    float of_event = 0.0f;
    for (std::size_t c = 0; c < largest.size(); ++c) {
      of_event = std::max(of_event, largest[c] / ranges_[c]);
    }
    const float step = of_event / 127.0f;
    Numbers all;
    for (std::int64_t x = 0; x < g_.out[0]; ++x) {
      for (std::int64_t y = 0; y < g_.out[1]; ++y) {
        for (std::int64_t z = 0; z < g_.out[2]; ++z) {
          for (std::int64_t o = 0; o < g_.out_channels; ++o) {
            const std::int64_t sum = sum_of(image, step, {x, y, z}, o);
            const float scaled = static_cast<float>(sum) * (step * steps_[at(o)]);
            all.push_back(activated(scaled + (g_.bias ? bias[o] : 0.0f), op_.activation));
          }
        }
      }
    }
    return all;
  }

 private:
  static std::int64_t floor_of(std::int64_t a, std::int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
  }

  template <class Use>
  void for_each_coarse(const Extent& phase, const Use& use) const {
    Extent end;
    for (std::size_t i = 0; i < 3; ++i) end[i] = (phase[i] + g_.kernel[i] - 1) / g_.upsample[i] + 1;
    for (std::int64_t x = 0; x < end[0]; ++x) {
      for (std::int64_t y = 0; y < end[1]; ++y) {
        for (std::int64_t z = 0; z < end[2]; ++z) use(Extent{x, y, z});
      }
    }
  }

  // v of int8.h.
  float weight(const Extent& phase, const Extent& tap, std::int64_t c, std::int64_t o) const {
    double sum = 0.0;
    for (std::int64_t x = 0; x < g_.kernel[0]; ++x) {
      for (std::int64_t y = 0; y < g_.kernel[1]; ++y) {
        for (std::int64_t z = 0; z < g_.kernel[2]; ++z) {
          if ((phase[0] + x) / g_.upsample[0] != tap[0]) continue;
          if ((phase[1] + y) / g_.upsample[1] != tap[1]) continue;
          if ((phase[2] + z) / g_.upsample[2] != tap[2]) continue;
          const std::int64_t cell = (x * g_.kernel[1] + y) * g_.kernel[2] + z;
          sum +=
              static_cast<double>(kernel_[at((cell * g_.in_channels + c) * g_.out_channels + o)]);
        }
      }
    }
    return static_cast<float>(sum) * ranges_[at(c)];
  }

  std::int64_t sum_of(const float* image, float step, const Extent& place, std::int64_t o) const {
    Extent phase, first;
    for (std::size_t i = 0; i < 3; ++i) {
      first[i] = floor_of(place[i] - g_.pad_before[i], g_.upsample[i]);
      phase[i] = place[i] - g_.pad_before[i] - first[i] * g_.upsample[i];
    }
    std::int64_t sum = 0;
    for_each_coarse(phase, [&](const Extent& tap) {
      std::int64_t cell = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        const std::int64_t coarse = first[i] + tap[i];
        if (coarse < 0 || coarse >= g_.in[i]) return;
        cell = cell * g_.in[i] + coarse;
      }
      for (std::int64_t c = 0; c < g_.in_channels; ++c) {
        const float of_channel = step * ranges_[at(c)];
        const float q = nearest(image[cell * g_.in_channels + c] * (1.0f / of_channel));
        const float p = nearest(weight(phase, tap, c, o) / steps_[at(o)]);
        sum += static_cast<std::int64_t>(q) * static_cast<std::int64_t>(p);
      }
    });
    return sum;
  }

  const ConvolutionForward& op_;
  const ConvolutionGeometry& g_;
  const Numbers& kernel_;
  const Numbers& ranges_;
  Numbers steps_;
};

Numbers computed(const ConvolutionForward& convolution, const Numbers& ranges,
                 Operands<float> operands) {
  run_kernel(*cpu::make_quantised_kernel(convolution, ranges), operands);
  return operands[3];
}

class Int8OfEveryVector : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
    if (GetParam() != 0 && (hwy::SupportedTargets() & GetParam()) == 0) {
      GTEST_SKIP() << "this host has no vectors for it";
    }
    set_float_environment();
  }
};

TEST_P(Int8OfEveryVector, ConvolutionsAreTheDefinition) {
  const OnlyTargets only(GetParam());
  Draw draw(1);
  for (int round = 0; round < 15; ++round) {
    const ConvolutionForward convolution = some_convolution(draw);
    const ConvolutionGeometry& g = convolution.geometry;
    const Numbers ranges = some_ranges(convolution, draw);
    const Operands<float> operands = converted<float>(random_operands(convolution, draw));
    const Definition definition(convolution, operands[1], ranges);
    Numbers wanted;
    for (std::int64_t n = 0; n < g.batch; ++n) {
      const auto event =
          definition.outputs(operands[0].data() + n * g.in[0] * g.in[1] * g.in[2] * g.in_channels,
                             g.bias ? operands[2].data() : nullptr);
      wanted.insert(wanted.end(), event.begin(), event.end());
    }
    ASSERT_TRUE(same_bits({computed(convolution, ranges, operands)}, {wanted})) << round;
  }
}

// The largest numbers of both signs, in every place: sums are not saturated on the way.
TEST_P(Int8OfEveryVector, SumsOfTheLargestNumbersAreExact) {
  const OnlyTargets only(GetParam());
  ConvolutionForward convolution;
  ConvolutionGeometry& g = convolution.geometry;
  g.batch = 1;
  g.in = {3, 4, 5};
  g.kernel = {3, 4, 5};
  g.in_channels = 32;
  g.out_channels = 2;
  g.bias = false;
  g = with_output(g);
  Operands<float> operands(4);
  for (const float image : {1.0f, -1.0f}) {
    for (const float kernel : {1.0f, -1.0f}) {
      operands[0].assign(60 * 32, image);
      operands[1].assign(60 * 32 * 2, kernel);
      operands[3].assign(2, NAN);
      const Numbers sums = computed(convolution, Numbers(32, 1.0f), operands);
      const float exact = image * kernel * 127.0f * 127.0f * 60 * 32;
      EXPECT_EQ(sums[0], exact * ((1.0f / 127.0f) * (1.0f / 127.0f))) << image << " x " << kernel;
      EXPECT_EQ(sums[1], sums[0]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Int8OfEveryVector, testing::Values(HWY_AVX2, HWY_AVX3, 0));

class Int8 : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
    set_float_environment();
  }

  ConvolutionForward cube(std::int64_t batch) const {
    ConvolutionForward convolution;
    ConvolutionGeometry& g = convolution.geometry;
    g.batch = batch;
    g.in = {4, 4, 4};
    g.kernel = {2, 2, 2};
    g.in_channels = 3;
    g.out_channels = 2;
    g = with_output(g);
    return convolution;
  }
};

TEST_F(Int8, EventDoesNotDependOnTheOthersOfItsBatch) {
  Draw draw(2);
  const ConvolutionForward both = cube(2), alone = cube(1);
  const Numbers ranges = some_ranges(both, draw);
  Operands<float> operands = converted<float>(random_operands(both, draw));
  const std::size_t event = operands[0].size() / 2, made = operands[3].size() / 2;
  for (std::size_t i = 0; i < event; ++i) operands[0][i] *= 1000.0f;
  const Numbers of_both = computed(both, ranges, operands);
  operands[0].erase(operands[0].begin(), operands[0].begin() + static_cast<std::ptrdiff_t>(event));
  operands[3].resize(made);
  const Numbers of_one = computed(alone, ranges, operands);
  EXPECT_TRUE(std::equal(of_one.begin(), of_one.end(),
                         of_both.begin() + static_cast<std::ptrdiff_t>(made)));
}

TEST_F(Int8, EmptyEventIsTheBiasAndOneThatIsNoNumberStaysNone) {
  Draw draw(3);
  const ConvolutionForward convolution = cube(1);
  const Numbers ranges = some_ranges(convolution, draw);
  Operands<float> operands = converted<float>(random_operands(convolution, draw));
  std::fill(operands[0].begin(), operands[0].end(), 0.0f);
  const Numbers empty = computed(convolution, ranges, operands);
  for (std::size_t i = 0; i < empty.size(); ++i) EXPECT_EQ(empty[i], operands[2][i % 2]);
  for (const float bad : {NAN, std::numeric_limits<float>::infinity()}) {
    Operands<float> broken = operands;
    broken[0][7] = bad;
    for (const float value : computed(convolution, ranges, broken)) {
      EXPECT_FALSE(std::isfinite(value));
    }
    broken = operands;
    broken[0].assign(broken[0].size(), 1.0f);
    broken[1][0] = bad;  // of the first output
    EXPECT_FALSE(std::isfinite(computed(convolution, ranges, broken)[0]));
  }
}

// Numbers so small that they have no step.
TEST_F(Int8, SubnormalStepsAreZero) {
  Draw draw(4);
  const ConvolutionForward convolution = cube(1);
  Operands<float> operands = converted<float>(random_operands(convolution, draw));
  for (float& value : operands[0]) value *= 0x1p-140f;
  const Numbers tiny = computed(convolution, Numbers(3, 1.0f), operands);
  for (std::size_t i = 0; i < tiny.size(); ++i) EXPECT_EQ(tiny[i], operands[2][i % 2]);
}

// As convolutions of a program come: what is measured is the largest share of each channel in any
// event, a silent one counting a little.
TEST_F(Int8, BackendsMeasureTheNetworkAndComputeNearlyTheSame) {
  ChannelRanges ranges;
  const auto measuring = make_measuring_backend(ranges);
  ASSERT_TRUE(measuring.ok()) << measuring.error().message;
  const ConvolutionForward convolution = cube(2);
  Draw draw(5);
  Operands<float> operands = converted<float>(random_operands(convolution, draw));
  const std::size_t event = operands[0].size() / 2;
  for (std::size_t i = 0; i < operands[0].size(); ++i) {
    const std::size_t channel = i % 3;
    operands[0][i] = channel == 2 ? 0.0f : std::clamp(operands[0][i], -0.1f, 0.1f);
  }
  operands[0][0] = -8.0f;
  operands[0][1] = 2.0f;
  operands[0][event] = 0.5f;
  operands[0][event + 1] = -0.25f;
  Operands<float> exact = operands, close = operands;
  run_operation(**measuring, Operation(convolution), exact);
  EXPECT_EQ(ranges, (ChannelRanges{{1.0f, 0.5f, 1.0f / 64}}));
  const auto int8 = make_int8_backend(ranges);
  ASSERT_TRUE(int8.ok()) << int8.error().message;
  run_operation(**int8, Operation(convolution), close);
  double worst = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < exact[3].size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(exact[3][i] - close[3][i])));
    largest = std::max(largest, std::abs(static_cast<double>(exact[3][i])));
  }
  EXPECT_GT(worst, 0.0);
  EXPECT_LT(worst, 0.05 * largest);
}

TEST_F(Int8, ConvolutionsOfOneChannelStayFloat) {
  ConvolutionForward one = cube(1);
  EXPECT_TRUE(cpu::can_be_quantised(one));
  one.geometry.out_channels = 1;
  EXPECT_FALSE(cpu::can_be_quantised(one));
  one = cube(1);
  one.geometry.in_channels = cpu::kMostProductsInt8 / 8 + 1;
  EXPECT_FALSE(cpu::can_be_quantised(one));
}

}  // namespace
}  // namespace troupe::model

// Convolutions that compute small images of several samples side by side.

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "model/backend/cpu/plane_geometry.h"
#include "model/backend/cpu/plane_vectors.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

// Few cells, and more samples and other channels than vectors have lanes.
ConvolutionGeometry small_geometry(Draw& draw) {
  ConvolutionGeometry g = random_geometry(draw);
  g.batch = draw.between(1, 37);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (g.in[axis] == 1) continue;  // spatial rank 2
    g.in[axis] = draw.between(1, 7);
    g.kernel[axis] = std::min(g.kernel[axis], g.in[axis]);
    g.pad_before[axis] = draw.between(0, g.kernel[axis] + 1);
    g.pad_after[axis] = draw.between(0, g.kernel[axis] - 1);
  }
  const auto channels = [&] { return draw.between(0, 3) == 0 ? 1 : draw.between(2, 35); };
  g.in_channels = channels();
  g.out_channels = channels();
  return with_output(g);
}

std::vector<float> sample_of(const std::vector<float>& all, std::int64_t batch, std::int64_t n) {
  const auto size = static_cast<std::int64_t>(all.size()) / batch;
  return {all.begin() + n * size, all.begin() + (n + 1) * size};
}

// `images`: indices of the operands that have a part for each sample, the last one the result.
template <class Convolution>
void expect_bits_of_each_alone(const Convolution& convolution, std::vector<std::size_t> images,
                               const Backend& backend, Draw& draw) {
  const std::int64_t batch = convolution.geometry.batch;
  const Operands<float> given = converted<float>(random_operands(convolution, draw));
  Operands<float> together = given;
  run_operation(backend, convolution, together);
  Convolution of_one = convolution;
  of_one.geometry.batch = 1;
  for (std::int64_t n = 0; n < batch; ++n) {
    Operands<float> alone = given;
    for (const std::size_t i : images) alone[i] = sample_of(given[i], batch, n);
    run_operation(backend, of_one, alone);
    ASSERT_TRUE(same_bits({sample_of(together[images.back()], batch, n)}, {alone[images.back()]}))
        << operation_name(convolution) << ", sample " << n << " of " << batch;
  }
}

TEST(SmallImages, SamplesSideBySideHaveTheBitsOfEachAlone) {
  int side_by_side = 0, with_rest = 0;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto backend = make_portable_backend(precision);
    if (!backend.ok()) GTEST_SKIP() << backend.error().message;
    (*backend)->prepare_thread();
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
      SCOPED_TRACE(seed);
      Draw draw(seed);
      const ConvolutionGeometry g = small_geometry(draw), rows = cpu::with_long_rows(g);
      const auto samples = cpu::side_by_side(rows, cpu::tiling_of<float>(rows)).samples;
      side_by_side += samples > 1 ? 1 : 0;
      with_rest += samples > 1 && g.batch % samples != 0 ? 1 : 0;
      const Activation activation{static_cast<ActivationKind>(draw.between(0, 2)), 0.3};
      expect_bits_of_each_alone(ConvolutionForward{g, activation}, {0, 3}, **backend, draw);
      expect_bits_of_each_alone(ConvolutionBackwardInput{g}, {0, 2}, **backend, draw);
    }
  }
  EXPECT_GT(side_by_side, 100);
  EXPECT_GT(with_rest, 50);
}

// FNV-1a of the bits of results.
class Digest {
 public:
  void add(const std::vector<float>& values) {
    for (const float value : values) {
      hash_ = (hash_ ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001B3u;
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

// Results of micro-batches of small images in all directions.
std::uint64_t digest_of_results(const Backend& backend) {
  Digest digest;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Draw draw(seed);
    const ConvolutionGeometry g = small_geometry(draw);
    for (const Operation& operation :
         std::initializer_list<Operation>{ConvolutionForward{g, {}}, ConvolutionBackwardInput{g},
                                          ConvolutionBackwardParameters{g}}) {
      Operands<float> operands = converted<float>(random_operands(operation, draw));
      run_operation(backend, operation, operands);
      for (const auto& operand : operands) digest.add(operand);
    }
  }
  return digest.value();
}

// Models were trained with them. Other bits are another numerics class (portable_class).
TEST(SmallImages, HaveTheBitsOfTheirNumericsClass) {
  const auto fp32 = make_portable_backend(Precision::kFp32);
  if (!fp32.ok()) GTEST_SKIP() << fp32.error().message;
  (*fp32)->prepare_thread();
  EXPECT_EQ((*fp32)->numerics_class(), std::string("portable float32 3"));
  EXPECT_EQ(digest_of_results(**fp32), 11563037638045493196u);
  const auto bf16 = make_portable_backend(Precision::kBf16);
  EXPECT_EQ((*bf16)->numerics_class(), std::string("portable bfloat16 4"));
  EXPECT_EQ(digest_of_results(**bf16), 17540084987510744860u);
}

}  // namespace
}  // namespace troupe::model

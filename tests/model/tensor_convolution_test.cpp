// Kernels of `kernels: fastest`. On a device without tensor cores their products are made in
// ordinary arithmetic: PoCL proves everything but the instruction, and a card that too.

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "model/backend/device/backend.h"
#include "tests/model/device_support.h"

namespace troupe::model {
namespace {

using device::Device;

std::unique_ptr<Backend> played(const std::shared_ptr<Device>& device, std::int64_t group,
                                Precision precision) {
  auto backend =
      device::make_fastest_backend(device, group, precision, device::Products::kPlayedTensorCores);
  EXPECT_TRUE(backend.ok()) << backend.error().message;
  return std::move(*backend);
}

// Small whole numbers, which every precision holds, and whose products add up without rounding in
// any order.
Operands<float> whole_numbers(const Operation& operation, Draw& draw) {
  Operands<float> operands = converted<float>(random_operands(operation, draw));
  for (std::vector<float>& operand : operands) {
    for (float& value : operand) {
      if (!std::isnan(value)) value = static_cast<float>(draw.between(-3, 3));
    }
  }
  return operands;
}

class TensorConvolution : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    device_ = open_device();
    ASSERT_NE(device_, nullptr);
    if (device_->facts().is_gpu && device_->facts().tensor_cores == 0) {
      GTEST_SKIP() << "a card without tensor cores";
    }
    backend_ = played(device_, 3, GetParam());
  }
  // The three convolutions of the geometry, for a group of two.
  void expect_those_of(const Backend& host, const ConvolutionGeometry& g, Draw& draw,
                       bool exact = true) {
    host.prepare_thread();
    const Activation leaky{.kind = ActivationKind::kLeakyRelu, .slope = 0.5};
    for (const Operation& operation :
         {Operation(ConvolutionForward{g, leaky}), Operation(ConvolutionBackwardInput{g}),
          Operation(ConvolutionBackwardParameters{g})}) {
      const auto drawn = [&] {
        return exact ? whole_numbers(operation, draw)
                     : converted<float>(random_operands(operation, draw));
      };
      std::vector<Operands<float>> found;
      for (int m = 0; m < 2; ++m) found.push_back(drawn());
      const auto described = operands_of(operation);
      for (std::size_t i = 0; i < described.size(); ++i) {
        if (is_shared(described[i].name)) found[1][i] = found[0][i];
      }
      std::vector<Operands<float>> want = found;
      for (Operands<float>& operands : want) run_operation(host, operation, operands);
      const auto kernel = backend_->make_kernel(operation);
      ASSERT_TRUE(kernel.ok());
      run_as_group(*device_, **kernel, operation, found);
      for (std::size_t m = 0; m < want.size(); ++m) {
        EXPECT_TRUE(want[m] == found[m])
            << operation_name(operation) << " of " << g.in[0] << "x" << g.in[1] << "x" << g.in[2]
            << "x" << g.in_channels << " to " << g.out_channels << ", kernel " << g.kernel[0] << "x"
            << g.kernel[1] << "x" << g.kernel[2] << ", micro-batch " << m;
      }
    }
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Backend> reference_ = make_reference_backend(DataType::kFloat32);
};

TEST_P(TensorConvolution, AddsTheProductsOfEveryTap) {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    Draw draw(seed);
    expect_those_of(*reference_, random_geometry(draw), draw);
  }
}

ConvolutionGeometry geometry(const Extent& in, const Extent& kernel, std::int64_t in_channels,
                             std::int64_t out_channels) {
  ConvolutionGeometry g;
  g.batch = 1;
  g.in = in;
  g.kernel = kernel;
  for (std::size_t axis = 0; axis < 3; ++axis) g.pad_before[axis] = kernel[axis] / 2;
  g.in_channels = in_channels;
  g.out_channels = out_channels;
  return with_output(g);
}

// Images of several blocks along y and z, side by side and one below the other, of several chunks
// of channels, parts of x planes, tiles and rounds of taps.
TEST_P(TensorConvolution, IsCutWhereAnImageIsLargerThanABlock) {
  Draw draw(7);
  expect_those_of(*reference_, geometry({3, 30, 40}, {2, 3, 3}, 19, 9), draw);
  expect_those_of(*reference_, geometry({10, 9, 17}, {3, 4, 6}, 6, 3), draw);
  expect_those_of(*reference_, geometry({2, 6, 70}, {1, 6, 6}, 16, 8), draw);
  expect_those_of(*reference_, geometry({2, 50, 9}, {2, 9, 8}, 3, 2), draw);
}

// A tile of four words a cell does not fit, and one of fewer does.
TEST_P(TensorConvolution, TakesKernelsThatAreLongAlongY) {
  Draw draw(9);
  expect_those_of(*reference_, geometry({1, 16, 9}, {1, 14, 2}, 2, 3), draw);
  expect_those_of(*reference_, geometry({1, 16, 9}, {1, 14, 1}, 10, 3), draw);
}

TEST_P(TensorConvolution, IsThePortableOneWhereATileDoesNotFitABlock) {
  const auto portable = make_portable_backend();
  ASSERT_TRUE(portable.ok());
  Draw draw(8);
  ConvolutionGeometry g = geometry({1, 61, 203}, {1, 60, 200}, 1, 1);
  g.bias = false;
  expect_those_of(**portable, g, draw, false);
}

// What is rounded: the factors, to the nearest, and nothing else.
TEST_P(TensorConvolution, RoundsFactorsToTheNearest) {
  ConvolutionForward convolution{geometry({1, 4, 8}, {1, 1, 1}, 1, 1), {}};
  convolution.geometry.pad_before = {};
  convolution.geometry = with_output(convolution.geometry);
  convolution.geometry.bias = false;
  const Operation operation = convolution;
  const auto kernel = backend_->make_kernel(operation);
  ASSERT_TRUE(kernel.ok());
  const bool bf16 = GetParam() == Precision::kBf16;
  const float unit = bf16 ? 0x1p-7f : 0x1p-10f;  // of the last place of numbers from 1 to 2
  std::vector<Operands<float>> operands{
      Operands<float>{std::vector<float>(32), {1.0f}, {}, std::vector<float>(32)}};
  operands.push_back(operands[0]);
  std::vector<float>& x = operands[0][0];
  x = {1.0f + 0.49f * unit, 1.0f + 0.51f * unit, 1.0f - 0.24f * unit, -1.0f - 0.51f * unit};
  x.resize(32, 3.0f);
  operands[1][0][3] = NAN;  // which its neighbours may become too, but no number
  operands[1][0][25] = -INFINITY;
  run_as_group(*device_, **kernel, operation, operands);
  std::vector<float> want{1.0f, 1.0f + unit, 1.0f, -1.0f - unit};
  want.resize(32, 3.0f);
  EXPECT_EQ(operands[0][3], want);
  EXPECT_TRUE(std::isnan(operands[1][3][3]));
  EXPECT_FALSE(std::isfinite(operands[1][3][25]));
}

INSTANTIATE_TEST_SUITE_P(Of, TensorConvolution,
                         testing::Values(Precision::kBf16, Precision::kFp32));

// A device without tensor cores computes the portable kernels, and says so.
TEST(FastestKernels, ArePortableOnesWithoutTensorCores) {
  const auto device = open_device();
  ASSERT_NE(device, nullptr);
  if (device->facts().tensor_cores != 0) GTEST_SKIP() << "this device has tensor cores";
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto fastest = device::make_fastest_backend(device, 3, precision);
    ASSERT_TRUE(fastest.ok());
    EXPECT_EQ((*fastest)->numerics_class(), portable_class(Precision::kFp32));
  }
  EXPECT_EQ(played(device, 1, Precision::kFp32)->numerics_class(),
            "fastest tf32 3 played tensor cores");
}

}  // namespace
}  // namespace troupe::model

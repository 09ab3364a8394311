// What `kernels: portable` promises: the same bits whatever vectors the host has.

#include <gtest/gtest.h>

#include "model/backend/cpu/plane_vectors.h"
#include "tests/model/only_targets.h"
#include "tests/model/op_support.h"
#include "tests/support/fails_with.h"

namespace troupe::model {
namespace {

class PortableBackendOf : public testing::TestWithParam<Precision> {};

TEST_P(PortableBackendOf, EveryOperationIsTheSameBitsWithAvx2AndAvx512) {
  if ((hwy::SupportedTargets() & HWY_AVX3) == 0) GTEST_SKIP() << "no AVX-512 on this host";
  const auto backend = make_portable_backend(GetParam());
  ASSERT_TRUE(backend.ok());
  (*backend)->prepare_thread();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Draw draw(seed);
    for (const Operation& operation : random_operations(draw)) {
      Operands<float> narrow = converted<float>(random_operands(operation, draw)), wide = narrow;
      {
        const OnlyTargets only(HWY_AVX2);
        EXPECT_EQ(cpu::vector_lanes(), 8);
        run_operation(**backend, operation, narrow);
      }
      EXPECT_EQ(cpu::vector_lanes(), 16);
      run_operation(**backend, operation, wide);
      EXPECT_TRUE(same_bits(narrow, wide)) << operation_name(operation) << " seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precision, PortableBackendOf,
                         testing::Values(Precision::kFp32, Precision::kBf16), [](const auto& test) {
                           return test.param == Precision::kFp32 ? "fp32" : "bf16";
                         });

TEST(PortableBackend, IsRefusedWithoutFusedMultiplyAdd) {
  const OnlyTargets only(HWY_SSE4);
  ASSERT_THAT(make_portable_backend(), FailsWith(runtime::ErrorKind::kUsage, "AVX2"));
}

}  // namespace
}  // namespace troupe::model

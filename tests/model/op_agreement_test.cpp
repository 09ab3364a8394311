// Every kernel in float against the reference in double, over random sizes.

#include <cmath>

#include <gtest/gtest.h>

#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

// Largest error of `values` as a part of the largest number the judge has; NaN anywhere is 1e30.
double worst_error(const std::vector<float>& values, const std::vector<double>& judge) {
  double magnitude = 1e-3, worst = 0.0;
  for (double value : judge) magnitude = std::max(magnitude, std::fabs(value));
  for (std::size_t i = 0; i < judge.size(); ++i) {
    const double error = std::fabs(static_cast<double>(values[i]) - judge[i]);
    worst = std::isnan(error) ? 1e30 : std::max(worst, error);
  }
  return worst / magnitude;
}

void expect_agreement(const Backend& backend, const Operation& operation, std::uint64_t seed) {
  Draw draw(seed);
  Operands<double> judged = random_operands(operation, draw);
  Operands<float> operands = converted<float>(judged);
  runtime::RandomPosition random;
  random.seed = seed;
  random.iteration = 7;
  const auto judge = make_reference_backend(DataType::kFloat64);
  run_operation(*judge, operation, judged, random);
  run_operation(backend, operation, operands, random);
  const auto described = operands_of(operation);
  for (std::size_t i = 0; i < described.size(); ++i) {
    EXPECT_LT(worst_error(operands[i], judged[i]), 1e-5)
        << operation_name(operation) << " " << described[i].name << " seed " << seed;
  }
}

void expect_agreement_over_seeds(const Backend& backend) {
  backend.prepare_thread();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Draw draw(seed);
    const auto operations = random_operations(draw);
    ASSERT_EQ(operations.size(), std::variant_size_v<Operation>);
    for (std::size_t i = 0; i < operations.size(); ++i) {
      ASSERT_EQ(operations[i].index(), i);
      expect_agreement(backend, operations[i], seed);
    }
  }
}

TEST(OpAgreement, CpuMatchesTheDoubleReferenceOverRandomSizes) {
  expect_agreement_over_seeds(*make_cpu_backend());
}

TEST(OpAgreement, PortableMatchesTheDoubleReferenceOverRandomSizes) {
  const auto backend = make_portable_backend();
  if (!backend.ok()) GTEST_SKIP() << backend.error().message;
  expect_agreement_over_seeds(**backend);
}

TEST(OpAgreement, FloatReferenceMatchesTheDoubleReferenceOverRandomSizes) {
  expect_agreement_over_seeds(*make_reference_backend(DataType::kFloat32));
}

}  // namespace
}  // namespace troupe::model

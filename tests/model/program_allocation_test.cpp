#include <gtest/gtest.h>

#include "tests/model/allocation_counter.h"
#include "tests/model/example_networks.h"
#include "tests/model/program_runner.h"

namespace troupe::model {
namespace {

void expect_no_allocation(const Backend& backend, const NetworkDescription& network) {
  ProgramRunner<float> runner(network, backend, 2);
  const Bindings bindings = runner.bindings();
  const auto run_all = [&] {
    const Program& program = runner.program();
    program.run(Pass::kForwardInference, bindings, runner.workspace());
    program.run(Pass::kForwardTraining, bindings, runner.workspace());
    program.run(Pass::kBackwardParameters, bindings, runner.workspace());
    program.run(Pass::kForwardTraining, bindings, runner.workspace());
    program.run(Pass::kBackwardInput, bindings, runner.workspace());
  };
  run_all();  // the first run in a thread may set up thread-local storage
  const std::int64_t before = allocations_so_far();
  run_all();
  EXPECT_EQ(allocations_so_far() - before, 0) << network.name;
}

TEST(ProgramAllocation, RunningAllocatesNothing) {
  const auto backend = make_reference_backend(DataType::kFloat32);
  expect_no_allocation(*backend, small_generator());
  expect_no_allocation(*backend, small_discriminator());
}

TEST(ProgramAllocation, RunningPortableKernelsAllocatesNothing) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto backend = make_portable_backend(precision);
    if (!backend.ok()) GTEST_SKIP() << backend.error().message;
    (*backend)->prepare_thread();
    expect_no_allocation(**backend, small_generator());
    expect_no_allocation(**backend, small_discriminator());
  }
}

TEST(ProgramAllocation, AllocationsAreCounted) {
  const std::int64_t before = allocations_so_far();
  const std::vector<double> some(100);
  EXPECT_EQ(some.size(), 100u);
  EXPECT_GT(allocations_so_far() - before, 0);
}

}  // namespace
}  // namespace troupe::model

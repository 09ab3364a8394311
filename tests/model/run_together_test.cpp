// Kernels that several threads compute together give the bits of one thread.

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "model/program.h"
#include "tests/model/allocation_counter.h"
#include "tests/model/example_networks.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

// Scratch memory of each thread, full of garbage.
class Scratches {
 public:
  Scratches(const Kernel& kernel, int threads) {
    for (int i = 0; i < threads; ++i) {
      memories_.emplace_back(kernel.scratch_bytes() + 64, std::byte{0xff});
      void* place = memories_.back().data();
      std::size_t space = memories_.back().size();
      places_.push_back(
          static_cast<std::byte*>(std::align(64, kernel.scratch_bytes(), place, space)));
    }
  }
  std::span<std::byte* const> places() const { return places_; }

 private:
  std::vector<std::vector<std::byte>> memories_;
  std::vector<std::byte*> places_;
};

void run_together(const Kernel& kernel, runtime::ThreadTeam& team, Operands<float>& operands) {
  std::vector<void*> pointers;
  for (auto& operand : operands) pointers.push_back(operand.empty() ? nullptr : operand.data());
  const Scratches scratches(kernel, team.threads());
  kernel.run_together(pointers, {}, Crew(team, scratches.places(), 0.0));
}

void expect_same_bits(const Backend& backend, const Operation& operation, std::uint64_t seed) {
  Draw draw(seed);
  const Operands<float> given = converted<float>(random_operands(operation, draw));
  Operands<float> alone = given;
  const auto kernel = std::move(*backend.make_kernel(operation));
  run_kernel(*kernel, alone);
  for (const int threads : {1, 2, 5}) {
    runtime::ThreadTeam team(threads, [&] { backend.prepare_thread(); });
    Operands<float> together = given;
    run_together(*kernel, team, together);
    EXPECT_TRUE(same_bits(together, alone))
        << operation_name(operation) << ", " << threads << " threads, seed " << seed;
  }
}

TEST(RunTogether, EveryOperationGivesTheBitsOfOneThread) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto backend = make_portable_backend(precision);
    if (!backend.ok()) GTEST_SKIP() << backend.error().message;
    (*backend)->prepare_thread();
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Draw draw(seed);
      for (const Operation& operation : random_operations(draw)) {
        expect_same_bits(**backend, operation, seed);
      }
    }
  }
}

TEST(RunTogether, ConvolutionsOfManyShapesGiveTheBitsOfOneThread) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto backend = make_portable_backend(precision);
    if (!backend.ok()) GTEST_SKIP() << backend.error().message;
    (*backend)->prepare_thread();
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Draw draw(seed);
      ConvolutionGeometry g =
          seed % 3 == 0 ? random_upsampled_geometry(draw) : random_geometry(draw);
      g.batch = draw.between(1, 5);
      if (seed % 3 == 1) {  // tiles, and several groups of planes
        g.in = {draw.between(9, 20), draw.between(3, 6), draw.between(12, 30)};
        g.kernel = {draw.between(1, 4), draw.between(1, 3), draw.between(3, 7)};
        g = with_output(g);
      }
      expect_same_bits(**backend, ConvolutionForward{g, {ActivationKind::kLeakyRelu, 0.3}}, seed);
      expect_same_bits(**backend, ConvolutionBackwardInput{g}, seed);
      expect_same_bits(**backend, ConvolutionBackwardParameters{g}, seed);
    }
  }
}

// For work that is worth it. Who takes part depends on the system, so it is asked for repeatedly,
// and long where it has to be: others may have the processors.
TEST(RunTogether, LargeKernelsAreSharedOutAndSmallOnesAreNot) {
  const auto backend = make_portable_backend();
  if (!backend.ok()) GTEST_SKIP() << backend.error().message;
  runtime::ThreadTeam team(2, [&] { (*backend)->prepare_thread(); });
  const auto others_take_part = [&](const Operation& operation, int times) {
    Draw draw(1);
    Operands<float> operands = converted<float>(random_operands(operation, draw));
    std::vector<void*> pointers;
    for (auto& operand : operands) pointers.push_back(operand.data());
    const auto kernel = std::move(*(*backend)->make_kernel(operation));
    for (int i = 0; i < times; ++i) {
      const Scratches scratches(*kernel, 2);
      kernel->run_together(pointers, {}, Crew(team, scratches.places()));
      const std::byte* other = scratches.places()[1];
      if (std::any_of(other, other + kernel->scratch_bytes(),
                      [](std::byte b) { return b != std::byte{0xff}; })) {
        return true;
      }
    }
    return false;
  };
  ConvolutionGeometry g{.batch = 4, .in = {12, 12, 24}, .out = {}, .kernel = {3, 3, 5}};
  g.in_channels = g.out_channels = 8;
  g.bias = true;
  const auto large = with_output(g);
  EXPECT_TRUE(others_take_part(ConvolutionForward{large, {}}, 20'000));
  EXPECT_TRUE(others_take_part(ConvolutionBackwardInput{large}, 20'000));
  g.in = {4, 4, 24};
  EXPECT_FALSE(others_take_part(ConvolutionForward{with_output(g), {}}, 50));
}

TEST(RunTogether, AProgramWithATeamSharesOutItsKernelsAndAllocatesNothing) {
  const auto backend = make_portable_backend();
  if (!backend.ok()) GTEST_SKIP() << backend.error().message;
  (*backend)->prepare_thread();
  ProgramOptions options;
  options.batch = 2;
  options.forward_training = false;
  const auto program = Program::compile(gan3d_51_discriminator(), **backend, options).value();
  const std::vector<float> parameters(static_cast<std::size_t>(program->parameters().size()), 0.1f);
  Bindings bindings;
  bindings.weights = bindings.moving = parameters.data();
  Workspace workspace(*program), other(*program);
  const auto run = [&] {
    const auto input = program->input<float>(workspace);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 7);
    program->run(Pass::kForwardInference, bindings, workspace);
    const auto output = program->output<float>(workspace, 0);
    return Operands<float>{{output.begin(), output.end()}};
  };
  const Operands<float> alone = run();
  runtime::ThreadTeam team(2, [&] { (*backend)->prepare_thread(); });
  Workspace* const others[] = {&other};
  workspace.compute_with(&team, others);
  const auto taken_part = [&] {
    const std::byte* scratch = other.scratch();
    return std::any_of(scratch, scratch + program->scratch_bytes(),
                       [](std::byte b) { return b != std::byte{0}; });
  };
  EXPECT_FALSE(taken_part());
  for (int i = 0; i < 20 && !taken_part(); ++i) EXPECT_TRUE(same_bits(run(), alone));
  EXPECT_TRUE(taken_part());
  const std::int64_t before = allocations_so_far();
  program->run(Pass::kForwardInference, bindings, workspace);
  EXPECT_EQ(allocations_so_far(), before);
}

TEST(RunTogether, LongDropoutGivesTheBitsOfOneThread) {
  const auto backend = make_portable_backend();
  if (!backend.ok()) GTEST_SKIP() << backend.error().message;
  (*backend)->prepare_thread();
  for (const std::int64_t elements : {1, 65535, 65536, 65537, 300003}) {
    expect_same_bits(**backend, DropoutForward{elements, 0.2, 7}, 1);
  }
}

}  // namespace
}  // namespace troupe::model

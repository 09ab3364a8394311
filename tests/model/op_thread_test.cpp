// Kernels shared by threads, and the promises every backend makes about all operations.

#include <thread>

#include <gmock/gmock.h>

#include "model/backend/cpu/processor.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

std::vector<Operation> many_operations() {
  std::vector<Operation> all;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Draw draw(100 + seed);
    for (auto& operation : random_operations(draw)) all.push_back(operation);
  }
  return all;
}

void expect_same_bits_on_two_threads(const Backend& backend) {
  for (const Operation& operation : many_operations()) {
    Draw draw(3);
    const Operands<float> start = converted<float>(random_operands(operation, draw));
    auto made = backend.make_kernel(operation);
    ASSERT_TRUE(made.ok()) << made.error().message;
    const Kernel& kernel = **made;
    Operands<float> results[3] = {start, start, start};
    const auto run = [&](int index) {
      backend.prepare_thread();
      for (int repeat = 0; repeat < 3; ++repeat) {
        Operands<float> operands = start;
        run_kernel(kernel, operands);
        results[index] = operands;
      }
    };
    std::thread first(run, 0), second(run, 1);
    first.join();
    second.join();
    std::thread alone(run, 2);
    alone.join();
    EXPECT_TRUE(same_bits(results[0], results[1])) << operation_name(operation);
    EXPECT_TRUE(same_bits(results[0], results[2])) << operation_name(operation);
  }
}

TEST(OpThread, CpuKernelGivesTheSameBitsOnTwoThreadsAtOnceAndAlone) {
  expect_same_bits_on_two_threads(*make_cpu_backend());
}

TEST(OpThread, PortableKernelGivesTheSameBitsOnTwoThreadsAtOnceAndAlone) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const auto backend = make_portable_backend(precision);
    if (!backend.ok()) GTEST_SKIP() << backend.error().message;
    expect_same_bits_on_two_threads(**backend);
  }
}

TEST(OpThread, ReferenceKernelGivesTheSameBitsOnTwoThreadsAtOnceAndAlone) {
  expect_same_bits_on_two_threads(*make_reference_backend(DataType::kFloat32));
}

// A kernel must not depend on which thread made it or how many threads that one may use.
TEST(OpThread, KernelMadeInAnUnpreparedThreadGivesTheSameBits) {
  const auto backend = make_cpu_backend();
  for (const Operation& operation : many_operations()) {
    Draw draw(3);
    Operands<float> here = converted<float>(random_operands(operation, draw));
    Operands<float> there = here;
    std::unique_ptr<Kernel> foreign;
    std::thread maker([&] { foreign = std::move(*backend->make_kernel(operation)); });
    maker.join();
    backend->prepare_thread();
    run_kernel(*foreign, here);
    run_operation(*backend, operation, there);
    EXPECT_TRUE(same_bits(here, there)) << operation_name(operation);
  }
}

TEST(OpBackend, EveryOperationHasItsOwnName) {
  Draw draw(1);
  std::vector<std::string> names;
  for (const auto& operation : random_operations(draw)) names.push_back(operation_name(operation));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(operation_name(ConvolutionForward{}), "convolution_forward");
}

TEST(OpBackend, NumericsClassesDiffer) {
  const auto float_class = make_reference_backend(DataType::kFloat32)->numerics_class();
  EXPECT_NE(float_class, make_reference_backend(DataType::kFloat64)->numerics_class());
  EXPECT_NE(float_class, make_cpu_backend()->numerics_class());
}

// "cpu float32 4, oneDNN 2.6.3 avx2, AMD EPYC 7742 64-Core Processor".
TEST(OpBackend, NumericsClassOfTheLibraryNamesVersionInstructionsAndProcessor) {
  const std::string name = make_cpu_backend()->numerics_class();
  EXPECT_THAT(name, testing::MatchesRegex("cpu float32 4, oneDNN [0-9.]+ [a-z0-9_]+, .*[^ ]"));
  EXPECT_THAT(name, testing::EndsWith(", " + cpu::processor_name()));
}

TEST(OpBackend, NameOfTheProcessorIsTheBrandWithoutWhatPadsIt) {
  using std::string_view_literals::operator""sv;
  for (const auto& [brand, name] :
       {std::pair{"AMD EPYC 7742 64-Core Processor\0\0"sv, "AMD EPYC 7742 64-Core Processor"},
        std::pair{"      Intel(R) Xeon(R) CPU\0\0\0"sv, "Intel(R) Xeon(R) CPU"},
        std::pair{"Virtual Processor   \0"sv, "Virtual Processor"},
        std::pair{"  \0\0"sv, "unnamed processor"}, std::pair{""sv, "unnamed processor"}}) {
    EXPECT_EQ(cpu::name_in_brand(brand), name);
  }
}

}  // namespace
}  // namespace troupe::model

// A device computes the bits of the portable backend, for any group. On hosts without a
// device of its own, OpenCL's processor driver (PoCL) stands in.

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "model/backend/cpu/channel_sums.h"
#include "model/backend/device/backend.h"
#include "model/backend/device/cuda_api.h"
#include "tests/model/device_support.h"
#include "tests/model/op_support.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace troupe::model {
namespace {

class DeviceGroup : public testing::TestWithParam<std::tuple<int, Precision>> {};

TEST_P(DeviceGroup, EveryOperationHasTheBitsOfThePortableBackend) {
  const auto opened = open_device();
  ASSERT_NE(opened, nullptr);
  const std::int64_t group = std::get<0>(GetParam());
  const Precision precision = std::get<1>(GetParam());
  // There is memory for one more than are computed.
  const auto on_device = device::make_portable_backend(opened, group + 1, precision);
  ASSERT_TRUE(on_device.ok()) << on_device.error().message;
  const auto on_host = make_portable_backend(precision);
  ASSERT_TRUE(on_host.ok());
  (*on_host)->prepare_thread();
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Draw draw(seed);
    for (const Operation& operation : random_operations(draw)) {
      runtime::RandomPosition random{.seed = seed, .micro_batch = 0, .iteration = 7, .slot = 2};
      const Operands<float> first = converted<float>(random_operands(operation, draw));
      const auto described = operands_of(operation);
      std::vector<Operands<float>> want, found;
      for (std::int64_t m = 0; m < group; ++m) {
        want.push_back(converted<float>(random_operands(operation, draw)));
        for (std::size_t i = 0; i < described.size(); ++i) {
          if (is_shared(described[i].name)) want.back()[i] = first[i];
        }
      }
      found = want;
      for (std::int64_t m = 0; m < group; ++m) {
        random.micro_batch = 3 + static_cast<std::uint32_t>(m);
        run_operation(**on_host, operation, want[static_cast<std::size_t>(m)], random);
      }
      random.micro_batch = 0;
      const auto kernel = (*on_device)->make_kernel(operation);
      ASSERT_TRUE(kernel.ok());
      run_as_group(*opened, **kernel, operation, found, random);
      for (std::size_t m = 0; m < want.size(); ++m) {
        EXPECT_TRUE(same_bits(want[m], found[m]))
            << operation_name(operation) << " seed " << seed << " micro-batch " << m;
      }
    }
  }
}

// Sums of so many rows that their chains are cut.
TEST(LongSums, HaveTheBitsOfThePortableBackendAndTheSizeOfTheReference) {
  const auto device = open_device();
  ASSERT_NE(device, nullptr);
  const auto on_device = device::make_portable_backend(device, 2, Precision::kFp32);
  const auto on_host = make_portable_backend(Precision::kFp32);
  const auto reference = make_reference_backend(DataType::kFloat32);
  ASSERT_TRUE(on_device.ok() && on_host.ok());
  (*on_host)->prepare_thread();
  ConvolutionBackwardParameters convolution;
  convolution.geometry.batch = 2;
  convolution.geometry.in = convolution.geometry.out = {5, 30, 30};
  convolution.geometry.kernel = {1, 1, 1};
  convolution.geometry.in_channels = 2;
  convolution.geometry.out_channels = 3;
  ASSERT_GT(cpu::ChannelSums(9000, 3).parts, 1);
  ASSERT_GT(cpu::ChannelSums(5000, 6).parts, 1);
  ASSERT_GT(cpu::ChannelSums(30000, 1).parts, 1);
  Draw draw(3);
  for (const Operation& operation :
       {Operation(BatchNormTraining{5000, 6, 1e-3}), Operation(BatchNormBackward{5000, 6}),
        Operation(BatchNormTraining{3000, 48, 1e-3}), Operation(BatchNormInference{3000, 48, 1e-3}),
        Operation(BatchNormBackward{3000, 17}), Operation(SumRows{9, 30000, 1}),
        Operation(convolution)}) {
    std::vector<Operands<float>> found;
    for (int m = 0; m < 2; ++m) found.push_back(converted<float>(random_operands(operation, draw)));
    const auto described = operands_of(operation);
    for (std::size_t i = 0; i < described.size(); ++i) {
      if (is_shared(described[i].name)) found[1][i] = found[0][i];
    }
    const auto given = found;
    const auto kernel = (*on_device)->make_kernel(operation);
    ASSERT_TRUE(kernel.ok());
    run_as_group(*device, **kernel, operation, found);
    for (std::size_t m = 0; m < found.size(); ++m) {
      Operands<float> want = given[m], close = given[m];
      run_operation(**on_host, operation, want, {});
      run_operation(*reference, operation, close, {});
      EXPECT_TRUE(same_bits(want, found[m])) << operation_name(operation);
      for (std::size_t i = 0; i < described.size(); ++i) {
        for (std::size_t k = 0; k < want[i].size(); ++k) {
          ASSERT_NEAR(want[i][k], close[i][k], 1e-4f * (1.0f + std::fabs(close[i][k])))
              << operation_name(operation) << ' ' << described[i].name;
        }
      }
    }
  }
}

TEST(DeviceBackend, RefusesALayerThatItsKernelsCannotCount) {
  const auto device = open_device();
  ASSERT_NE(device, nullptr);
  const auto backend = device::make_portable_backend(device, 1, Precision::kFp32);
  ASSERT_TRUE(backend.ok());
  ActivationForward activation;
  activation.elements = std::int64_t{1} << 31;
  for (const Operation& operation : {Operation(activation), Operation(SumRows{1, 1L << 31, 1}),
                                     Operation(BatchNormTraining{1L << 28, 9, 1e-3}),
                                     Operation(GroupNormForward{1L << 28, 1, 9, 1}),
                                     Operation(RepeatRows{1L << 20, 1L << 10, 2})}) {
    const auto refused = (*backend)->make_kernel(operation);
    ASSERT_FALSE(refused.ok()) << operation_name(operation);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("2^31 elements"));
  }
}

// Products whose sums are subnormal or nearly so, for which rounding and flushing meet.
TEST(DeviceBf16, FlushesWhereTheProcessorDoes) {
  const auto device = open_device();
  ASSERT_NE(device, nullptr);
  const auto on_device = device::make_portable_backend(device, 1, Precision::kBf16);
  const auto on_host = make_portable_backend(Precision::kBf16);
  ASSERT_TRUE(on_device.ok() && on_host.ok());
  (*on_host)->prepare_thread();
  ConvolutionForward convolution;
  convolution.geometry.batch = 2;
  convolution.geometry.in = convolution.geometry.out = {4, 8, 8};
  convolution.geometry.kernel = {1, 1, 1};
  convolution.geometry.in_channels = 6;
  convolution.geometry.out_channels = 16;
  convolution.geometry.bias = false;
  const Operation operation = convolution;
  const auto kernel = (*on_device)->make_kernel(operation);
  ASSERT_TRUE(kernel.ok());
  std::size_t subnormal = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Draw draw(seed);
    std::vector<Operands<float>> found{converted<float>(random_operands(operation, draw))};
    for (const std::size_t operand : {0U, 1U}) {
      for (float& value : found[0][operand]) {
        // Exponents around that of the root of the least normal number.
        const auto bits = static_cast<std::uint32_t>(draw.between(0, 0xffff));
        value = std::bit_cast<float>(((bits & 0x83ffU) + 0x1e00U) << 16);
      }
    }
    Operands<float> want = found[0];
    run_operation(**on_host, operation, want, {});
    run_as_group(*device, **kernel, operation, found, {});
    EXPECT_TRUE(same_bits(want, found[0])) << seed;
    for (const float value : want.back()) subnormal += value == 0.0f;
  }
  EXPECT_GT(subnormal, 100U) << "it is flushed";
}

// Values of all sizes that floats have, zeros and denormal numbers among them.
float any_float(Draw& draw) {
  const std::int64_t kind = draw.between(0, 9);
  if (kind == 0) return 0.0f;
  const int exponent = static_cast<int>(kind == 1 ? draw.between(-149, 126) : draw.between(-24, 3));
  return std::ldexp(static_cast<float>(draw.between(-0xffffff, 0xffffff)) * 0x1p-24f, exponent);
}

class DeviceSums : public testing::Test {
 protected:
  void SetUp() override {
    const auto opened = open_device();
    ASSERT_NE(opened, nullptr);
    auto backend = device::make_portable_backend(opened, 4, Precision::kFp32);
    ASSERT_TRUE(backend.ok());
    backend_ = std::move(*backend);
  }
  // Blocks of so many vectors on the device, with the same ones on the host.
  void place(const std::vector<std::int64_t>& counts, std::int64_t stride, Draw& draw) {
    for (const std::int64_t count : counts) {
      auto& values = values_.emplace_back(static_cast<std::size_t>(count * stride));
      for (float& value : values) value = any_float(draw);
      const std::size_t bytes = values.size() * sizeof(float);
      memory_.push_back(backend_->memory().allocate(bytes));
      here_.push_back({values.data(), count, stride});
      there_.push_back({reinterpret_cast<const float*>(memory_.back().get()), count, stride});
    }
    write();
  }
  void write() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      backend_->memory().write(values_[i].data(), memory_[i].get(),
                               values_[i].size() * sizeof(float));
    }
    backend_->memory().wait_for(backend_->memory().mark());
  }
  // Expects the sums that are made on the host, whose reports it returns.
  std::vector<QuantiseReport> expect_those_of_the_host(const std::vector<SumPart>& parts) {
    constexpr std::uint32_t kMicroBatches = 6;
    std::size_t size = 0;
    for (const SumPart& part : parts) size += static_cast<std::size_t>(part.size);
    std::vector<std::int64_t> want(size, 7), found(size, 7);
    std::vector<float> want_floats(size, 0.0f), found_floats(size, 0.0f);
    std::vector<QuantiseReport> reports(parts.size()), seen(parts.size());
    host_sums().add_exactly(here_, parts, kMicroBatches, want, reports);
    backend_->sums().add_exactly(there_, parts, kMicroBatches, found, seen);
    std::size_t at = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(seen[i].non_finite, reports[i].non_finite);
      const auto end = at + static_cast<std::size_t>(parts[i].size);
      if (!reports[i].non_finite) {
        EXPECT_EQ(seen[i].max_exponent, reports[i].max_exponent) << i;
        EXPECT_EQ(seen[i].flagged, reports[i].flagged) << i;
        if (!reports[i].flagged) {
          const std::span all(want), made(found);
          EXPECT_TRUE(std::ranges::equal(all.subspan(at, end - at), made.subspan(at, end - at)))
              << i;
        }
      }
      at = end;
    }
    std::vector<QuantiseReport> of_floats(parts.size()), seen_of_floats(parts.size());
    host_sums().add_floats(here_, parts, want_floats, of_floats);
    backend_->sums().add_floats(there_, parts, found_floats, seen_of_floats);
    // Devices write other bits for a sum that is no number, and its step is refused.
    for (std::vector<float>* floats : {&want_floats, &found_floats}) {
      for (float& each : *floats) each = std::isnan(each) ? NAN : each;
    }
    EXPECT_TRUE(same_bits({want_floats}, {found_floats}));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(seen_of_floats[i].non_finite, of_floats[i].non_finite);
    }
    return reports;
  }

  std::unique_ptr<Backend> backend_;
  std::vector<std::vector<float>> values_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<Vectors> here_, there_;
};

TEST_F(DeviceSums, AreThoseOfTheHost) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Draw draw(seed);
    values_.clear(), memory_.clear(), here_.clear(), there_.clear();
    place({3, 1, 2}, 900, draw);
    // A part that begins and ends in a block of items, one of an item, and one that is measured.
    const auto reports = expect_those_of_the_host({{0, 130, static_cast<std::int16_t>(20 + seed)},
                                                   {130, 1, 44},
                                                   {200, 640, kNoExponent},
                                                   {840, 60, -40},
                                                   {860, 40, 160}});
    EXPECT_TRUE(reports[2].flagged);
    // Smaller after larger ones, so that nothing is left of these.
    expect_those_of_the_host({{5, 7, 30}});
  }
}

// Far more than may be on its way, from memory that changes as soon as a write returns.
// Values of all sizes, so that squares underflow and quotients are subnormal.
std::vector<float> of_all_sizes(std::size_t count, std::uint32_t stream) {
  std::vector<float> values(count), sizes(count);
  runtime::fill_normal({.seed = 3, .stream = stream}, values.data(), count);
  runtime::fill_normal({.seed = 4, .stream = stream}, sizes.data(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const int size = std::min(static_cast<int>(30.0f * sizes[i]), kLargestGradientExponent - 4);
    values[i] = i % 17 == 0 ? 0.0f : std::ldexp(values[i], size);
  }
  return values;
}

TEST(PlacedOptimiser, UpdatesWithTheBitsOfTheHost) {
  const auto device = open_device();
  ASSERT_NE(device, nullptr);
  const auto backend = device::make_portable_backend(device, 1, Precision::kFp32);
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  constexpr std::size_t kSize = 5003;
  for (const OptimiserKind kind : {OptimiserKind::kSgd, OptimiserKind::kRmsprop,
                                   OptimiserKind::kAdam, OptimiserKind::kAdadelta}) {
    for (const double momentum : {0.0, 0.9}) {
      const OptimiserOptions options{.kind = kind, .momentum = momentum};
      std::vector<float> weights = of_all_sizes(kSize, 1);
      std::vector<float> arrays(kSize * static_cast<std::size_t>(optimiser_arrays(options)));
      const auto optimiser = (*backend)->place_optimiser(options, kSize);
      ASSERT_NE(optimiser, nullptr);
      optimiser->place(weights, arrays);
      std::vector<float> found_weights(kSize), found_arrays(arrays.size());
      OptimiserCounters counters;
      for (std::uint32_t step = 0; step < 3; ++step) {
        const std::vector<float> gradients = of_all_sizes(kSize, 10 + step);
        std::ranges::copy(gradients, optimiser->gradients().begin());
        begin_update(options, counters);
        update(options, counters, 1e-3, gradients, weights, arrays.data(), kSize);
        optimiser->update(update_factors(options, counters, 1e-3), found_weights, found_arrays);
        EXPECT_EQ(found_weights, weights) << static_cast<int>(kind) << " " << momentum;
        EXPECT_EQ(found_arrays, arrays) << static_cast<int>(kind) << " " << momentum;
      }
      std::vector<float> there(kSize);
      device->read(optimiser->weights(), there.data(), kSize * sizeof(float));
      EXPECT_EQ(there, weights);
    }
  }
}

TEST(DeviceMemory, WritesTakeWhatStandsThereWhenTheyAreCalled) {
  const auto device = open_device();
  ASSERT_NE(device, nullptr);
  constexpr std::size_t kPiece = (std::size_t{3} << 20) / sizeof(std::uint32_t) + 5, kPieces = 40;
  const auto memory = device->allocate(kPieces * kPiece * sizeof(std::uint32_t));
  std::vector<std::uint32_t> piece(kPiece);
  for (std::size_t i = 0; i < kPieces; ++i) {
    std::ranges::fill(piece, static_cast<std::uint32_t>(1 + i));
    device->write(piece.data(), memory.get() + i * kPiece * sizeof(std::uint32_t),
                  kPiece * sizeof(std::uint32_t));
  }
  for (std::size_t i = 0; i < kPieces; ++i) {
    device->read(memory.get() + i * kPiece * sizeof(std::uint32_t), piece.data(),
                 kPiece * sizeof(std::uint32_t));
    EXPECT_EQ(std::ranges::count(piece, static_cast<std::uint32_t>(1 + i)),
              static_cast<std::ptrdiff_t>(kPiece))
        << i;
  }
}

TEST_F(DeviceSums, FlagsStandWhereTheHostSetsThem) {
  Draw draw(1);
  place({2}, 100, draw);
  std::ranges::fill(values_[0], -0.75f);
  const std::vector<SumPart> parts{{0, 50, 40}, {50, 50, 0}};
  bool flagged = false, whole = false;
  for (int exponent = 10; exponent < 26; ++exponent) {
    values_[0][130] = std::ldexp(1.0f, exponent);
    write();
    const bool now = expect_those_of_the_host(parts)[0].flagged;
    (now ? flagged : whole) = true;
  }
  EXPECT_TRUE(flagged && whole);
  for (const float bad : {std::nanf(""), -INFINITY}) {
    values_[0][49] = bad;
    write();
    const auto reports = expect_those_of_the_host(parts);
    EXPECT_TRUE(reports[0].non_finite);
    EXPECT_FALSE(reports[1].non_finite);
  }
}

// A generation of NVIDIA's cards that the toolkit's compilers know.
struct Generation {
  int number;
  device::DeviceFacts facts() const {
    device::DeviceFacts facts;
    facts.is_gpu = true;
    facts.tensor_cores = device::tensor_cores(number / 10, number % 10);
    return facts;
  }
  // Those of the compiler for its tensor cores, if it has any.
  std::vector<std::string> options() const {
    std::string cores = device::tensor_cores_option(facts());
    if (cores.empty()) return {};
    return {std::move(cores)};
  }
  std::string name() const { return "sm_" + std::to_string(number); }
};
constexpr Generation kGenerations[] = {{75}, {80}, {90}};

// Compiles the program where a toolkit is: no kernel spills a register, needs so many that a
// multiprocessor has room for less than two blocks of 256 items, or 12 warps in smaller blocks, or
// more shared memory than a block gets.
TEST(DeviceProgram, IsCudaTooAndSpillsNoRegister) {
  const std::string compiler = "/usr/local/cuda/bin/nvcc";
  if (!std::filesystem::exists(compiler)) GTEST_SKIP() << "no " << compiler;
  const TemporaryFolder folder;
  write_text(folder / "program.cu", device::program_text());
  for (const Generation& generation : kGenerations) {
    std::vector<std::string> words{
        compiler,     "-cubin", "-arch=" + generation.name(), "--fmad=false",
        "-Xptxas=-v", "-o",     folder / "program.cubin",     folder / "program.cu"};
    for (const std::string& option : generation.options()) words.push_back(option);
    Process process(words);
    const ProcessEnd end = process.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    const std::string said = end.out + end.err;
    const std::regex kernel(
        "entry function '(\\w+)'[^]*?(\\d+) bytes spill stores[^]*?Used (\\d+) registers([^\n]*)");
    std::vector<std::string> names;
    for (std::sregex_iterator it(said.begin(), said.end(), kernel), none; it != none; ++it) {
      const std::string name = (*it)[1], more = (*it)[4];
      const int registers = std::stoi((*it)[3]);
      std::smatch shared;
      const int bytes = std::regex_search(more, shared, std::regex("(\\d+) bytes smem"))
                            ? std::stoi(shared[1])
                            : 0;
      EXPECT_EQ((*it)[2], "0") << name << " spills for " << generation.name();
      const bool in_small_blocks =
          name.find("dots") != std::string::npos || name.starts_with("upsampled_") ||
          name.starts_with("tensor_multiply") || name.starts_with("tensor_gradient");
      EXPECT_LE(registers, in_small_blocks ? 168 : 128) << name << " for " << generation.name();
      EXPECT_LE(bytes, 48 << 10) << name << " for " << generation.name();
      names.push_back(name);
      if (name.find("multiply") == std::string::npos && name.find("dots") == std::string::npos &&
          name.find("tensor_gradient") == std::string::npos) {
        continue;
      }
      std::cout << generation.name() << " " << name << ": " << registers << " registers, " << bytes
                << " bytes of shared memory\n";
    }
    EXPECT_THAT(names, testing::UnorderedElementsAreArray(device::kernel_names(generation.facts())))
        << "those that the driver asks for";
  }
  Process process({compiler, "-ptx", "-arch=sm_90", "--fmad=false", kGenerations[2].options()[0],
                   "-o", folder / "program.ptx", folder / "program.cu"});
  EXPECT_EQ(process.wait().exit_code, 0);
  const std::string code = read_text(folder / "program.ptx");
  EXPECT_THAT(code, testing::HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
  EXPECT_THAT(code, testing::HasSubstr("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"));
}

// The driver for CUDA asks for kernels by the names that it finds in the text.
TEST(DeviceProgram, HasTheKernelsThatItsTextNames) {
  const auto device = open_device();
  ASSERT_NE(device, nullptr);
  std::set<int> numbers;
  const auto names = device::kernel_names(device->facts());
  for (const std::string& name : names) numbers.insert(device->kernel(name));
  EXPECT_EQ(numbers.size(), names.size());
  EXPECT_GT(names.size(), 50U);
}

// The compiler that the driver calls is stricter than nvcc.
TEST(DeviceProgram, IsTakenByTheCompilerThatTheDriverCalls) {
  void* const library = dlopen("/usr/local/cuda/lib64/libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << "no toolkit of CUDA is installed";
  device::CudaApi api;
#define TROUPE_FIND(function, parameters) \
  api.function = reinterpret_cast<decltype(api.function)>(dlsym(library, #function));
  TROUPE_NVRTC_FUNCTIONS(TROUPE_FIND)
#undef TROUPE_FIND
  const std::string text = device::program_text();
  // Without tensor cores and with them.
  for (const Generation& generation : {kGenerations[0], kGenerations[2]}) {
    const std::string architecture = "--gpu-architecture=" + generation.name();
    std::vector<const char*> options{architecture.c_str(), "--fmad=false"};
    const auto cores = generation.options();
    if (!cores.empty()) options.push_back(cores[0].c_str());
    device::CudaHandle program = nullptr;
    ASSERT_EQ(api.nvrtcCreateProgram(&program, text.c_str(), "t.cu", 0, nullptr, nullptr), 0);
    const int compiled =
        api.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    std::size_t size = 0;
    api.nvrtcGetProgramLogSize(program, &size);
    std::string log(size, ' ');
    api.nvrtcGetProgramLog(program, log.data());
    EXPECT_EQ(compiled, 0) << generation.name() << log;
    api.nvrtcDestroyProgram(&program);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, DeviceGroup,
                         testing::Combine(testing::Values(1, 2, 5),
                                          testing::Values(Precision::kFp32, Precision::kBf16)));

}  // namespace
}  // namespace troupe::model

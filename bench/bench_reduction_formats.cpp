// Bytes of floats per second that the lossy wire formats take in and give back, one thread, next to
// memcpy of the same floats in the same run. Round trips are checked before they are timed.
//
// 65,536 elements are a segment of 256 KiB, as a ring sends them; 16 million are beyond most
// caches.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "bench/median_reporter.h"
#include "pipeline/steps/error_feedback.h"
#include "pipeline/steps/reduction_format.h"
#include "runtime/base/random.h"

namespace troupe::bench {
namespace {

using pipeline::ReductionFormat;

struct Format {
  const char* name;
  ReductionFormat format;
};
constexpr Format kFormats[] = {{"fp32", ReductionFormat::kFp32},
                               {"bf16", ReductionFormat::kBf16},
                               {"int8", ReductionFormat::kInt8}};

struct Data {
  Data(ReductionFormat f, std::size_t size)
      : format(f), values(size), out(size), bytes(pipeline::encoded_bytes(f, size)) {
    if (f != ReductionFormat::kFp32) feedback.emplace(f, std::vector{size});
    constexpr std::size_t kDrawn = 65'536;  // and then the same again: drawing takes long
    runtime::fill_normal({.seed = 1}, values.data(),
                         static_cast<std::uint32_t>(std::min(size, kDrawn)));
    for (std::size_t i = kDrawn; i < size; ++i) values[i] = values[i - kDrawn];
    pipeline::encode(format, values, bytes);
  }
  const ReductionFormat format;
  std::vector<float> values, out;
  std::vector<std::byte> bytes;
  std::optional<pipeline::ErrorFeedback> feedback;  // none for what drops nothing
};

void copy(Data& data) {
  std::memcpy(data.out.data(), data.values.data(), data.values.size() * sizeof(float));
}
void encode(Data& data) { pipeline::encode(data.format, data.values, data.bytes); }
void decode(Data& data) { pipeline::decode(data.format, data.bytes, data.out); }
void decode_add(Data& data) { pipeline::decode_add(data.format, data.bytes, data.out); }
void with_feedback(Data& data) {
  if (!data.feedback) return encode(data);
  data.feedback->encode(0, 0, data.values, data.bytes);
  data.feedback->commit(0);
}

struct Work {
  const char* name;
  void (*run)(Data&);
};
constexpr Work kWorks[] = {{"encode", encode},
                           {"decode", decode},
                           {"decode_add", decode_add},
                           {"feedback", with_feedback}};

// For normal numbers, which stay below 8: an int8 scale below 8 / 127.
bool results_are_right() {
  bool right = true;
  for (const Format& format : kFormats) {
    Data data(format.format, 100'000);
    decode(data);
    const bool exact = format.format == ReductionFormat::kFp32;
    const bool relative = format.format == ReductionFormat::kBf16;
    for (std::size_t i = 0; i < data.values.size(); ++i) {
      const double value = data.values[i], error = std::fabs(data.out[i] - value);
      const double bound = exact ? 0 : relative ? 0x1p-8 * std::fabs(value) : 0.51 * 8 / 127;
      right &= error <= bound;
    }
    decode_add(data);
    std::vector<float> once(data.values.size());
    pipeline::decode(format.format, data.bytes, once);
    for (std::size_t i = 0; i < once.size(); ++i) right &= data.out[i] == once[i] + once[i];
    const std::vector<std::byte> bytes = data.bytes;
    with_feedback(data);  // the first time there is nothing to add
    right &= data.bytes == bytes;
  }
  return right;
}

void time_work(benchmark::State& state, void (*run)(Data&), ReductionFormat format) {
  Data data(format, static_cast<std::size_t>(state.range(0)));
  run(data);  // takes the memory of the residuals
  for (auto _ : state) {
    run(data);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) *
                          static_cast<std::int64_t>(sizeof(float)));
}

int run(char* program, bool small) {
  if (!results_are_right()) {
    fmt::print(stderr, "wrong results\n");
    return 1;
  }
  const std::vector<std::int64_t> sizes =
      small ? std::vector<std::int64_t>{65'536} : std::vector<std::int64_t>{65'536, 16'000'000};
  initialise_benchmarks(program, small ? 0.002 : 0.03);
  const auto add = [&](const std::string& name, void (*function)(Data&), ReductionFormat format) {
    auto* registered = benchmark::RegisterBenchmark(name.c_str(), time_work, function, format);
    for (const std::int64_t size : sizes) registered->Arg(size);
    registered->Unit(benchmark::kMicrosecond);
  };
  add("memcpy", copy, ReductionFormat::kFp32);
  for (const Format& format : kFormats) {
    for (const Work& work : kWorks) {
      add(fmt::format("{}_{}", format.name, work.name), work.run, format.format);
    }
  }
  MedianReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  fmt::print("Speed as a fraction of memcpy's, medians of 9:\n");
  for (const std::int64_t size : sizes) {
    const double bound = reporter.of("memcpy", size);
    const double kilobytes = static_cast<double>(size) * sizeof(float) * 1e-3;
    fmt::print("  {} elements: memcpy {:.1f} GB/s of floats\n", size, kilobytes / bound);
    for (const Format& format : kFormats) {
      fmt::print("    {}:", format.name);
      for (const Work& work : kWorks) {
        const double own = reporter.of(fmt::format("{}_{}", format.name, work.name), size);
        fmt::print(" {} {:.2f}", work.name, bound / own);
      }
      fmt::print("\n");
    }
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run(argv[0], argc > 1 && std::strcmp(argv[1], "--small") == 0);
}

// Elements per second of what a step does to every gradient besides computing it: quantise_add,
// restore_mean and the optimiser's update, one thread, each next to the bound in the same run: a
// loop that moves the same bytes and does nothing else. Results are checked before they are timed.
//
// gan3d_51's generator has 1.36 million weights; 16 million are beyond every cache.

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "bench/median_reporter.h"
#include "model/exact_sum.h"
#include "model/optimiser.h"
#include "runtime/base/random.h"

namespace troupe::bench {
namespace {

constexpr std::uint32_t kMicroBatches = 4;
constexpr std::int16_t kScale = 45;  // of normal numbers, whose exponent is 3

struct Data {
  explicit Data(std::size_t size) : gradients(size), weights(size), squares(size), sums(size) {
    runtime::fill_normal({.seed = 1}, gradients.data(), static_cast<std::uint32_t>(size));
    model::quantise_add(gradients, kScale, kMicroBatches, sums);
  }
  std::vector<float> gradients, weights, squares;
  std::vector<std::int64_t> sums;
};

const model::OptimiserOptions kRmsprop;

void quantise(Data& data) {
  benchmark::DoNotOptimize(
      model::quantise_add(data.gradients, kScale, kMicroBatches, data.sums).max_exponent);
}
void quantise_bound(Data& data) {
  for (std::size_t i = 0; i < data.sums.size(); ++i) {
    data.sums[i] += std::bit_cast<std::uint32_t>(data.gradients[i]);
  }
}
void restore(Data& data) { model::restore_mean(data.sums, kScale, kMicroBatches, data.weights); }
void restore_bound(Data& data) {
  for (std::size_t i = 0; i < data.sums.size(); ++i) {
    data.weights[i] = std::bit_cast<float>(static_cast<std::uint32_t>(data.sums[i]));
  }
}
void rmsprop(Data& data) {
  model::update(kRmsprop, {.updates = 1}, 1e-3, data.gradients, data.weights, data.squares.data(),
                static_cast<std::int64_t>(data.weights.size()));
}
void rmsprop_bound(Data& data) {
  for (std::size_t i = 0; i < data.weights.size(); ++i) {
    data.weights[i] += data.gradients[i];
    data.squares[i] += data.gradients[i];
  }
}

struct Case {
  const char* name;
  void (*run)(Data&);
  void (*bound)(Data&);
  std::int64_t bytes_per_element;
};
const std::vector<Case> kCases = {
    {"quantise_add", quantise, quantise_bound, 4 + 8 + 8},
    {"restore_mean", restore, restore_bound, 8 + 4},
    {"rmsprop", rmsprop, rmsprop_bound, 3 * 4 + 2 * 4},
};

bool results_are_right() {
  Data data(100'000);
  restore(data);
  const std::vector<float> means = data.weights;
  const std::vector<float> before = data.weights;
  rmsprop(data);
  bool right = true;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const double g = data.gradients[i];
    right &= data.sums[i] == std::llrint(std::ldexp(g, kScale));
    right &= means[i] == static_cast<float>(std::ldexp(data.sums[i], -kScale) / kMicroBatches);
    const double step = 1e-3 * g / (std::sqrt(0.1 * g * g) + 1e-7);
    right &= std::fabs(data.weights[i] - (before[i] - step)) < 1e-6;
  }
  return right;
}

void time_case(benchmark::State& state, void (*run)(Data&), std::int64_t bytes_per_element) {
  Data data(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    run(data);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * state.range(0) * bytes_per_element);
}

int run(char* program, bool small) {
  if (!results_are_right()) {
    fmt::print(stderr, "wrong results\n");
    return 1;
  }
  const std::vector<std::int64_t> sizes =
      small ? std::vector<std::int64_t>{100'000} : std::vector<std::int64_t>{1'364'983, 16'000'000};
  initialise_benchmarks(program, small ? 0.005 : 0.1);
  const auto add = [&](const std::string& name, void (*function)(Data&), std::int64_t bytes) {
    auto* registered = benchmark::RegisterBenchmark(name.c_str(), time_case, function, bytes);
    for (const std::int64_t size : sizes) registered->Arg(size);
    registered->Unit(benchmark::kMillisecond);
  };
  for (const Case& c : kCases) {
    add(c.name, c.run, c.bytes_per_element);
    add(std::string(c.name) + "_bound", c.bound, c.bytes_per_element);
  }
  MedianReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  fmt::print("Speed as a fraction of the memory's, medians of 9:\n");
  for (const Case& c : kCases) {
    for (const std::int64_t size : sizes) {
      const double own = reporter.of(c.name, size);
      const double bound = reporter.of(std::string(c.name) + "_bound", size);
      fmt::print("  {:<13} {:>10} elements: {:.2f}\n", c.name, size, bound / own);
    }
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run(argv[0], argc > 1 && std::strcmp(argv[1], "--small") == 0);
}

// Time of single layers, forward, backward to the input and to the parameters, next to PyTorch's in
// the same run, and to oneDNN's where that library has the layer. The convolutions of gan3d_12,
// gan3d_25 and gan3d_51 are bench_kernels'. On two threads a micro-batch is divided among them:
// ours has a half on each, as a replica's have, and PyTorch divides as it likes.
//
// Both compute from the same numbers, and results are compared before they are timed: norms and
// projections on random signs in float32, our bfloat16 with our float32, and PyTorch's with its
// own; oneDNN's in both with our float32. Of PyTorch's layouts, contiguous and channels last, the
// faster counts.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/answering.h"
#include "bench/layer_cases.h"
#include "bench/measure.h"
#include "bench/onednn_layer.h"
#include "model/backend.h"
#include "runtime/base/random.h"
#include "runtime/base/thread_team.h"
#include "tests/model/program_runner.h"

namespace troupe::bench {
namespace {

using namespace troupe::model;

constexpr double kTolerance = 1e-3;    // of the norm of a result
constexpr double kTolerance16 = 5e-2;  // of factors of eight bits
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kDirections = 3;
constexpr std::array<const char*, kDirections> kNames{"forward", "to the input", "to the weights"};

using Seconds = std::array<double, kDirections>;

struct Measure {
  double norm = kNothing, projection = kNothing;
};

Measure measure_of(const std::vector<float>& values, std::uint32_t number) {
  Measure measure{0.0, 0.0};
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    const bool positive = (runtime::random_word({99, 0, 0, 0, number}, i) & 1) == 1;
    measure.norm += value * value;
    measure.projection += positive ? value : -value;
  }
  measure.norm = std::sqrt(measure.norm);
  return measure;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  }
  return std::sqrt(squares);
}

// On one thread its processor time counts.
double now(bool alone) {
  if (alone) return thread_seconds();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A network on one of our backends, a part of the micro-batch on each thread.
class Ours {
 public:
  Ours(const LayerCase& layer, const Backend& backend, runtime::ThreadTeam& team) : team_(team) {
    const NetworkDescription network = network_of(layer);
    const auto* embedding = std::get_if<Embedding>(&network.layers.front().kind);
    for (int thread = 0; thread < team.threads(); ++thread) {
      parts_.push_back(
          std::make_unique<ProgramRunner<float>>(network, backend, layer.events / team.threads()));
      std::vector<float>& input = parts_.back()->input;
      for (std::size_t i = 0; i < input.size(); ++i) {
        const auto number = static_cast<std::int64_t>(i);
        // Both signs, or classes.
        input[i] = embedding == nullptr ? 2.0F * input[i] - 1.0F
                                        : static_cast<float>(number % embedding->classes);
      }
    }
    gradient_of_input_ = embedding == nullptr;
  }

  // Output, gradient of the input, gradients of the parameters; empty where there is none.
  std::array<std::vector<float>, kDirections> results() {
    ProgramRunner<float>& whole = *parts_.front();
    whole.forward();
    whole.backward(Pass::kBackwardParameters);
    whole.forward();
    if (gradient_of_input_) whole.backward(Pass::kBackwardInput);
    return {whole.outputs[0], whole.input_gradient, whole.gradients};
  }

  // What it computes from.
  OnednnLayer::Values values() const {
    OnednnLayer::Values all{{}, parts_.front()->weights, {}};
    for (const auto& part : parts_) {
      const std::vector<float>& dy = part->output_gradients.front();
      all.input.insert(all.input.end(), part->input.begin(), part->input.end());
      all.output_gradient.insert(all.output_gradient.end(), dy.begin(), dy.end());
    }
    return all;
  }

  // Means over `times` runs; on one thread of its processor time.
  Seconds seconds(int times) {
    const bool alone = parts_.size() == 1;
    Seconds sums{};
    for (int i = 0; i < times; ++i) {
      const double start = now(alone);
      run(Pass::kForwardTraining);
      const double middle = now(alone);
      if (gradient_of_input_) run(Pass::kBackwardInput);
      const double end = now(alone);
      sums[0] += middle - start;
      sums[1] += end - middle;
      run(Pass::kForwardTraining);
      const double again = now(alone);
      run(Pass::kBackwardParameters);
      sums[2] += now(alone) - again;
    }
    for (double& sum : sums) sum /= times;
    if (!gradient_of_input_) sums[1] = kNothing;
    if (parts_.front()->weights.empty()) sums[2] = kNothing;
    return sums;
  }

 private:
  void run(Pass pass) {
    const auto part = [&](std::int64_t i, int) {
      ProgramRunner<float>& runner = *parts_[static_cast<std::size_t>(i)];
      runner.program().run(pass, runner.bindings(), runner.workspace());
    };
    if (parts_.size() == 1) return part(0, 0);
    team_.run(std::ssize(parts_), part);
  }

  runtime::ThreadTeam& team_;
  std::vector<std::unique_ptr<ProgramRunner<float>>> parts_;
  bool gradient_of_input_ = true;
};

// PyTorch in a process of its own.
class Peer {
 public:
  explicit Peer(int threads)
      : program_({TROUPE_PYTHON, TROUPE_LAYER_PEER, std::to_string(threads)}) {
    const auto first = program_.answer();
    version_ = first.ok() ? *first : first.error().message;
    ready_ = first.ok();
    wrong_ = !ready_ && !version_.starts_with("missing") && !program_.is_missing();
  }

  const std::string& version() const { return version_; }
  bool ready() const { return ready_; }
  // It could not be asked for another reason than not being installed.
  bool wrong() const { return wrong_; }

  // Says why on standard error when there is no good answer.
  std::optional<std::vector<double>> ask(const std::string& request) {
    const auto answer = program_.ask(request);
    if (!answer.ok()) {
      fmt::print(stderr, "PyTorch, asked to {}: {}\n", request, answer.error().message);
      return std::nullopt;
    }
    std::vector<double> numbers;
    std::istringstream words(*answer);
    for (std::string word; words >> word;) numbers.push_back(std::strtod(word.c_str(), nullptr));
    return numbers;
  }

 private:
  Answering program_;
  std::string version_;
  bool ready_ = false, wrong_ = false;
};

// Samples of a side in one precision, by direction; with several layouts the fastest of each.
struct Samples {
  std::array<std::vector<double>, kDirections> of;

  void add(const Seconds& seconds) {
    for (std::size_t i = 0; i < kDirections; ++i) of[i].push_back(seconds[i]);
  }
  bool has(std::size_t direction) const {
    return !of[direction].empty() && !std::isnan(of[direction].front());
  }
  Spread spread(std::size_t direction) const { return spread_of(of[direction]); }
};

class Bench {
 public:
  Bench(int threads, bool small)
      : threads_(threads),
        small_(small),
        fp32_(make_portable_backend(Precision::kFp32).value()),
        bf16_(make_portable_backend(Precision::kBf16).value()),
        team_(threads, [this] { fp32_->prepare_thread(); }),
        peer_(threads) {
    fp32_->prepare_thread();
  }

  bool ready() const { return !peer_.wrong(); }
  const std::string& version() const { return peer_.version(); }

  // False when a result was wrong.
  bool run(LayerCase layer) {
    if (small_) layer.events = 2;
    Ours fp32(layer, *fp32_, team_), bf16(layer, *bf16_, team_);
    if (threads_ == 1 && !agree(layer, "our bf16", fp32.results(), bf16.results(), kTolerance16)) {
      return false;
    }
    const OnednnLayer::Values values = fp32.values();
    const NetworkDescription network = network_of(layer);
    onednn_ = OnednnLayer::make(network, layer.events, values, false);
    onednn16_ = OnednnLayer::make(network, layer.events, values, true);
    if (threads_ == 1 && !onednn_agrees(layer, fp32)) return false;
    if (!peer_.ready()) return true;
    const auto numbers = peer_.ask(fmt::format("layer {} {}", layer.events, layer.network));
    if (!numbers) return false;
    if (threads_ == 1 && !agrees_with_peer(layer, fp32, *numbers)) return false;
    return time(layer, fp32, bf16);
  }

 private:
  using Results = std::array<std::vector<float>, kDirections>;

  static bool agree(const LayerCase& layer, const char* who, const Results& judge,
                    const Results& found, double tolerance) {
    for (std::size_t i = 0; i < kDirections; ++i) {
      const double norm = distance(judge[i], std::vector<float>(judge[i].size()));
      const bool is_whole = judge[i].size() == found[i].size();
      if (is_whole && distance(judge[i], found[i]) <= tolerance * norm) continue;
      fmt::print(stderr, "{}, {}: {} differs from our fp32 by {:.2e} of its norm\n", layer.name,
                 kNames[i], who, is_whole ? distance(judge[i], found[i]) / norm : 1.0);
      return false;
    }
    return true;
  }

  bool onednn_agrees(const LayerCase& layer, Ours& fp32) {
    const Results judge = fp32.results();
    if (onednn_ && !agree(layer, "oneDNN", judge, onednn_->results(), kTolerance)) return false;
    if (!onednn16_) return true;
    Results found = onednn16_->results();
    // Cells of a window that were different are equal when they are rounded, and another one is the
    // greatest.
    if (layer.network.find("max_pool") != std::string::npos) found[1] = judge[1];
    return agree(layer, "oneDNN's bf16", judge, found, kTolerance16);
  }

  static bool agrees_with_peer(const LayerCase& layer, Ours& ours,
                               const std::vector<double>& numbers) {
    const auto found = ours.results();
    for (std::size_t i = 0; i < kDirections; ++i) {
      if (found[i].empty()) continue;
      const Measure measure = measure_of(found[i], static_cast<std::uint32_t>(i));
      const double norm = numbers.at(2 * i), projection = numbers.at(2 * i + 1);
      const double most = kTolerance * measure.norm;
      if (std::fabs(measure.norm - norm) <= most &&
          std::fabs(measure.projection - projection) <= most) {
        continue;
      }
      fmt::print(stderr, "{}, {}: norm and projection are {} and {}, and PyTorch's {} and {}\n",
                 layer.name, kNames[i], measure.norm, measure.projection, norm, projection);
      return false;
    }
    return true;
  }

  bool time(const LayerCase& layer, Ours& fp32, Ours& bf16) {
    Samples ours, ours16, theirs, theirs16, library, library16;
    const auto clock = [this] { return now(threads_ == 1); };
    // As many runs in a sample as take some milliseconds.
    const Seconds first = fp32.seconds(1);
    const int times = small_ ? 1 : static_cast<int>(std::clamp(2e-3 / first[0], 1.0, 20.0));
    for (int i = 0; i <= (small_ ? 1 : 5); ++i) {  // in turns, so that all meet the same machine
      const Seconds a = fp32.seconds(times), b = bf16.seconds(times);
      const auto numbers = peer_.ask(fmt::format("run {}", times));
      if (!numbers || numbers->size() != 4 * kDirections) return false;
      Seconds c, d;
      c.fill(kNothing), d.fill(kNothing);
      if (onednn_) c = onednn_->seconds(times, threads_, clock);
      if (onednn16_) d = onednn16_->seconds(times, threads_, clock);
      if (i == 0) continue;
      library.add(c);
      library16.add(d);
      ours.add(a);
      ours16.add(b);
      theirs.add(faster(*numbers, 0));
      theirs16.add(faster(*numbers, 2 * kDirections));
    }
    for (std::size_t i = 0; i < kDirections; ++i) {
      if (!ours.has(i)) continue;
      fmt::print("{:<24} {:<14} ", layer.name, kNames[i]);
      print(ours, theirs, library, i);
      fmt::print("; bf16 ");
      print(ours16, theirs16, library16, i);
      fmt::print("\n");
    }
    std::fflush(stdout);
    return true;
  }

  // The faster of two layouts, whose figures stand from that number on.
  static Seconds faster(const std::vector<double>& numbers, std::size_t from) {
    Seconds best;
    for (std::size_t i = 0; i < kDirections; ++i) {
      best[i] = std::fmin(numbers[from + i], numbers[from + kDirections + i]);
    }
    return best;
  }

  static void print(const Samples& ours, const Samples& theirs, const Samples& library,
                    std::size_t direction) {
    const Spread a = ours.spread(direction);
    fmt::print("{:8.4f} ms [{:.4f}, {:.4f}]", 1e3 * a.median, 1e3 * a.lowest, 1e3 * a.highest);
    print_peer("PyTorch", theirs, direction, a.median);
    print_peer("oneDNN", library, direction, a.median);
  }

  static void print_peer(const char* who, const Samples& samples, std::size_t direction,
                         double ours) {
    if (!samples.has(direction)) {
      fmt::print(", {} has none", who);
      return;
    }
    const Spread b = samples.spread(direction);
    fmt::print(", {} {:8.4f} [{:.4f}, {:.4f}], ratio {:5.2f}", who, 1e3 * b.median, 1e3 * b.lowest,
               1e3 * b.highest, b.median / ours);
  }

  const int threads_;
  const bool small_;
  std::unique_ptr<Backend> fp32_, bf16_;
  runtime::ThreadTeam team_;
  Peer peer_;
  std::unique_ptr<OnednnLayer> onednn_, onednn16_;  // of the layer at hand; null: there is none
};

int run(bool small, const std::string& filter, const std::vector<int>& all_threads) {
  for (const int threads : all_threads) {
    Bench bench(threads, small);
    if (!bench.ready()) {
      fmt::print(stderr, "PyTorch: {}\n", bench.version());
      return 1;
    }
    fmt::print("Layers on {} thread{}, medians of 5 [lowest, highest]; {}\n", threads,
               threads == 1 ? "" : "s", bench.version());
    for (const LayerCase& layer : layer_cases()) {
      if (layer.name.find(filter) == std::string::npos) continue;
      if (!bench.run(layer)) return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

// bench_layers [--small] [--threads N] [part of a layer's name]: by default on one thread and on
// two
int main(int argc, char** argv) {
  bool small = false;
  std::string filter;
  std::vector<int> threads{1, 2};
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      small = true;
    } else if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
      threads = {std::clamp(std::atoi(argv[++i]), 1, 2)};
    } else {
      filter = argv[i];
    }
  }
  return troupe::bench::run(small, filter, threads);
}

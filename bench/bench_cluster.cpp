// Runs over 2, 4 and 8 workers: from the start to the first committed step, and from SIGTERM to the
// last process gone. And memory of two processes of which one consumes 100 times slower than the
// other produces: --slow SECONDS says for how long.

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "bench/slow_consumer.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A process may take so much more than it had after its first second: buffers of credits, not of
// time.
constexpr double kMostGrowthMegabytes = 16;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void write_topology(const TemporaryFolder& folder, const std::string& model) {
  const std::string power = model == "toy" ? "1" : "0.35";
  std::ofstream(folder / (model + ".yaml"))
      << "name: bench\nmodel: {zoo: " << model << "}\n"
      << "data: {train: synthetic, synthetic: {events: 400, seed: 1}, preprocessing: {power: "
      << power << "}}\n"
      << "train: {epochs: 1000000, micro_batch: 4, micro_batches: 8, seed: 1}\n"
      << "actors:\n  checkpointer: {every: none}\n  validator: {every: none}\n";
}

struct Times {
  double start_s = 0, stop_s = 0;
};

// False, and a word about it, when the run did not end as a stopped run does.
bool measure(const TemporaryFolder& folder, const std::string& model, int workers, Times& times) {
  const std::string out = folder / "run";
  std::error_code ignored;
  fs::remove_all(out, ignored);
  const auto begin = Clock::now();
  Process run({TROUPE_BINARY, "run", folder / (model + ".yaml"), "--out", out, "--workers",
               std::to_string(workers)});
  const bool started = run.wait_until([&] {
    return read_text(out + "/metrics.jsonl").find(R"("kind":"step")") != std::string::npos;
  });
  times.start_s = seconds_since(begin);
  const auto asked = Clock::now();
  if (run.running()) run.send(started ? SIGTERM : SIGKILL);
  const ProcessEnd end = run.wait();  // it ends when all its processes have
  times.stop_s = seconds_since(asked);
  if (started && end.exit_code == 128 + SIGTERM) return true;
  fmt::print(stderr, "{} over {} workers did not start and stop: exit code {}, signal {}\n{}",
             model, workers, end.exit_code, end.signal, end.err);
  return false;
}

std::string spread(const std::vector<double>& samples) {
  const auto [median, lowest, highest] = spread_of(samples);
  return fmt::format("{:6.3f} s (min {:.3f}, max {:.3f})", median, lowest, highest);
}

bool starts_and_stops(bool small) {
  const TemporaryFolder folder;
  for (const char* model : {"toy", "gan3d_12"}) write_topology(folder, model);
  const int repeats = small ? 1 : 7;
  bool right = true;
  for (const std::string model : {"toy", "gan3d_12"}) {
    Times first;  // makes data and indices
    right &= measure(folder, model, 1, first);
    for (const int workers : small ? std::vector<int>{2} : std::vector<int>{2, 4, 8}) {
      std::vector<double> start, stop;
      for (int i = 0; i < repeats && right; ++i) {
        Times times;
        right &= measure(folder, model, workers, times);
        start.push_back(times.start_s);
        stop.push_back(times.stop_s);
      }
      if (!right) return false;
      fmt::print("{}, {} workers\n  to the first step  {}\n  to the last exit   {}\n", model,
                 workers, spread(start), spread(stop));
      std::fflush(stdout);
    }
  }
  return right;
}

bool slow_consumer(double seconds) {
  const auto run = run_slow_consumer(seconds);
  if (!run.ok()) {
    fmt::print(stderr, "slow consumer: {}\n", run.error().message);
    return false;
  }
  fmt::print(
      "a consumer 100 times slower than its producer, tcp, {:.0f} s: {} messages of 64 KiB, "
      "none lost\n  producer {:.1f} MB at most, {:.2f} MB more than at first\n"
      "  consumer {:.1f} MB at most, {:.2f} MB more than at first\n",
      run->seconds, run->messages, run->producer_mb, run->producer_growth_mb, run->consumer_mb,
      run->consumer_growth_mb);
  if (std::max(run->producer_growth_mb, run->consumer_growth_mb) <= kMostGrowthMegabytes)
    return true;
  fmt::print(stderr, "memory grows by more than {} MB\n", kMostGrowthMegabytes);
  return false;
}

int run(int argc, char** argv) {
  bool small = false;
  double slow_s = 20;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--small") {
      small = true;
      slow_s = 2;
    } else if (word == "--slow" && i + 1 < argc) {
      slow_s = std::atof(argv[++i]);
    } else {
      fmt::print(stderr, "usage: bench_cluster [--small] [--slow SECONDS]\n");
      return 2;
    }
  }
  // Before anything starts a thread here: it forks.
  const bool lossless = slow_consumer(slow_s);
  return starts_and_stops(small) && lossless ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::run(argc, argv); }

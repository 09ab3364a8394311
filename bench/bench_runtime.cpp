// Messages per second and turns of ping-pong between actors of one process, next to CAF 0.17 where
// it is installed, and to ZeroMQ's inproc sockets used directly, in the same run. Every run checks
// count, order and content of its messages.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/measure.h"
#include "bench/runtime_cases.h"

namespace troupe::bench {
namespace {

struct Question {
  const char* title;
  RuntimeCase run;
};

struct System {
  const char* name;
  RuntimeRun (*run)(const RuntimeCase&);
  int share;  // it is asked for so many times fewer turns of ping-pong
  std::vector<double> rates{};
};

std::vector<System> systems() {
  // A turn between threads that sleep costs some 50 times what one between actors does.
  constexpr int kSlow = 20;
  return {{"Troupe", run_on_troupe, 1},
#ifdef TROUPE_WITH_CAF
          {"CAF", run_on_caf, 1},
#endif
          {"ZeroMQ, copying", run_on_zmq_copying, kSlow},
          {"ZeroMQ, sharing", run_on_zmq_sharing, kSlow}};
}

// False when a run was wrong.
bool sample(System& system, const Question& question) {
  RuntimeCase run = question.run;
  if (run.pattern == RuntimeCase::Pattern::kPingPong) run.messages /= system.share;
  const RuntimeRun result = system.run(run);
  if (!result.complaint.empty() || result.seconds <= 0) {
    fmt::print(stderr, "{} on {}: {}\n", question.title, system.name, result.complaint);
    return false;
  }
  system.rates.push_back(static_cast<double>(run.messages) / result.seconds);
  return true;
}

void print_line(const System& system, const Question& question, double ours) {
  const Spread rates = spread_of(system.rates);
  const double ratio = ours / rates.median;
  if (question.run.pattern == RuntimeCase::Pattern::kPingPong) {
    fmt::print("  {:<16}{:7.3f} us a turn (min {:.3f}, max {:.3f}); Troupe/this {:.2f}\n",
               system.name, 1e6 / rates.median, 1e6 / rates.highest, 1e6 / rates.lowest, ratio);
  } else {
    fmt::print("  {:<16}{:7.2f} million messages/s (min {:.2f}, max {:.2f}); Troupe/this {:.2f}\n",
               system.name, rates.median / 1e6, rates.lowest / 1e6, rates.highest / 1e6, ratio);
  }
}

// Alternates between the systems, so that all meet the same state of the machine.
bool compare(const Question& question, int repeats) {
  std::vector<System> all = systems();
  for (int i = 0; i < repeats; ++i) {
    for (System& system : all) {
      if (!sample(system, question)) return false;
    }
  }
  fmt::print("{}, {} scheduler thread{} (ratios are of speed: over 1, Troupe is faster)\n",
             question.title, question.run.threads, question.run.threads == 1 ? "" : "s");
  const double ours = spread_of(all[0].rates).median;
  for (const System& system : all) print_line(system, question, ours);
  std::fflush(stdout);
  return true;
}

int run(bool small) {
  using Pattern = RuntimeCase::Pattern;
  const std::int64_t messages = small ? 100'000 : 3'000'000;
  const int repeats = small ? 3 : 9;
  bool right = true;
  for (const int threads : {1, 2}) {
    right &= compare({"one to one", {Pattern::kOneToOne, threads, messages}}, repeats);
    right &= compare({"ten to one", {Pattern::kFanIn, threads, messages}}, repeats);
    right &= compare({"ping-pong", {Pattern::kPingPong, threads, messages / 5}}, repeats);
  }
#ifndef TROUPE_WITH_CAF
  fmt::print("CAF was not found at configure time: no ratios to it.\n");
#endif
  return right ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run(argc > 1 && std::strcmp(argv[1], "--small") == 0);
}

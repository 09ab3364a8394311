// Messages per second and turns of ping-pong between actors of one process, next to CAF 0.17 in the
// same run where it is installed. Every run checks count, order and content of its messages.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/runtime_cases.h"

namespace troupe::bench {
namespace {

struct Rates {
  double median = 0;
  double lowest = 0;
  double highest = 0;
};

Rates rates_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

struct Question {
  const char* title;
  RuntimeCase run;
};

// False when a run was wrong.
bool sample(const char* system, const Question& question, RuntimeRun (*run)(const RuntimeCase&),
            std::vector<double>& rates) {
  const RuntimeRun result = run(question.run);
  if (!result.complaint.empty() || result.seconds <= 0) {
    fmt::print(stderr, "{} on {}: {}\n", question.title, system, result.complaint);
    return false;
  }
  rates.push_back(static_cast<double>(question.run.messages) / result.seconds);
  return true;
}

void print_line(const char* system, const Question& question, const Rates& rates) {
  if (question.run.pattern == RuntimeCase::Pattern::kPingPong) {
    fmt::print("  {:<7} {:7.3f} us a turn (min {:.3f}, max {:.3f})\n", system, 1e6 / rates.median,
               1e6 / rates.highest, 1e6 / rates.lowest);
  } else {
    fmt::print("  {:<7} {:7.2f} million messages/s (min {:.2f}, max {:.2f})\n", system,
               rates.median / 1e6, rates.lowest / 1e6, rates.highest / 1e6);
  }
}

// Alternates between the systems, so that both meet the same state of the machine.
bool compare(const Question& question, int repeats) {
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = 0; i < repeats; ++i) {
    if (!sample("Troupe", question, run_on_troupe, ours)) return false;
#ifdef TROUPE_WITH_CAF
    if (!sample("CAF", question, run_on_caf, theirs)) return false;
#endif
  }
  fmt::print("{}, {} scheduler thread{}\n", question.title, question.run.threads,
             question.run.threads == 1 ? "" : "s");
  const Rates rates = rates_of(ours);
  print_line("Troupe", question, rates);
  if (!theirs.empty()) {
    const Rates peer = rates_of(theirs);
    print_line("CAF", question, peer);
    fmt::print("  ratio   {:7.2f}\n", rates.median / peer.median);
  }
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
  fmt::print("CAF was not found at configure time: no ratios.\n");
#endif
  return right ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run(argc > 1 && std::strcmp(argv[1], "--small") == 0);
}

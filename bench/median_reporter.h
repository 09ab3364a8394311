#pragma once

// Google Benchmark with its usual table, and medians for the ratios that are printed below it.

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace troupe::bench {

class MedianReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name == "median") medians_[run.run_name.str()] = run.GetAdjustedCPUTime();
    }
  }
  // The median processor time of the benchmark NAME/SIZE, in its unit.
  double of(const std::string& name, std::int64_t size) const {
    return medians_.at(name + "/" + std::to_string(size));
  }

 private:
  std::map<std::string, double> medians_;
};

// Nine repetitions of `seconds` each or more, in turns.
inline void initialise_benchmarks(char* program, double seconds) {
  std::vector<std::string> arguments{program, "--benchmark_repetitions=9",
                                     "--benchmark_report_aggregates_only=true",
                                     "--benchmark_enable_random_interleaving=true",
                                     "--benchmark_min_time=" + std::to_string(seconds)};
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
}

}  // namespace troupe::bench

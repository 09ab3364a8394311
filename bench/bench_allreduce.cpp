// All-reduce between processes of one host: Troupe's reducers next to Gloo and OpenMPI, and next to
// what bounds them, all in turns. Every one checks its first result before it is timed.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/allreduce_case.h"
#include "bench/measure.h"

namespace troupe::bench {

void fill(int rank, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = contribution(rank, i);
}

std::string fault_of(const AllreduceLoad& load, std::span<const float> sums) {
  for (std::size_t i = 0; i < load.elements(); ++i) {
    if (sums[i] != expected_sum(load.processes, i)) {
      return fmt::format("element {} is {} instead of {}", i, sums[i],
                         expected_sum(load.processes, i));
    }
  }
  return "";
}

namespace {

constexpr std::size_t kKib = 1024, kMib = 1024 * kKib;

struct Contender {
  std::string name;
  bool ours = false;
  std::function<AllreduceRun(const AllreduceLoad&)> run;
  std::vector<double> rates{};     // bytes of the buffer a second, in GB
  std::vector<double> per_core{};  // the same, a second of a core
};

#ifdef TROUPE_WITH_GLOO
// The fastest of a look at each.
AllreduceRun run_best_of_gloo(const AllreduceLoad& load, std::optional<std::size_t>& best) {
  AllreduceRun fastest;
  if (best) return allreduce_on_gloo(load, *best);
  for (std::size_t i = 0; i < std::size(kGlooAlgorithms); ++i) {
    AllreduceRun run = allreduce_on_gloo(load, i);
    if (!run.complaint.empty()) return run;
    if (best && run.seconds >= fastest.seconds) continue;
    fastest = std::move(run);
    best = i;
  }
  return fastest;
}
#endif

std::vector<Contender> contenders([[maybe_unused]] std::optional<std::size_t>& gloo_algorithm) {
  using Format = AllreduceFormat;
  using Medium = AllreduceMedium;
  const auto on_troupe = [](Format format, Medium medium) {
    return [=](const AllreduceLoad& load) { return allreduce_on_troupe(load, format, medium); };
  };
  std::vector<Contender> all{
      {"Troupe fp32, shared memory", true, on_troupe(Format::kFp32, Medium::kSharedMemory)},
      {"Troupe exact, shared memory", true, on_troupe(Format::kExact, Medium::kSharedMemory)},
      {"Troupe fp32, tcp", true, on_troupe(Format::kFp32, Medium::kTcp)},
      {"Troupe exact, tcp", true, on_troupe(Format::kExact, Medium::kTcp)},
      {"Troupe fp32, UCX shm", true, on_troupe(Format::kFp32, Medium::kUcxShm)},
      {"Troupe fp32, UCX tcp", true, on_troupe(Format::kFp32, Medium::kUcxTcp)}};
#ifdef TROUPE_WITH_GLOO
  all.push_back({"Gloo, tcp", false, [&gloo_algorithm](const AllreduceLoad& load) {
                   return run_best_of_gloo(load, gloo_algorithm);
                 }});
#endif
#ifdef TROUPE_WITH_MPI
  for (const Medium medium : {Medium::kSharedMemory, Medium::kTcp}) {
    all.push_back({medium == Medium::kTcp ? "OpenMPI, tcp" : "OpenMPI, shared memory", false,
                   [=](const AllreduceLoad& load) { return allreduce_on_mpi(load, medium); }});
  }
#endif
  all.push_back({"ZeroMQ, one edge", false, run_zmq_pair});
  all.push_back({"ZeroMQ, all edges", false, run_zmq_ring});
  all.push_back({"memcpy", false, run_memcpy});
  return all;
}

std::string size_text(std::size_t bytes) {
  return bytes < kMib ? fmt::format("{} KiB", bytes / kKib) : fmt::format("{} MiB", bytes / kMib);
}

void print_table(const AllreduceLoad& load, const std::vector<Contender>& all,
                 const std::string& gloo) {
  fmt::print("{}, {} processes{}\n", size_text(load.bytes), load.processes, gloo);
  for (const Contender& one : all) {
    const auto [rate, low, high] = spread_of(one.rates);
    fmt::print("  {:<28}{:8.3f} GB/s (min {:.3f}, max {:.3f}), {:10.1f} us", one.name, rate, low,
               high, 1e-3 * static_cast<double>(load.bytes) / rate);
    fmt::print("; {:.3f} GB per core second", spread_of(one.per_core).median);
    const char* separator = "\n     ";
    for (const Contender& other : all) {
      if (!one.ours || other.ours) continue;
      fmt::print("{} {:.2f} of {}", separator, rate / spread_of(other.rates).median, other.name);
      separator = ",";
    }
    fmt::print("\n");
  }
  std::fflush(stdout);
}

// Alternates between all, so that each meets the same state of the machine. False: a result was
// wrong.
bool compare(const AllreduceLoad& load, int repeats, const std::string& only) {
  std::optional<std::size_t> gloo_algorithm;
  std::vector<Contender> all = contenders(gloo_algorithm);
  std::erase_if(all, [&](const Contender& one) { return !one.name.starts_with(only); });
  for (int repeat = -1; repeat < repeats; ++repeat) {
    for (Contender& one : all) {
      // The first round is a look, and is not counted.
      AllreduceLoad round = load;
      if (repeat < 0) round.steps = std::max(1, load.steps / 4);
      const AllreduceRun run = one.run(round);
      if (!run.complaint.empty()) {
        fmt::print(stderr, "{} at {} with {} processes: {}\n", one.name, size_text(load.bytes),
                   load.processes, run.complaint);
        return false;
      }
      if (repeat < 0) continue;
      const double gigabytes = 1e-9 * static_cast<double>(load.bytes);
      one.rates.push_back(gigabytes / run.seconds);
      one.per_core.push_back(gigabytes / run.core_seconds);
    }
  }
  const std::string gloo =
      gloo_algorithm ? fmt::format("; Gloo by {}", kGlooAlgorithms[*gloo_algorithm]) : "";
  print_table(load, all, gloo);
  return true;
}

struct Wanted {
  bool small = false;
  int repeats = 7;
  std::vector<std::size_t> sizes;  // empty: the usual ones
  std::vector<int> processes{2, 4};
  std::string only;                // contenders whose name begins so
  std::int64_t segment_bytes = 0;  // as AllreduceLoad has it
};

int run_all(const Wanted& wanted) {
#ifndef TROUPE_WITH_GLOO
  fmt::print("Gloo is not installed (libgloo-dev): nothing is compared with it\n");
#endif
#ifndef TROUPE_WITH_MPI
  fmt::print(
      "OpenMPI is not installed (libopenmpi-dev, openmpi-bin): nothing is compared with "
      "it\n");
#endif
  bool right = true;
  std::vector<std::size_t> sizes{4 * kKib, 4 * kMib};
  if (!wanted.small) sizes = {4 * kKib, kMib, 4 * kMib, 64 * kMib};
  if (!wanted.sizes.empty()) sizes = wanted.sizes;
  for (const std::size_t bytes : sizes) {
    for (const int processes : wanted.processes) {
      // So many that a run takes some tenths of a second.
      const std::size_t steps = wanted.small ? std::clamp<std::size_t>(4 * kMib / bytes, 1, 20)
                                             : std::clamp<std::size_t>(512 * kMib / bytes, 8, 2000);
      const AllreduceLoad load{bytes, processes, static_cast<int>(steps), wanted.segment_bytes};
      right &= compare(load, wanted.small ? 1 : wanted.repeats, wanted.only);
    }
  }
  return right ? 0 : 1;
}

int main_of(std::span<char* const> arguments) {
  const auto number = [](const char* text) { return std::strtoull(text, nullptr, 10); };
#ifdef TROUPE_WITH_MPI
  if (arguments.size() == 4 && std::strcmp(arguments[0], kMpiRank) == 0) {
    return run_mpi_rank({static_cast<std::size_t>(number(arguments[1])),
                         static_cast<int>(number(arguments[2])),
                         static_cast<int>(number(arguments[3])), 0});
  }
#endif
  Wanted wanted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    const char* value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (name == "--small") {
      wanted.small = true;
      continue;
    }
    ++i;
    if (name == "--kib") wanted.sizes = {static_cast<std::size_t>(number(value)) * kKib};
    if (name == "--processes") wanted.processes = {static_cast<int>(number(value))};
    if (name == "--repeats") wanted.repeats = static_cast<int>(number(value));
    if (name == "--only") wanted.only = value;
    if (name == "--segment-kib") {
      wanted.segment_bytes = static_cast<std::int64_t>(number(value) * kKib);
    }
  }
  return run_all(wanted);
}

}  // namespace
}  // namespace troupe::bench

// [--small] [--kib SIZE] [--processes N] [--repeats N] [--only NAME] [--segment-kib SIZE]: other
// than all of them.
int main(int argc, char** argv) { return troupe::bench::main_of(std::span(argv + 1, argv + argc)); }

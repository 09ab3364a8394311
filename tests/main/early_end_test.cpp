// A run that a signal ends before it trains: it says so and leaves nothing behind.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class EarlyEnd : public testing::Test {
 protected:
  // Making its data would take it minutes.
  static Words words(const Words& more) {
    Words words{"run",   "quickstart",
                "--out", "runs/a",
                "--set", "data.synthetic.events=1000000",
                "--set", "actors.monitor.listen=127.0.0.1:0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Ends the run by the signal once it takes signals, which it does before it has a page.
  ProcessEnd ended_by(int signal, const Words& more) {
    Process process(command(words(more)), {.folder = folder_.path()});
    const std::string log = folder_ / "runs/a/log.txt";
    while (process.running() && read_text(log).find("watch it at") == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    process.send(signal);
    return process.wait();
  }
  pipeline::TemporaryFolder folder_;
};

TEST_F(EarlyEnd, IsSaidAndLeavesNoFolder) {
  const ProcessEnd end = ended_by(SIGINT, {"--json"});
  EXPECT_EQ(end.exit_code, 130) << end.err;
  EXPECT_THAT(end.err, HasSubstr("ended by signal 2 before training began; its folder is removed"));
  EXPECT_EQ(last_line(end)["exit_code"].integer(), 130u);
  EXPECT_EQ(last_line(end)["error"].text(), "ended by signal 2 before training began");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/a"));
}

TEST_F(EarlyEnd, OfSeveralProcessesIsSaidAndLeavesNoFolder) {
  const ProcessEnd end = ended_by(SIGTERM, {"--workers", "1"});
  EXPECT_EQ(end.exit_code, 143) << end.err;
  EXPECT_THAT(end.err, HasSubstr("ended by signal 15 before training began"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/a"));
}

TEST_F(EarlyEnd, LeavesWhatWasThere) {
  std::filesystem::create_directories(folder_ / "runs/a/checkpoints");
  write_text(folder_ / "runs/a/.notes", "precious");
  const ProcessEnd end = ended_by(SIGINT, {});
  EXPECT_EQ(end.exit_code, 130) << end.err;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "runs/a")) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("checkpoints", ".notes"));
}

}  // namespace
}  // namespace troupe

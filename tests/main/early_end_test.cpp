// A run that a signal ends before it trains: it says so and leaves nothing behind.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class EarlyEnd : public testing::Test {
 protected:
  // Making its data would take it minutes.
  static Words words(const Words& more) {
    return Words{"run",   "quickstart",
                 "--out", "runs/a",
                 "--set", "data.synthetic.events=1000000",
                 "--set", "actors.monitor.listen=127.0.0.1:0"} +
           more;
  }
  // Ends the run by the signal once it takes signals, which it does before it has a page.
  ProcessEnd ended_by(int signal, const Words& more) {
    Process process(command(words(more)), {.folder = folder_.path()});
    const std::string log = folder_ / "runs/a/log.txt";
    process.wait_until([&] { return read_text(log).find("watch it at") != std::string::npos; });
    process.send(signal);
    return process.wait();
  }
  TemporaryFolder folder_;
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
  EXPECT_THAT(end.err, testing::Not(HasSubstr("before it had joined"))) << "it is the run's end";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/a"));
}

// Before anything was loaded. Signals that are held are told of once somebody listens.
class FirstMoment : public ToyRun {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer holds signals too, and lets them go again";
#endif
  }
  static bool holds(pid_t process, int signal) {
    const std::string status = read_text(fmt::format("/proc/{}/status", process));
    const std::string key = "SigBlk:\t";
    const std::size_t at = status.find(key);
    if (at == std::string::npos) return false;
    return (std::stoull(status.substr(at + key.size()), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  static void expect_told(const Words& words) {
    Process process(command(words));
    process.wait_until([&] { return holds(process.pid(), SIGINT); });
    process.send(SIGINT);
    const ProcessEnd end = process.wait();
    const std::string name = testing::PrintToString(words);
    EXPECT_EQ(end.exit_code, 130) << name << end.err;
    EXPECT_THAT(end.err, HasSubstr("by signal 2")) << name;
    EXPECT_EQ(last_line(end)["exit_code"].integer(), 130u) << name;
  }
};

TEST_F(FirstMoment, OfARunIsLateEnoughForASignalToBeToldOf) {
  expect_told(run_words("a", {"--json"}));
  EXPECT_FALSE(std::filesystem::exists(path("a")));
  expect_told(run_words("b", {"--json", "--workers", "1"}));
}

TEST_F(FirstMoment, OfARunThatGoesOnIsLateEnoughForASignalToBeToldOf) {
  run("a");
  for (const Words& more : {Words{}, {"--workers", "1"}}) {
    Words words =
        Words{"run", "--resume", path("a"), "--json", "--set", "train.epochs=1000000"} + more;
    expect_told(words);
  }
}

TEST_F(EarlyEnd, LeavesWhatWasThere) {
  std::filesystem::create_directories(folder_ / "runs/a/checkpoints");
  write_text(folder_ / "runs/a/.notes", "precious");
  const ProcessEnd end = ended_by(SIGINT, {});
  EXPECT_EQ(end.exit_code, 130) << end.err;
  EXPECT_THAT(end.err, HasSubstr("ended by signal 2 before training began\n"));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "runs/a")) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("checkpoints", ".notes"));
}

}  // namespace
}  // namespace troupe

#include "launch/machine/preemption.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;

class Preemption : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::unique_ptr<PreemptionWatch> watch(PreemptionOptions options) {
    runtime::LogOptions log;
    log.to_stderr = false;
    log.also = [this](runtime::LogLevel, std::string_view line) {
      lines_ += std::string(line) + "\n";
    };
    return std::make_unique<PreemptionWatch>(std::move(options), runtime::Log::open(log).value());
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  }

  TemporaryFolder folder_;
  std::string lines_;
};

TEST_F(Preemption, AFileThatAppearsIsTheNotice) {
  const auto watched = watch({.file = path("notice"), .command = {}});
  EXPECT_EQ(watched->look(), std::nullopt);
  std::ofstream(path("notice")).flush();
  EXPECT_THAT(watched->look(), Optional(HasSubstr(path("notice") + " is there")));
  EXPECT_EQ(lines_, "");
}

TEST_F(Preemption, ACommandThatEndsWithZeroIsTheNotice) {
  const std::string command = "test -e " + path("notice") +
                              "; code=$?; echo out; echo err >&2; "
                              "exit $code";
  const auto watched = watch({.file = {}, .command = command});
  EXPECT_EQ(watched->look(), std::nullopt);
  std::ofstream(path("notice")).flush();
  EXPECT_THAT(watched->look(), Optional(AllOf(HasSubstr(command), HasSubstr("exit code 0"))));
  EXPECT_EQ(lines_, "");
}

TEST_F(Preemption, ACommandThatIsNoProgramIsToldOnceAndIsNoNotice) {
  const auto watched = watch({.file = {}, .command = "/nowhere/program --asks"});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(watched->look(), std::nullopt);
  EXPECT_EQ(count(lines_, "/nowhere/program --asks"), 1U) << lines_;
  EXPECT_THAT(lines_, AllOf(HasSubstr("exit code 127"), HasSubstr("not found")));
}

TEST_F(Preemption, ACommandThatHangsIsKilledWithWhatItStartedAndIsToldOnce) {
  const std::string mark = path("alive");
  const auto watched = watch({.file = {},
                              .command = "sleep 1 && touch " + mark + " & sleep 60",
                              .every = 1s,
                              .command_within = 100ms});
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(watched->look(), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  EXPECT_EQ(count(lines_, "is killed: it has not ended within"), 1U) << lines_;
  std::this_thread::sleep_for(1500ms);
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(Preemption, AFileThatCannotBeLookedForIsToldOnce) {
  const auto watched = watch({.file = path(std::string(300, 'n')), .command = {}});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(watched->look(), std::nullopt);
  EXPECT_EQ(count(lines_, "cannot look for"), 1U) << lines_;
}

TEST_F(Preemption, TheWatchTellsOnceAndEndsWithoutWaiting) {
  std::atomic<int> told{0};
  {
    const auto watched = watch({.file = path("notice"), .command = {}, .every = 10ms});
    watched->begin([&](const std::string&) { ++told; });
    std::ofstream(path("notice")).flush();
    for (int i = 0; i < 1000 && told == 0; ++i) std::this_thread::sleep_for(10ms);
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(told, 1);
  const auto begin = std::chrono::steady_clock::now();
  {
    const auto watched = watch(
        {.file = {}, .command = "sleep 60", .every = std::chrono::hours(1), .command_within = 60s});
    watched->begin([&](const std::string&) { ++told; });
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace troupe::launch

#include "launch/run/run_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

using std::chrono::milliseconds;

TEST(EndRequests, SignalsOfOneMomentBelongToTheRequestThatTheFirstBegan) {
  EndRequests requests(milliseconds(100));
  EXPECT_EQ(requests.hear(milliseconds(5)), 1);
  EXPECT_EQ(requests.hear(milliseconds(5)), std::nullopt);
  EXPECT_EQ(requests.hear(milliseconds(104)), std::nullopt);
  EXPECT_EQ(requests.hear(milliseconds(105)), 2);
  EXPECT_EQ(requests.hear(milliseconds(204)), std::nullopt);
  EXPECT_EQ(requests.hear(milliseconds(999)), 3);
}

// Returns when the watch has taken the signal.
void send(int number) {
  ::kill(::getpid(), number);
  EXPECT_TRUE(wait_for([number] {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, number) == 0;
  }));
}

constexpr milliseconds kNever{1'000'000};

TEST(RunSignals, RepetitionOfARequestLeavesTheFirstOneInForce) {
  RunSignals signals({.supervised = false, .returns = true, .moment = kNever});
  for (const int number : {SIGTERM, SIGINT, SIGTERM, SIGHUP}) send(number);
  EXPECT_TRUE(wait_for([&] { return signals.stopped_by() == SIGTERM; }));
}

TEST(RunSignals, SecondRequestEndsTheProcessAtOnce) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        RunSignals signals({.supervised = false, .returns = true, .moment = milliseconds(0)});
        send(SIGTERM);
        send(SIGINT);
        ::pause();
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(RunSignals, SecondRequestIsTheSupervisorsToCarryOut) {
  RunSignals signals({.supervised = true, .returns = true, .moment = milliseconds(0)});
  for (const int number : {SIGTERM, SIGINT, SIGTERM}) send(number);
  EXPECT_EQ(signals.stopped_by(), SIGTERM);
}

TEST(RunSignals, RequestAfterTheRunDoesNotCutOffAProcessBelowASupervisor) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        { RunSignals signals({.supervised = true, .returns = true, .moment = milliseconds(0)}); }
        ::kill(::getpid(), SIGTERM);
        ::_exit(7);
      },
      testing::ExitedWithCode(7), "");
}

TEST(RunSignals, FirstRequestEndsAProcessThatHasNothingToSave) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_DFL);  // below nohup it is ignored
        RunSignals signals({});
        send(SIGHUP);
        ::pause();
      },
      testing::ExitedWithCode(128 + SIGHUP), "");
}

}  // namespace
}  // namespace troupe::launch

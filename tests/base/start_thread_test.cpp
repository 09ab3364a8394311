#include "runtime/base/start_thread.h"

#include <gtest/gtest.h>

#include <csignal>

namespace troupe::runtime {
namespace {

TEST(StartThread, SignalsThatAskForSomethingAreNotForIt) {
  bool held = false;
  sigset_t here;
  auto thread = start_thread("a test", [&held] {
    sigset_t there;
    pthread_sigmask(SIG_SETMASK, nullptr, &there);
    held = sigismember(&there, SIGINT) == 1 && sigismember(&there, SIGTERM) == 1 &&
           sigismember(&there, SIGSEGV) == 0;
  });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_TRUE(held);
  pthread_sigmask(SIG_SETMASK, nullptr, &here);
  EXPECT_EQ(sigismember(&here, SIGINT), 0) << "the caller goes on to get them";
}

}  // namespace
}  // namespace troupe::runtime

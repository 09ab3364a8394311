#include "runtime/base/thread_team.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

TEST(ThreadTeam, EveryIndexIsTakenOnce) {
  ThreadTeam team(3);
  EXPECT_EQ(team.threads(), 3);
  std::vector<std::atomic<int>> taken(100);
  for (int round = 0; round < 2; ++round) {
    team.run(100, [&](std::int64_t i, int) { ++taken[static_cast<std::size_t>(i)]; });
  }
  for (const auto& count : taken) EXPECT_EQ(count, 2);
}

TEST(ThreadTeam, TheCallerTakesTheFirstIndex) {
  ThreadTeam team(3);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> by = -1;
    team.run(round % 4, [&](std::int64_t i, int thread) {
      if (i == 0) by = thread;
    });
    EXPECT_EQ(by, round % 4 == 0 ? -1 : 0);
  }
}

// Asks for 1000 threads where address space holds the stacks of a few; true when those that came
// do the work.
bool works_where_threads_are_refused() {
  rlimit limit{512u << 20, 512u << 20};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) return false;
  ThreadTeam team(1000);
  std::atomic<int> done = 0;
  team.run(100, [&](std::int64_t, int thread) { done += thread < team.threads(); });
  return team.threads() < 1000 && done == 100;
}

TEST(ThreadTeam, GoesOnWithTheThreadsTheSystemGives) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(works_where_threads_are_refused() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace troupe::runtime

// A node whose threads the system does not give: it says so, and nobody begins.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "runtime/base/start_thread.h"
#include "tests/runtime/stage.h"

namespace troupe::runtime {
namespace {

// In a process whose address space holds the stacks of a few threads. True: `holds` returned true.
bool holds_with_few_threads(const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{512u << 20, 512u << 20};
    ::_exit(::setrlimit(RLIMIT_AS, &limit) == 0 && holds() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool names(const NodeEnd& end, const std::string& whom) {
  if (!end.error || end.error->kind != ErrorKind::kInternal) return false;
  const std::string& text = end.error->message;
  return text.find("no thread for " + whom) != std::string::npos &&
         text.find("ulimit -u") != std::string::npos && end.unstopped.empty() &&
         end.abandoned.empty();
}

class RefusedThread : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  }
};

TEST_F(RefusedThread, OfAnActorEndsTheNodeWithItsName) {
  EXPECT_TRUE(holds_with_few_threads([] {
    bool started = false;
    Script actor;
    actor.start = [&](Context&) { started = true; };
    Stage stage;
    stage.actor("root", "", actor);
    for (int i = 0; i < 1000; ++i) stage.actor("worker." + std::to_string(i), "root", actor, true);
    return names(stage.run_on_threads(), "worker.") && !started;
  }));
}

TEST_F(RefusedThread, OfTheSchedulerEndsTheNodeToo) {
  EXPECT_TRUE(holds_with_few_threads([] {
    Stage stage;
    stage.options().scheduler_threads = 64;
    stage.actor("root", "", root_of(1)).actor("child", "root", counting_sender(0));
    return names(stage.run_on_threads(), "the scheduler");
  }));
}

TEST_F(RefusedThread, OfAConstructorIsThrownInTheWordsThatMainReports) {
  EXPECT_TRUE(holds_with_few_threads([] {
    std::string told;
    for (int i = 0; i < 1000 && told.empty(); ++i) {
      try {
        need_thread("a test", [] { ::pause(); }).detach();
      } catch (const NoThread& error) {
        told = error.what();
      }
    }
    return told.starts_with("the system gives no thread for a test: ");
  }));
}

}  // namespace
}  // namespace troupe::runtime

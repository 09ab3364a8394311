// A run in which one member hangs without dying: it goes on giving signs of life, and its work
// stands still.

#include <gmock/gmock.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code gone;
  const std::string folder = fmt::format("/proc/{}/task", process);
  for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
    threads.push_back(std::stoi(entry.path().filename()));
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

// A thread that stands still while this object lives.
class Frozen {
 public:
  explicit Frozen(pid_t thread) : thread_(thread) {
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return;
    ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
    int status = 0;
    done_ = ::waitpid(thread, &status, __WALL) == thread;
  }
  ~Frozen() {
    if (done_) ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  bool done() const { return done_; }

 private:
  pid_t thread_;
  bool done_ = false;
};

class ClusterStuck : public ClusterRun {};

TEST_F(ClusterStuck, MemberWhoseWorkStandsStillIsNamedByTheGraphOfAllNodes) {
  Process process(command(run_words("a", kEndlessRun) +
                          Words{"--workers", "2", "--set", "actors.replica.count=1", "--set",
                                "cluster.failure={stuck_after: 2s, dead_after: 60s}"}));
  wait_until_training(process);
  {
    // All threads but those that speak with other nodes, and the first, which keeps the timers.
    std::vector<std::unique_ptr<Frozen>> frozen;
    const pid_t victim = member(1);
    ASSERT_GT(victim, 0);
    for (const pid_t thread : threads_of(victim)) {
      const std::string name = read_text(fmt::format("/proc/{}/task/{}/comm", victim, thread));
      if (thread == victim || name.starts_with("gate") || name.starts_with("ZMQ")) continue;
      frozen.push_back(std::make_unique<Frozen>(thread));
      if (!frozen.back()->done()) GTEST_SKIP() << "this system refuses to stop a single thread";
    }
    ASSERT_FALSE(frozen.empty());
    EXPECT_TRUE(wait_until_said(process, "stuck: nothing has moved on any node")) << log();
  }
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 1) << end.err;
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("member.0: "), HasSubstr("member.1: "), HasSubstr("coordinator: "),
                    testing::ContainsRegex("culprit: (replica|loader|reducer)\\.1, ")));
}

}  // namespace
}  // namespace troupe

#include "launch/processes/child_exec.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "launch/processes/child_process.h"

namespace troupe::launch {
namespace {

// Where descriptors wait until their own numbers are free.
constexpr int kAside = 16;

[[noreturn]] void give_up(int report, bool in_exec = false) {
  const ExecFailure failure{errno, in_exec};
  const ssize_t written = ::write(report, &failure, sizeof failure);
  ::_exit(written == sizeof failure ? 127 : 126);
}

// A copy from kAside on. Where no number may be so large there is none left.
int aside_of(int number) {
  const int copy = ::fcntl(number, F_DUPFD_CLOEXEC, kAside);
  if (copy < 0 && errno == EINVAL) errno = EMFILE;
  return copy;
}

// Not every kernel can do it for all at once.
void close_rest_at_exec() {
  const unsigned first = kParentLineDescriptor + 1;
  if (::close_range(first, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  constexpr long kMost = 1 << 16;
  const long most = std::clamp<long>(::sysconf(_SC_OPEN_MAX), 1024, kMost);
  for (int number = static_cast<int>(first); number < most; ++number) {
    ::fcntl(number, F_SETFD, FD_CLOEXEC);
  }
}

}  // namespace

void become_program(const ExecPlan& plan) {
  const int report = aside_of(plan.report);
  if (report < 0) give_up(plan.report);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(report);
  // Had the parent ended before, no signal would come.
  if (::getppid() != plan.parent) ::_exit(127);
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  // Shells have it ignored in the background; here it comes from the parent, which means it.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);

  // Aside first: one of them may have the number that another is to get.
  const std::array<std::array<int, 2>, 4> moves{{{plan.in, STDIN_FILENO},
                                                 {plan.out, STDOUT_FILENO},
                                                 {plan.err, STDERR_FILENO},
                                                 {plan.line, kParentLineDescriptor}}};
  std::array<int, 4> aside{};
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (moves[i][0] < 0) continue;
    aside[i] = aside_of(moves[i][0]);
    if (aside[i] < 0) give_up(report);
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (moves[i][0] >= 0 && ::dup2(aside[i], moves[i][1]) < 0) give_up(report);
  }
  close_rest_at_exec();
  ::execv(plan.words[0], plan.words);
  give_up(report, true);
}

}  // namespace troupe::launch

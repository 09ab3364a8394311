#include "launch/processes/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/descriptor.h"

namespace troupe::launch {
namespace {

using runtime::Descriptor;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
// A killed process that does not go hangs in the kernel; waiting longer would not help.
constexpr int kKillPatienceMilliseconds = 5000;

// The steps of a forked process until it is another program. Everything is made ready before the
// fork: memory must not be allocated after it, because another thread may have held the allocator's
// lock.
struct ExecPlan {
  char* const* words;  // the program's path and arguments; ends with null
  int in;              // becomes its standard input
  int out, err;        // become its standard output and error; -1: what they are
  int line;            // becomes kParentLineDescriptor
  int report;          // takes an ExecFailure if it does not become the program
  pid_t parent;        // who forked
};

// Why a process did not become the program.
struct ExecFailure {
  int number;    // the errno
  bool in_exec;  // it is about the program itself; else about what is made ready before
};

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

// In the child of a fork only. Makes sure that the process is killed when its parent ends, even if
// that has happened already; closes everything but the descriptors above at exec; becomes the
// program, or reports why not and ends with 127.
[[noreturn]] void become_program(const ExecPlan& plan) {
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

struct Pipe {
  Descriptor read, write;
};

Error failed(const ChildOptions& options, const char* what, int code) {
  if (runtime::is_out_of_descriptors(code)) {
    return runtime::out_of_descriptors(ErrorKind::kInternal,
                                       fmt::format("starting {}", options.words.front()));
  }
  return {ErrorKind::kInternal, fmt::format("{} cannot be started: {}: {}", options.words.front(),
                                            what, std::generic_category().message(code))};
}

// An Error's cause is in errno.
bool open_pipe(Pipe& pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe = {Descriptor(ends[0]), Descriptor(ends[1])};
  return true;
}

// A socket: what is written when nobody reads any more is an error, and no signal.
bool open_line(Pipe& line) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  line = {Descriptor(ends[0]), Descriptor(ends[1])};
  return true;
}

// A file without a name that holds the text.
bool open_input(const std::string& text, Descriptor& input) {
  input = Descriptor(::memfd_create("input", MFD_CLOEXEC));
  return input.is_open() &&
         ::write(input.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
         ::lseek(input.number(), 0, SEEK_SET) == 0;
}

bool open_stream(const LineSink& sink, Pipe& pipe) {
  if (!sink) return true;
  return open_pipe(pipe) && ::fcntl(pipe.read.number(), F_SETFL, O_NONBLOCK) == 0;
}

// None: the child has become the program, and with that its end of the pipe has closed.
std::optional<ExecFailure> read_failure(const Descriptor& report) {
  ExecFailure failure{};
  ssize_t got = 0;
  do {
    got = ::read(report.number(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof failure) return std::nullopt;
  return failure;
}

// Where SIGCHLD is ignored, perhaps by who started us, nobody learns how a child ended.
void hear_of_children() {
  struct sigaction action {};
  ::sigaction(SIGCHLD, nullptr, &action);
  if (action.sa_handler == SIG_IGN) std::signal(SIGCHLD, SIG_DFL);
}

}  // namespace

std::string ChildEnd::text() const {
  if (signal == 0) return fmt::format("ended with exit code {}", exit_code);
  const char* name = ::sigdescr_np(signal);
  return fmt::format("was killed by signal {} ({})", signal, name == nullptr ? "unknown" : name);
}

// The report is a pipe that closes at exec: the parent reads why the child did not become the
// program, or nothing once it has. So an error comes from here, and not as an exit code later.
Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ChildOptions& options) {
  CHECK(!options.words.empty(), "no program");
  hear_of_children();
  Pipe report, line, out, err;
  Descriptor input;
  if (!open_input(options.input, input) || !open_pipe(report) || !open_line(line) ||
      !open_stream(options.out, out) || !open_stream(options.err, err)) {
    return failed(options, "no pipe", errno);
  }
  std::vector<char*> words;
  for (const std::string& word : options.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const ExecPlan plan{words.data(),       input.number(),     out.write.number(),
                      err.write.number(), line.read.number(), report.write.number(),
                      ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return failed(options, "no process", errno);
  if (pid == 0) become_program(plan);
  // glibc 2.36 declares its own name for this such that C++ cannot link it.
  Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const int pidfd_error = process.is_open() ? 0 : errno;
  // Ours must close, or the report would never end.
  report.write.close();
  const auto failure = read_failure(report.read);
  if (failure || pidfd_error != 0) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    if (!failure) return failed(options, "it cannot be watched", pidfd_error);
    return failed(options, failure->in_exec ? "not a program" : "it cannot be made ready",
                  failure->number);
  }
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(pid, options.leaves_others, std::move(process), std::move(line.write),
                       {std::move(out.read), LineSplitter(options.out)},
                       {std::move(err.read), LineSplitter(options.err)}));
}

ChildProcess::ChildProcess(pid_t pid, bool leaves_others, Descriptor process, Descriptor line,
                           Stream out, Stream err)
    : pid_(pid),
      leaves_others_(leaves_others),
      process_(std::move(process)),
      line_(std::move(line)),
      streams_{std::move(out), std::move(err)} {}

ChildProcess::~ChildProcess() {
  if (end_) return;
  send(SIGKILL);
  pollfd gone{process_.number(), POLLIN, 0};
  while (::poll(&gone, 1, kKillPatienceMilliseconds) < 0 && errno == EINTR) {
  }
  ::waitpid(pid_, nullptr, WNOHANG);
}

void ChildProcess::send(int signal_number) const {
  if (end_) return;
  // Not yet waited for, its number belongs to it and to its session.
  ::kill(signal_number == SIGKILL ? -pid_ : pid_, signal_number);
}

void ChildProcess::tell(const std::string& line) const {
  if (end_) return;
  const std::string text = line + "\n";
  (void)::send(line_.number(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void ChildProcess::Stream::read(std::size_t most) {
  std::array<char, kReadBytes> bytes;
  while (pipe.is_open() && most > 0) {
    const ssize_t got = ::read(pipe.number(), bytes.data(), std::min(most, bytes.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return finish();
    lines.add({bytes.data(), static_cast<std::size_t>(got)});
    most -= static_cast<std::size_t>(got);
  }
}

void ChildProcess::Stream::finish() {
  if (!pipe.is_open()) return;
  pipe.close();
  lines.finish();
}

void ChildProcess::look() {
  if (end_) return;
  siginfo_t info{};
  const bool ended =
      ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_;
  for (Stream& stream : streams_) {
    // All it has written is in the pipe by then; what others write there may never end.
    const int capacity = stream.pipe.is_open() ? ::fcntl(stream.pipe.number(), F_GETPIPE_SZ) : 0;
    stream.read(ended && capacity > 0 ? static_cast<std::size_t>(capacity) : kReadBytes);
    if (ended) stream.finish();
  }
  if (!ended) return;
  // The processes that it has left in its session go with it, while its number is not given away.
  if (!leaves_others_) ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  end_ = info.si_code == CLD_EXITED ? ChildEnd{info.si_status, 0} : ChildEnd{0, info.si_status};
  process_.close();
  line_.close();
}

// Polls everything at once. The caller asks each child afterwards how it is, because a poll that
// was cut short says nothing.
void wait_for_children(std::span<const std::unique_ptr<ChildProcess>> children, int wake_descriptor,
                       std::optional<runtime::Duration> timeout) {
  std::vector<pollfd> events;
  if (wake_descriptor >= 0) events.push_back({wake_descriptor, POLLIN, 0});
  for (const auto& child : children) {
    if (child->end_) continue;
    events.push_back({child->process_.number(), POLLIN, 0});
    for (const auto& stream : child->streams_) {
      if (stream.pipe.is_open()) events.push_back({stream.pipe.number(), POLLIN, 0});
    }
  }
  if (events.empty() && !timeout) return;
  const auto left_ns = timeout.value_or(runtime::Duration{0}).count();
  const timespec left{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  ::ppoll(events.data(), events.size(), timeout ? &left : nullptr, nullptr);
  for (const auto& child : children) child->look();
}

}  // namespace troupe::launch

#include "launch/machine/preemption.h"

#include <sys/eventfd.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "launch/processes/command.h"
#include "runtime/base/start_thread.h"

namespace troupe::launch {
namespace {

// A shell ends with these where what it was to run is not there, or is no program.
constexpr int kNotAProgram = 126;
constexpr int kNotFound = 127;

}  // namespace

PreemptionWatch::PreemptionWatch(PreemptionOptions options, runtime::Log log)
    : options_(std::move(options)),
      log_(std::move(log)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(wake_.is_open(), "no eventfd");
}

void PreemptionWatch::begin(std::function<void(const std::string&)> on_notice) {
  if (options_.file.empty() && options_.command.empty()) return;
  const auto watch = [this, tell = std::move(on_notice)] {
    while (!can_be_read(wake_.number())) {
      if (const auto why = look()) return tell(*why);
      wait_for_children({}, wake_.number(), options_.every);
    }
  };
  thread_ = runtime::need_thread("the watch for preemption", watch);
}

void PreemptionWatch::end() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  CHECK(::write(wake_.number(), &one, sizeof one) == sizeof one);
  thread_.join();
}

std::optional<std::string> PreemptionWatch::look() {
  if (!options_.file.empty() && file_is_there()) {
    return fmt::format("this machine is about to be taken away: {} is there", options_.file);
  }
  if (!options_.command.empty() && command_says_so()) {
    return fmt::format("this machine is about to be taken away: `{}` ended with exit code 0",
                       options_.command);
  }
  return std::nullopt;
}

bool PreemptionWatch::file_is_there() {
  struct stat about {};
  if (::stat(options_.file.c_str(), &about) == 0) return true;
  const int code = errno;
  if (code != ENOENT && code != ENOTDIR) {
    warn(warned_of_file_, fmt::format("cannot look for {}: {}", options_.file,
                                      std::generic_category().message(code)));
  }
  return false;
}

bool PreemptionWatch::command_says_so() {
  const auto ended = run_command({.words = {"/bin/sh", "-c", options_.command},
                                  .within = options_.command_within,
                                  .wake_descriptor = wake_.number()});
  if (!ended.ok()) {
    warn(warned_of_command_, ended.error().message);
    return false;
  }
  if (ended->woken) return false;
  if (!ended->end) {
    warn(warned_of_command_,
         fmt::format("`{}` is killed: it has not ended within {:.0f} s", options_.command,
                     std::chrono::duration<double>(options_.command_within).count()));
    return false;
  }
  const int exit_code = ended->end->exit_code;
  if (ended->end->signal != 0 || exit_code == kNotAProgram || exit_code == kNotFound) {
    const std::string& said = ended->last_error;
    warn(warned_of_command_, fmt::format("`{}` {}{}{}", options_.command, ended->end->text(),
                                         said.empty() ? "" : ": ", said));
  }
  return *ended->end == ChildEnd{0, 0};
}

void PreemptionWatch::warn(bool& warned, const std::string& what) {
  if (std::exchange(warned, true)) return;
  log_.warning(
      fmt::format("it is not known whether this machine is about to be taken away: {}; "
                  "looking again every {:.1f} s",
                  what, std::chrono::duration<double>(options_.every).count()));
}

}  // namespace troupe::launch

#include "launch/run/member_group.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "launch/processes/child_process.h"
#include "launch/processes/line_splitter.h"
#include "launch/processes/signal_watch.h"
#include "runtime/base/descriptor.h"

namespace troupe::launch {

using runtime::Result;

Result<int> run_member_group(const MemberGroupRequest& request) {
  const runtime::Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  CHECK(wake.is_open(), "no eventfd");
  std::mutex mutex;
  std::vector<int> signals;
  const SignalWatch watch([&](int number, int count) {
    const std::scoped_lock lock(mutex);
    signals.push_back(count > 1 ? SIGKILL : number);
    const std::uint64_t one = 1;
    CHECK(::write(wake.number(), &one, sizeof one) == sizeof one);
  });
  std::vector<std::unique_ptr<ChildProcess>> members;
  for (std::size_t i = 0; i < request.own_words.size(); ++i) {
    ChildOptions options;
    options.words = {std::filesystem::read_symlink("/proc/self/exe").string()};
    options.words.insert(options.words.end(), request.words.begin(), request.words.end());
    const auto& own = request.own_words[i];
    options.words.insert(options.words.end(), own.begin(), own.end());
    options.out = options.err = prefixed_lines(fmt::format("worker {}", i), STDERR_FILENO);
    options.input = request.token;
    ASSIGN_OR_RETURN(auto member, ChildProcess::start(options));
    members.push_back(std::move(member));
  }
  const auto any_runs = [&] {
    return std::ranges::any_of(members, [](const auto& member) { return !member->end(); });
  };
  while (any_runs()) {
    wait_for_children(members, wake.number());
    std::uint64_t count = 0;
    if (::read(wake.number(), &count, sizeof count) < 0) continue;
    const std::scoped_lock lock(mutex);
    for (const int number : std::exchange(signals, {})) {
      for (const auto& member : members) member->send(number);
    }
  }
  for (const auto& member : members) {
    if (member->end()->signal != 0) return 128 + member->end()->signal;
    if (member->end()->exit_code != 0) return member->end()->exit_code;
  }
  return 0;
}

}  // namespace troupe::launch

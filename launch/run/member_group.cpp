#include "launch/run/member_group.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "launch/processes/child_process.h"
#include "launch/processes/line_splitter.h"
#include "launch/processes/signal_watch.h"
#include "runtime/base/clock.h"
#include "runtime/base/descriptor.h"

namespace troupe::launch {

using runtime::Result;

namespace {

// A member that fails is started anew later, if another one runs then: a run that is over lets none
// run, and has no use for any.
constexpr auto kStartAgainAfter = std::chrono::seconds(5);
constexpr int kMostRestarts = 3;  // of all together

class MemberGroup {
 public:
  explicit MemberGroup(const MemberGroupRequest& request)
      : request_(request), again_at_(request.own_words.size()) {}

  Result<void> start() {
    for (std::size_t i = 0; i < request_.own_words.size(); ++i) {
      ASSIGN_OR_RETURN(auto member, start_member(i));
      members_.push_back(std::move(member));
    }
    return {};
  }
  bool any_runs() const {
    return std::ranges::any_of(members_, [](const auto& member) { return !member->end(); });
  }
  // Until something happens.
  void wait(int wake_descriptor) {
    std::optional<runtime::Duration> timeout;
    for (const auto& at : again_at_) {
      if (!at) continue;
      const auto left = std::max(runtime::Duration{0}, *at - clock_.now());
      timeout = std::min(timeout.value_or(left), left);
    }
    wait_for_children(members_, wake_descriptor, timeout);
    if (!ends_) look();
  }
  void send(int number) {
    if (number != SIGUSR1) {
      ends_ = true;
      again_at_.assign(members_.size(), std::nullopt);
    }
    for (const auto& member : members_) member->send(number);
  }
  int exit_code() const {
    for (const auto& member : members_) {
      if (member->end()->signal != 0) return 128 + member->end()->signal;
      if (member->end()->exit_code != 0) return member->end()->exit_code;
    }
    return 0;
  }

 private:
  static LineSink lines_of(std::size_t number) {
    return prefixed_lines(fmt::format("worker {}", number), STDERR_FILENO);
  }
  Result<std::unique_ptr<ChildProcess>> start_member(std::size_t number) const {
    ChildOptions options;
    options.words = {std::filesystem::read_symlink("/proc/self/exe").string()};
    options.words.insert(options.words.end(), request_.words.begin(), request_.words.end());
    const auto& own = request_.own_words[number];
    options.words.insert(options.words.end(), own.begin(), own.end());
    options.out = options.err = lines_of(number);
    options.input = request_.token;
    return ChildProcess::start(options);
  }
  // Whether members have failed, and are to be started anew now.
  void look() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto& end = members_[i]->end();
      if (!end || *end == ChildEnd{0, 0} || !any_runs()) continue;
      if (!again_at_[i] && restarts_ < kMostRestarts) {
        ++restarts_;
        again_at_[i] = clock_.now() + kStartAgainAfter;
        lines_of(i)(fmt::format("it {}; it is started anew in {} s, if another one runs then",
                                end->text(), kStartAgainAfter.count()));
      } else if (again_at_[i] && *again_at_[i] <= clock_.now()) {
        again_at_[i].reset();
        auto member = start_member(i);
        if (!member.ok()) {
          lines_of(i)(member.error().message);
        } else {
          members_[i] = std::move(*member);
        }
      }
    }
  }

  const MemberGroupRequest& request_;
  const runtime::SteadyClock clock_;
  std::vector<std::unique_ptr<ChildProcess>> members_;
  std::vector<std::optional<runtime::TimePoint>> again_at_;  // by member: when it is started anew
  int restarts_ = 0;
  bool ends_ = false;  // somebody has asked for it
};

}  // namespace

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
  MemberGroup group(request);
  RETURN_IF_ERROR(group.start());
  while (group.any_runs()) {
    group.wait(wake.number());
    std::uint64_t count = 0;
    if (::read(wake.number(), &count, sizeof count) < 0) continue;
    const std::scoped_lock lock(mutex);
    for (const int number : std::exchange(signals, {})) group.send(number);
  }
  return group.exit_code();
}

}  // namespace troupe::launch

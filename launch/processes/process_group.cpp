#include "launch/processes/process_group.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "launch/processes/lost_member.h"

namespace troupe::launch {

using runtime::Result;

ProcessGroup::ProcessGroup(ProcessGroupOptions options, const runtime::Clock& clock,
                           runtime::Log& log)
    : options_(std::move(options)),
      clock_(clock),
      log_(log),
      rules_(1 + options_.members.size(), options_.ask_after, options_.member_grace),
      reported_(1 + options_.members.size(), false),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      watch_([this](int number, int request) { take(number, request); }, options_.moment) {
  CHECK(wake_.is_open(), "no eventfd");
  processes_.push_back(&options_.head);
  for (const GroupProcess& member : options_.members) processes_.push_back(&member);
}

// One thread does all of it: it sleeps until a child, a signal or a deadline wants something, and
// carries out what the rules make of that. Signals come from the watch's thread through wake_.
Result<GroupEnd> ProcessGroup::run() {
  RETURN_IF_ERROR(start_all());
  while (!rules_.finished()) {
    wait_for_children(children_, wake_.number(), time_left());
    take_ends();
    for (const int number : new_signals()) carry_out(rules_.on_signal(number));
    carry_out(rules_.on_time(clock_.now()));
    replace_lost();
  }
  return rules_.end();
}

Result<void> ProcessGroup::start_all() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const auto started = start(i);
    if (started.ok()) continue;
    // This kills those that were started.
    children_.clear();
    return started.error();
  }
  return {};
}

Result<void> ProcessGroup::start(std::size_t index) {
  auto started = ChildProcess::start(process(index).program);
  if (!started.ok()) {
    return runtime::Error{started.error().kind,
                          fmt::format("{}: {}", process(index).name, started.error().message)};
  }
  children_.push_back(std::move(started).value());
  tell({process(index).name, children_.back()->pid(), std::nullopt});
  return {};
}

void ProcessGroup::replace_lost() {
  if (!rules_.goes_on()) due_.clear();
  while (!due_.empty() && clock_.now() >= due_.front()) {
    due_.erase(due_.begin());
    const std::size_t used = processes_.size() - 1 - options_.members.size();
    if (used == options_.replacements.size()) return;
    const GroupProcess& next = options_.replacements[used];
    processes_.push_back(&next);
    const auto started = start(processes_.size() - 1);
    if (!started.ok()) {
      processes_.pop_back();
      log_.warning(fmt::format("{}; the run goes on without it", started.error().message));
      return;
    }
    rules_.add();
    reported_.push_back(false);
    log_.info(fmt::format("{} (process {}) takes the place of a lost member", next.name,
                          children_.back()->pid()));
  }
}

// Members go on meanwhile, and tell it where they are.
bool ProcessGroup::restart_head(const ChildEnd& end) {
  const bool may = end.signal != 0 && rules_.goes_on() && heads_lost_ < options_.head_restarts;
  if (!may || (options_.can_return && !options_.can_return())) return false;
  const pid_t before = children_[kHeadProcess]->pid();
  auto started = ChildProcess::start(options_.next_head.program);
  if (!started.ok()) {
    log_.warning(fmt::format("the head (process {}) {}, and cannot be restarted: {}", before,
                             end.text(), started.error().message));
    return false;
  }
  ++heads_lost_;
  reported_[kHeadProcess] = false;
  tell({process(kHeadProcess).name, before, end, true});
  children_[kHeadProcess] = std::move(started).value();
  tell({process(kHeadProcess).name, children_[kHeadProcess]->pid(), std::nullopt});
  log_.warning(
      fmt::format("the head (process {}) {}; process {} takes its place, and training "
                  "goes on",
                  before, end.text(), children_[kHeadProcess]->pid()));
  // The head before it may have died with what it was told, so the next one is told all of it.
  for (const std::string& line : told_) children_[kHeadProcess]->tell(line);
  return true;
}

void ProcessGroup::tell_head(const std::string& line) {
  told_.push_back(line);
  children_[kHeadProcess]->tell(line);
}

void ProcessGroup::take(int number, int request) {
  constexpr int kPatience = 2;
  if (request > kPatience) ::_exit(128 + number);
  {
    const std::scoped_lock lock(mutex_);
    signals_.push_back(number);
  }
  const std::uint64_t one = 1;
  CHECK(::write(wake_.number(), &one, sizeof one) == sizeof one);
}

std::vector<int> ProcessGroup::new_signals() {
  std::uint64_t count = 0;
  if (::read(wake_.number(), &count, sizeof count) != sizeof count) return {};
  const std::scoped_lock lock(mutex_);
  return std::exchange(signals_, {});
}

// Each end is told once. A head that another takes over from has not ended for the rules.
void ProcessGroup::take_ends() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (!children_[i]->end() || reported_[i]) continue;
    reported_[i] = true;
    const ChildEnd end = *children_[i]->end();
    if (i == kHeadProcess && restart_head(end)) continue;
    const bool killed = rules_.was_killed(i);
    const bool lost =
        i != kHeadProcess && !rules_.head_has_ended() && !killed && end != ChildEnd{0, 0};
    carry_out(rules_.on_end(i, end, clock_.now()));
    // It may not have come as far as to release those that the one before it knew.
    const bool failed_to_return = i == kHeadProcess && heads_lost_ > 0 && end != ChildEnd{};
    if (failed_to_return) carry_out(rules_.ask_all());
    if (lost) {
      log_.warning(fmt::format("{} (process {}) {}; the head decides how the run goes on",
                               process(i).name, children_[i]->pid(), end.text()));
      tell_head(print(LostMember{process(i).name, end}));
      due_.push_back(clock_.now() + options_.replace_after);
    }
    tell({process(i).name, children_[i]->pid(), end, lost, killed});
  }
}

void ProcessGroup::carry_out(const std::vector<GroupAction>& actions) {
  for (const GroupAction& action : actions) {
    const GroupProcess& target = process(action.process);
    if (action.signal == SIGKILL) {
      log_.warning(fmt::format("{} (process {}) is killed: {}", target.name,
                               children_[action.process]->pid(),
                               rules_.head_has_ended() ? "the run has ended, and it has not"
                                                       : "a second signal has come"));
    }
    children_[action.process]->send(action.signal);
  }
}

void ProcessGroup::tell(const ProcessChange& change) const {
  if (options_.changed) options_.changed(change);
}

std::optional<runtime::Duration> ProcessGroup::time_left() const {
  auto deadline = rules_.deadline();
  if (!due_.empty()) deadline = std::min(deadline.value_or(due_.front()), due_.front());
  if (!deadline) return std::nullopt;
  return std::max(runtime::Duration{0}, *deadline - clock_.now());
}

}  // namespace troupe::launch

#include "launch/processes/group_rules.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

namespace troupe::launch {

using runtime::TimePoint;

GroupRules::GroupRules(std::size_t processes, runtime::Duration ask_after,
                       runtime::Duration member_grace)
    : ask_after_(ask_after), member_grace_(member_grace), processes_(processes) {
  CHECK(processes > 0, "a group needs a head");
}

std::vector<GroupAction> GroupRules::on_signal(int number) {
  if (number == SIGUSR1) {
    if (head_end_) return {};
    return {{kHeadProcess, SIGUSR1}};
  }
  // Without the head there is nobody left who would save anything.
  if (head_end_) return kill_all();
  if (passed_on_ == 0) {
    passed_on_ = number;
    return {{kHeadProcess, number}};
  }
  if (ending_signal_ == 0) ending_signal_ = number;
  return kill_all();
}

std::vector<GroupAction> GroupRules::on_end(std::size_t process, const ChildEnd& end,
                                            TimePoint now) {
  CHECK(!processes_[process].ended, "a process ended twice");
  processes_[process].ended = true;
  if (process == kHeadProcess) {
    head_end_ = end;
    ask_at_ = now + (end.signal == 0 ? ask_after_ : runtime::Duration{0});
    kill_at_ = now + member_grace_;
    return on_time(now);
  }
  return {};
}

std::vector<GroupAction> GroupRules::on_time(TimePoint now) {
  const auto is_due = [now](std::optional<TimePoint>& moment) {
    const bool due = moment && now >= *moment;
    if (due) moment.reset();
    return due;
  };
  const bool ask = is_due(ask_at_);
  if (is_due(kill_at_)) return kill_all();
  return ask ? ask_all() : std::vector<GroupAction>{};
}

std::optional<TimePoint> GroupRules::deadline() const {
  if (finished()) return std::nullopt;
  if (ask_at_ && kill_at_) return std::min(*ask_at_, *kill_at_);
  return ask_at_ ? ask_at_ : kill_at_;
}

void GroupRules::add() { processes_.emplace_back(); }

bool GroupRules::finished() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.ended; });
}

std::vector<GroupAction> GroupRules::ask_all() {
  std::vector<GroupAction> actions;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    if (process.ended || process.killed || std::exchange(process.asked, true)) continue;
    actions.push_back({i, SIGTERM});
  }
  return actions;
}

std::vector<GroupAction> GroupRules::kill_all() {
  std::vector<GroupAction> actions;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i].ended || processes_[i].killed) continue;
    processes_[i].killed = true;
    actions.push_back({i, SIGKILL});
  }
  return actions;
}

GroupEnd GroupRules::end() const {
  CHECK(finished() && head_end_.has_value(), "a group ends when all its processes have");
  constexpr int kBySignal = 128;
  if (head_end_->signal == 0) return {head_end_->exit_code, {}};
  // Somebody has asked twice and knows why everything was killed: that is no error to tell of.
  if (ending_signal_ != 0) return {kBySignal + ending_signal_, {}};
  // It came before the head could take it, and tell of it.
  if (passed_on_ != 0 && head_end_->signal == passed_on_) {
    return {kBySignal + passed_on_, runtime::Error{runtime::ErrorKind::kInternal,
                                                   fmt::format("ended by signal {}", passed_on_)}};
  }
  return {kBySignal + head_end_->signal,
          runtime::Error{runtime::ErrorKind::kInternal,
                         fmt::format("the head {}; the run can be gone on with by --resume",
                                     head_end_->text())}};
}

}  // namespace troupe::launch

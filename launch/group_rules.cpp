#include "launch/group_rules.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

namespace troupe::launch {

using runtime::TimePoint;

GroupRules::GroupRules(std::size_t processes, runtime::Duration member_grace)
    : member_grace_(member_grace), processes_(processes) {
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
    return {{kHeadProcess, SIGTERM}};
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
    deadline_ = now + member_grace_;
    // It has released nobody.
    if (end.signal != 0) return ask_all();
  }
  return {};
}

std::vector<GroupAction> GroupRules::on_time(TimePoint now) {
  if (!deadline_ || now < *deadline_) return {};
  deadline_.reset();
  return kill_all();
}

std::optional<TimePoint> GroupRules::deadline() const {
  return finished() ? std::nullopt : deadline_;
}

void GroupRules::add() { processes_.emplace_back(); }

bool GroupRules::finished() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.ended; });
}

std::vector<GroupAction> GroupRules::ask_all() const {
  std::vector<GroupAction> actions;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (!processes_[i].ended && !processes_[i].killed) actions.push_back({i, SIGTERM});
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
  if (head_end_->signal == 0) {
    const bool answers = passed_on_ != 0 && head_end_->exit_code == kBySignal + SIGTERM;
    return {answers ? kBySignal + passed_on_ : head_end_->exit_code, {}};
  }
  if (ending_signal_ != 0) return {kBySignal + ending_signal_, {}};
  // It came before the head could take it.
  if (passed_on_ != 0 && head_end_->signal == SIGTERM) return {kBySignal + passed_on_, {}};
  return {kBySignal + head_end_->signal,
          runtime::Error{runtime::ErrorKind::kInternal,
                         fmt::format("the head {}; the run can be gone on with by --resume",
                                     head_end_->text())}};
}

}  // namespace troupe::launch

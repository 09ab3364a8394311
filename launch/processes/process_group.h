#pragma once

// The processes of a run on this machine, and the one above them: `troupe run --workers N`.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launch/processes/child_process.h"
#include "launch/processes/group_rules.h"
#include "launch/processes/signal_watch.h"
#include "runtime/base/clock.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

struct GroupProcess {
  // "head", "member.0": names it in log lines and changes.
  std::string name;
  // Its program, arguments, and where its lines go.
  ChildOptions program;
};

// A start or an end of a process of the group.
struct ProcessChange {
  const std::string& name;
  pid_t pid;
  // None: it was started.
  std::optional<ChildEnd> end;
  // A member that ended before the head, and not with exit code 0.
  bool lost = false;
  // The group itself killed it.
  bool killed = false;
};

struct ProcessGroupOptions {
  // Started first; it decides how the run ends (group_rules.h).
  GroupProcess head;
  // Started in its place when a signal has killed it while the run goes on, so often. Default
  // never.
  GroupProcess next_head{};
  std::uint32_t head_restarts = 0;
  // Whether there is a run by then whose head another process can be; null: there is.
  std::function<bool()> can_return{};
  // Started in this order after the head.
  std::vector<GroupProcess> members;
  // Started one by one, a moment after a member was lost while the run goes on. Default none.
  std::vector<GroupProcess> replacements;
  // How long that moment is: what killed the member may kill the next. Default 1 s.
  runtime::Duration replace_after = std::chrono::seconds(1);
  // When the members that have not ended are asked to, once the head has. Default 1 s: those that
  // it has released need no more.
  runtime::Duration ask_after = std::chrono::seconds(1);
  // Time the members have to end once the head has; then they are killed. Default 10 s.
  runtime::Duration member_grace = std::chrono::seconds(10);
  // How far signals of one request to end may lie apart.
  runtime::Duration moment = EndRequests::kMoment;
  // Called on the thread of run() at every start and end; may be null, the default.
  std::function<void(const ProcessChange&)> changed;
};

// Make it before any other thread of the process: it takes over SIGINT, SIGTERM, SIGHUP and SIGUSR1
// from there on (SignalWatch). A third request to end ends this process at once, and with it the
// children, in case it hangs while it writes their lines.
class ProcessGroup {
 public:
  ProcessGroup(ProcessGroupOptions options, const runtime::Clock& clock, runtime::Log& log);

  // Starts all, waits until all have ended, and says how. None is left behind, whatever happens: if
  // this process is killed, they are too. A member that is lost is told in a log line, and to the
  // head (LostMember). Once, on a thread that lives as long as the process (ChildProcess).
  //
  // kInternal: one could not be started; those that were are killed.
  runtime::Result<GroupEnd> run();

 private:
  runtime::Result<void> start_all();
  runtime::Result<void> start(std::size_t index);
  void replace_lost();
  bool restart_head(const ChildEnd& end);
  void tell_head(const std::string& line);
  // On the watch's thread.
  void take(int number, int request);
  std::vector<int> new_signals();
  void take_ends();
  void carry_out(const std::vector<GroupAction>& actions);
  void tell(const ProcessChange& change) const;
  std::optional<runtime::Duration> time_left() const;
  const GroupProcess& process(std::size_t index) const { return *processes_[index]; }

  const ProcessGroupOptions options_;
  std::vector<const GroupProcess*> processes_;  // the head, members, and replacements so far
  std::vector<runtime::TimePoint> due_;         // of further replacements, ascending
  const runtime::Clock& clock_;
  const runtime::Log log_;
  GroupRules rules_;
  std::vector<std::unique_ptr<ChildProcess>> children_;
  std::vector<bool> reported_;
  std::uint32_t heads_lost_ = 0;
  std::vector<std::string> told_;  // to heads so far, the next one too
  runtime::Descriptor wake_;       // an eventfd: a signal has come
  std::mutex mutex_;
  std::vector<int> signals_;  // not yet looked at
  SignalWatch watch_;         // the last to begin and the first to end
};

}  // namespace troupe::launch

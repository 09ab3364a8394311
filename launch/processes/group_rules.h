#pragma once

// A supervisor's decisions when something happens to the processes of a run. Nothing here starts,
// kills or waits.

#include <cstddef>
#include <optional>
#include <vector>

#include "launch/processes/child_process.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// Process 0 is the head, the others are members.
inline constexpr std::size_t kHeadProcess = 0;

// A signal to send to one process.
struct GroupAction {
  std::size_t process = 0;
  int signal = 0;
  bool operator==(const GroupAction&) const = default;
};

// How a group of processes ended.
struct GroupEnd {
  // The supervisor's own.
  int exit_code = 0;
  // Set when that is not the head's own decision, and nobody has told of it.
  std::optional<runtime::Error> error;
};

// The rules: the head decides how a run ends. The first request to end asks it to, the second
// kills everything; a SIGUSR1 is passed on to it. A member that ends before the head changes
// nothing here: the head is told of it, and another may take its place. Once the head has ended for
// good, members have `member_grace` to do so too and are then killed, as they are by a signal in
// that time. After `ask_after` they are asked to, for a head that has failed has released nobody,
// and some may still be dialing it; if a signal killed it, at once.
//
// One thread. Each call returns what has to be done now.
class GroupRules {
 public:
  // `processes` run, the head among them.
  GroupRules(std::size_t processes, runtime::Duration ask_after, runtime::Duration member_grace);

  // SIGUSR1, or a signal that begins a request to end (EndRequests).
  std::vector<GroupAction> on_signal(int number);
  // A process has ended, for the first time.
  std::vector<GroupAction> on_end(std::size_t process, const ChildEnd& end, runtime::TimePoint now);
  std::vector<GroupAction> on_time(runtime::TimePoint now);

  // Asks those that run to end, each once: a second request ends a process at once.
  std::vector<GroupAction> ask_all();

  // When on_time() has something to do at the latest; none: never.
  std::optional<runtime::TimePoint> deadline() const;
  // One more process runs.
  void add();
  // Whether all have ended.
  bool finished() const;
  // Whether the run goes on: the head runs, and was not asked to end.
  bool goes_on() const { return !head_end_ && passed_on_ == 0; }
  // Whether a process still ran when it was decided to kill it.
  bool was_killed(std::size_t process) const { return processes_[process].killed; }
  bool head_has_ended() const { return head_end_.has_value(); }

  // Once finished. The head's exit code; 128 + N where it died of the signal N that was passed on
  // to it, after the second signal N, and when signal N of others has killed the head.
  GroupEnd end() const;

 private:
  struct Process {
    bool ended = false;
    bool asked = false;  // by ask_all()
    bool killed = false;
  };
  // Kills those that run and were not killed yet.
  std::vector<GroupAction> kill_all();

  const runtime::Duration ask_after_;
  const runtime::Duration member_grace_;
  std::vector<Process> processes_;
  std::optional<ChildEnd> head_end_;
  std::optional<runtime::TimePoint> ask_at_;
  std::optional<runtime::TimePoint> kill_at_;
  int passed_on_ = 0;      // the signal that asked the head to end
  int ending_signal_ = 0;  // the signal by which everything was killed while the head ran
};

}  // namespace troupe::launch

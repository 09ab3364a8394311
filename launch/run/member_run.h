#pragma once

// A member of a run in this process: asks the head which one it is to be and of what run, prepares
// that, and computes until the head releases it.

#include <optional>
#include <string>

#include "launch/machine/preemption.h"
#include "launch/meeting/node_uplink.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

struct MemberRequest {
  std::string address;  // of the head
  std::string node;     // the member it wants to be; "" for any
  NodeCredentials credentials;
  // Where other members find it, as listen_address() takes it.
  std::string listen;
  // Synthetic showers and indices; "": the head's own folder on the head's host, else runs/data.
  std::string data_folder;
  // It neither looks for data nor makes any: the head feeds it.
  bool remote_data = false;
  std::string trace;  // file for what its actors did lately, written at its end; "": none
  // Where it is told that this machine is about to be taken away; then the member leaves the run,
  // as when it is told to by a signal.
  PreemptionOptions preemption;
  // `troupe run` started this process on this machine, and ends it when it has to.
  bool supervised = false;
  // How long there may be no way to the address, and then nobody answer at it.
  runtime::Duration within = std::chrono::seconds(60);
  // How long it asks again while every member slot is promised to other processes.
  runtime::Duration for_a_slot = std::chrono::minutes(10);
  runtime::Duration shutdown_deadline = std::chrono::minutes(5);
};

struct MemberResult {
  std::string node;                     // which one it was
  std::optional<runtime::Error> error;  // it failed, or the run did
  int signal = 0;                       // it was stopped by this signal
  // Why it left, or did not join; "": not because its machine is about to be taken away. It has
  // been logged.
  std::string preempted;
};

// Must be called before other threads are started. An Error comes back when it never became a
// member. A handler that has not returned by the deadline of a stop ends the process.
runtime::Result<MemberResult> run_member(const MemberRequest& request, runtime::Log& log);

}  // namespace troupe::launch

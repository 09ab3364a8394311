#pragma once

// A member of a run in this process: asks the head which one it is to be and of what run, prepares
// that, and computes until the head releases it.

#include <string>

#include "launch/machine/preemption.h"
#include "launch/meeting/node_uplink.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/transport/ask.h"

namespace troupe::launch {

struct MemberRequest {
  // How it asks the head. run_member() fills in the fields that follow from this process.
  runtime::EnrolOptions enrol;
  NodeCredentials credentials;
  // Where other members find it, as listen_address() takes it.
  std::string listen;
  // Synthetic showers and indices; "": the head's own folder on the head's host, else runs/data.
  std::string data_folder;
  // It neither looks for data nor makes any: the head feeds it.
  bool remote_data = false;
  std::string device;  // that computes here, as topologies name it; "": the topology's
  std::string trace;   // file for what its actors did lately, written at its end; "": none
  // Where it is told that this machine is about to be taken away; then the member leaves the run,
  // as when it is told to by a signal.
  PreemptionOptions preemption;
  // `troupe run` started this process on this machine, and ends it when it has to.
  bool supervised = false;
  runtime::Duration shutdown_deadline = std::chrono::minutes(5);
};

// Returns when the run has ended or has let this member go, also because this machine is about to
// be taken away, which is logged. Must be called before other threads are started. Errors: it never
// became a member; it failed, or the run did, and then its name stands in front. A handler that has
// not returned by the deadline of a stop ends the process.
runtime::Result<void> run_member(const MemberRequest& request, runtime::Log& log);

}  // namespace troupe::launch

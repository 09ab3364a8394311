#pragma once

// What makes a process the head of a run: where members find it, and whom it takes in.

#include <functional>
#include <memory>
#include <string>

#include "launch/folder/membership_file.h"
#include "launch/meeting/head_relay.h"
#include "launch/run/local_run.h"
#include "launch/run/run_signals.h"
#include "launch/run/training_setup.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/node/gate.h"
#include "runtime/transport/wire.h"

namespace troupe::launch {

// Null for a run without members. Errors: kUsage for an address that cannot be listened on, or keys
// that cannot be read; kTopology for a topology too long to tell members.
runtime::Result<std::unique_ptr<runtime::Wire>> open_head_wire(const LocalRunRequest& request,
                                                               const runtime::Clock& clock,
                                                               const runtime::Log& log);

// Whom the heads before it knew it knows too, and whom it gets to know it writes down. All but the
// setup outlive the gate.
runtime::GateOptions head_gate(const LocalRunRequest& request, const TrainingSetup& setup,
                               const runtime::Clock& clock, MembershipFile& membership,
                               HeadRelay& relay, const runtime::Log& log);

// For GateOptions::given_up_by of a head that `troupe run` restarts when it dies: says so, and
// dies, unless the run is being ended, which no other head would go on with.
std::function<void(const std::string& node)> make_room_for_next(RunSignals& signals,
                                                                const runtime::Log& log);

// Says in the log in which order members of several hosts stand in the ring, and which of them
// other hosts are to start, with the line to type there; or, of a run with keys that awaits nobody,
// the line with which others join. May ask the system's resolver.
void tell_members(const LocalRunRequest& request, const runtime::Wire& wire,
                  const runtime::Log& log);

}  // namespace troupe::launch

#pragma once

// How a process that is no node yet becomes one: it dials a node of the run, says who it is, and is
// told which node it shall be and of what.

#include <functional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

struct EnrolOptions {
  std::string address;  // of a node that takes in others
  Enrolment request;
  // How long nobody may answer at the address.
  Duration within = std::chrono::seconds(60);
  // How long a connected node may take to answer.
  Duration answer_within = std::chrono::seconds(10);
  // Asked now and then while waiting; true gives up. May be null.
  std::function<bool()> cancelled;
};

// Errors: as the other end says when it refuses; kLostPeers when nobody answers; kUsage for an
// address that cannot be dialed, and for another release of Troupe at the other end.
Result<Invitation> enrol(Wire& wire, const EnrolOptions& options, const Clock& clock);

}  // namespace troupe::runtime

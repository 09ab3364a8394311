#pragma once

// How a process that is no node yet becomes one: it dials a node of the run, says who it is, and is
// told which node it shall be and of what. While it is told to come later, as every member slot is
// promised to other processes or the other end is not ready, it asks again and again.

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
  // How long it asks again, and after which pause.
  Duration for_a_slot = std::chrono::minutes(10);
  Duration pause = std::chrono::seconds(1);
  // Told once why it waits. May be null.
  std::function<void(const std::string& why)> waits;
  // Asked now and then while waiting; true gives up. May be null.
  std::function<bool()> cancelled;
};

// Errors: as the other end says when it refuses; kLostPeers when nobody answers, or there was no
// place for too long; kUsage for an address that cannot be dialed, and for another release of
// Troupe at the other end.
Result<Invitation> enrol(Wire& wire, const EnrolOptions& options, const Clock& clock);

}  // namespace troupe::runtime

#pragma once

// How a process that is no node of a run asks one of its nodes something: it dials, says one
// packet, and waits for the answer.

#include <functional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

struct AskOptions {
  std::string address;
  Packet question;
  // Begins the errors, before the address: "cannot join".
  std::string failure;
  // How long to wait before it dials.
  Duration after{0};
  // How long nobody may answer at the address.
  Duration within = std::chrono::seconds(60);
  // How long a connected node may take to answer, and what to say when it has not.
  Duration answer_within = std::chrono::seconds(60);
  std::string no_answer = "it did not answer";
  // Asked now and then while waiting; true gives up. May be null.
  std::function<bool()> cancelled;
  // How long enrol() and request() wait when they are told to come later.
  Duration pause = std::chrono::seconds(1);
};

// Returns the packet that is the answer, and an Error for a Refusal. Errors: as the other end says
// when it refuses; kLostPeers when nobody answers; kUsage for an address that cannot be dialed, and
// for another release of Troupe at the other end. A process that dials the wire meanwhile is cut
// off.
Result<AnyPacket> ask(Wire& wire, const AskOptions& options, const Clock& clock);

struct EnrolOptions : AskOptions {
  Enrolment request;                               // is the question
  Duration for_a_slot = std::chrono::minutes(10);  // how long it asks again
  // Told once why it waits. May be null.
  std::function<void(const std::string& why)> waits;
};

// How a process that is no node yet becomes one: it says who it is to a node that takes in others,
// and is told which node it shall be and of what. While it is told to come later, as every member
// slot is promised to other processes or the other end is not ready, it asks again and again.
// Errors: as of ask(); kLostPeers when there was no place for too long.
Result<Invitation> enrol(Wire& wire, const EnrolOptions& options, const Clock& clock);

// Asks the head for something, and waits until it is done; returns what was, for people.
// `options.failure` and `no_answer` are the caller's. `answer_within` is the head's time for it.
// While the head is not ready yet, it asks again, for `within`. Errors: as of ask(); kLostPeers
// when it was not done in time, which it may still be.
Result<std::string> request(Wire& wire, AskOptions options, const HeadRequest& asked,
                            const Clock& clock);

}  // namespace troupe::runtime

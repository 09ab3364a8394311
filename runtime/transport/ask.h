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
  Duration answer_within = std::chrono::seconds(10);
  std::string no_answer = "it did not answer";
  // Asked now and then while waiting; true gives up. May be null.
  std::function<bool()> cancelled;
};

// Whatever packet is the answer, but a Refusal, which is an Error. Errors: as the other end says
// when it refuses; kLostPeers when nobody answers; kUsage for an address that cannot be dialed, and
// for another release of Troupe at the other end. Whoever dials the wire meanwhile is cut off.
Result<AnyPacket> ask(Wire& wire, const AskOptions& options, const Clock& clock);
// What it ends with when the answer is none to that question.
Error strange_answer(const AskOptions& options);

}  // namespace troupe::runtime

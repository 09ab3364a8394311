#include "runtime/transport/enrol.h"

#include <utility>
#include <variant>

#include "runtime/transport/ask.h"

namespace troupe::runtime {

Result<Invitation> enrol(Wire& wire, const EnrolOptions& options, const Clock& clock) {
  AskOptions ask_options;
  ask_options.address = options.address;
  ask_options.question = pack(options.request);
  ask_options.failure = "cannot join";
  ask_options.within = options.within;
  ask_options.answer_within = options.answer_within;
  ask_options.cancelled = options.cancelled;
  ASSIGN_OR_RETURN(AnyPacket answer, ask(wire, ask_options, clock));
  auto* invitation = std::get_if<Invitation>(&answer);
  if (invitation == nullptr) return strange_answer(ask_options);
  return std::move(*invitation);
}

}  // namespace troupe::runtime

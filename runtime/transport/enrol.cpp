#include "runtime/transport/enrol.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/transport/ask.h"
#include "runtime/transport/resolve.h"

namespace troupe::runtime {

Result<Invitation> enrol(Wire& wire, const EnrolOptions& options, const Clock& clock) {
  AskOptions ask_options;
  ask_options.address = options.address;
  ask_options.question = pack(options.request);
  ask_options.failure = "cannot join";
  ask_options.within = options.within;
  ask_options.answer_within = options.answer_within;
  ask_options.cancelled = options.cancelled;
  const TimePoint until = clock.now() + options.for_a_slot;
  for (bool told = false;; told = true) {
    ASSIGN_OR_RETURN(AnyPacket answer, ask(wire, ask_options, clock));
    if (auto* invitation = std::get_if<Invitation>(&answer)) return std::move(*invitation);
    const auto* not_now = std::get_if<NotNow>(&answer);
    if (not_now == nullptr) return strange_answer(ask_options);
    if (clock.now() >= until) {
      const std::chrono::duration<double> waited = options.for_a_slot;
      return Error{ErrorKind::kLostPeers,
                   fmt::format("cannot join {}: {}, still after {:.0f} s",
                               without_key(options.address), not_now->why, waited.count())};
    }
    if (!told && options.waits) options.waits(not_now->why);
    ask_options.after = options.pause;
  }
}

}  // namespace troupe::runtime

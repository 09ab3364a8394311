// The part of the Gate that hears from processes that are no nodes which node shall leave. The root
// actor decides; until it has, the connection stays.

#include <utility>

#include <fmt/format.h>

#include "runtime/transport/gate.h"

namespace troupe::runtime {
namespace {

// People ask for one at a time, and scripts for all of a machine.
constexpr std::size_t kMostDrains = 256;

}  // namespace

std::optional<Error> Gate::objection_to_drain(const Stranger& stranger,
                                              const DrainRequest& request) const {
  Introduction as_introduction;
  as_introduction.version = request.version;
  as_introduction.terms = options_.terms;
  if (auto error = objection(as_introduction)) return error;
  if (!is_first()) {
    return Error{ErrorKind::kUsage, fmt::format("{} is not the head of the run; ask {} for that",
                                                options_.node, fellowship_.first())};
  }
  if (stranger.info.key_expired) {
    return Error{ErrorKind::kLostPeers,
                 "the token has expired; make another one with 'troupe token'"};
  }
  if (closing_.load()) return Error{ErrorKind::kLostPeers, "the run has ended"};
  if (drains_.size() >= kMostDrains) {
    return Error{ErrorKind::kLostPeers,
                 fmt::format("{} others have asked for the same and wait; try again when members "
                             "have left",
                             drains_.size())};
  }
  return std::nullopt;
}

void Gate::answer_drain_request(ConnectionId connection, const Stranger& stranger,
                                const DrainRequest& request) {
  const std::string who =
      fmt::format("process {} of {} at {}", request.pid, request.host, stranger.info.address);
  if (auto error = objection_to_drain(stranger, request)) {
    refuse(connection, who, std::move(*error));
    return;
  }
  drains_[connection] = {who, request.node};
  tell_root(Message::of(
      DrainAsked{request.node, who, std::make_shared<DrainReply>(drain_answers_, connection)}));
}

void Gate::tell_drained() {
  for (auto& [connection, answer] : drain_answers_->take()) {
    const auto asked = drains_.find(connection);
    if (asked == drains_.end()) continue;  // it has hung up
    const Drain drain = asked->second;
    drains_.erase(asked);
    if (answer.ok()) {
      wire_.send(connection, Lane::kControl, pack(Drained{drain.node}));
      wire_.close(connection);
    } else {
      refuse(connection, drain.who, answer.error());
    }
  }
}

void Gate::refuse_drains() {
  tell_drained();
  for (const auto& [connection, drain] : std::exchange(drains_, {})) {
    refuse(connection, drain.who, {ErrorKind::kLostPeers, "the run has ended"});
  }
}

}  // namespace troupe::runtime

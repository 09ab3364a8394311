#include "runtime/node/visitors.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "runtime/node/node_core.h"

namespace troupe::runtime {
namespace {

// People ask for one node at a time, and scripts for all of a machine.
constexpr std::size_t kMostRequests = 256;

}  // namespace

Visitors::Visitors(const GateOptions& options, const GateParts& parts, const Introducer& introducer,
                   Peers& peers)
    : options_(options),
      parts_(parts),
      introducer_(introducer),
      peers_(peers),
      answers_(std::make_shared<RequestAnswers>([&wire = parts.wire] { wire.wake(); })) {}

void Visitors::came(ConnectionId connection, const ConnectionInfo& info) {
  waiting_[connection] = {info, parts_.clock.now()};
}

void Visitors::left(ConnectionId connection) {
  waiting_.erase(connection);
  requests_.erase(connection);
}

void Visitors::introduce(ConnectionId connection, const AnyPacket& packet, bool just_woken) {
  const ConnectionInfo info = waiting_.at(connection).info;
  if (const auto* hello = std::get_if<Hello>(&packet)) {
    waiting_.erase(connection);
    peers_.answer(connection, info, *hello, just_woken);
  } else if (const auto* enrolment = std::get_if<Enrolment>(&packet)) {
    waiting_.erase(connection);
    answer_enrolment(connection, info, *enrolment);
  } else if (const auto* request = std::get_if<HeadRequest>(&packet)) {
    waiting_.erase(connection);
    answer_request(connection, info, *request);
  } else {
    cut_off(connection, "did not introduce itself");
  }
}

void Visitors::cut_off(ConnectionId connection, const std::string& why) {
  parts_.log.warning(fmt::format("{} {}: cut off", waiting_.at(connection).info.address, why));
  waiting_.erase(connection);
  parts_.wire.close(connection);
}

void Visitors::cut_off_silent(TimePoint now, Duration patience) {
  std::vector<ConnectionId> silent;
  for (const auto& [connection, visitor] : waiting_) {
    if (now - visitor.since >= patience) silent.push_back(connection);
  }
  for (const ConnectionId connection : silent) {
    cut_off(connection, fmt::format("connected and said nothing for {:.1f} s", seconds(patience)));
  }
}

TimePoint Visitors::next_due(Duration patience) const {
  TimePoint due = TimePoint::max();
  for (const auto& [connection, visitor] : waiting_) {
    due = std::min(due, visitor.since + patience);
  }
  return due;
}

void Visitors::excuse(Duration pause, TimePoint now) {
  for (auto& [connection, visitor] : waiting_) {
    visitor.since = std::min(visitor.since + pause, now);
  }
}

void Visitors::answer_enrolment(ConnectionId connection, const ConnectionInfo& info,
                                const Enrolment& enrolment) {
  const std::string who =
      fmt::format("process {} of {} at {}", enrolment.pid, enrolment.host, info.address);
  if (info.key_expired) return refuse(parts_, connection, who, expired_token());
  std::vector<std::string> awaited;
  for (const auto& peer : peers_.all()) {
    if (peer->state() == Peer::State::kAwaited && !peer->dialed()) awaited.push_back(peer->node());
  }
  const Result<EnrolmentAnswer> answer = options_.keeper->invite(enrolment, awaited);
  if (!answer.ok()) return refuse(parts_, connection, who, answer.error());
  // The one that is invited may take its time, and its token may expire meanwhile: its Hello is
  // taken all the same.
  if (const auto* invitation = std::get_if<Invitation>(&*answer)) {
    if (const auto peer = peers_.find(invitation->node)) peers_.all()[*peer]->invited = true;
  }
  parts_.wire.send(connection, Lane::kControl,
                   std::visit([](const auto& packet) { return pack(packet); }, *answer));
  parts_.wire.close(connection);
}

std::optional<Error> Visitors::objection_to_request(const ConnectionInfo& info) const {
  if (!introducer_.is_head()) {
    return Error{ErrorKind::kUsage, fmt::format("{} is not the head of the run; ask {} for that",
                                                options_.node, introducer_.head())};
  }
  if (info.key_expired) {
    return Error{ErrorKind::kLostPeers,
                 "the token has expired; make another one with 'troupe token'"};
  }
  if (ended_) return Error{ErrorKind::kLostPeers, "the run has ended"};
  if (requests_.size() >= kMostRequests) {
    return Error{ErrorKind::kLostPeers,
                 fmt::format("{} others have asked for something and wait; try again later",
                             requests_.size())};
  }
  return std::nullopt;
}

void Visitors::answer_request(ConnectionId connection, const ConnectionInfo& info,
                              const HeadRequest& request) {
  const std::string who =
      fmt::format("process {} of {} at {}", request.pid, request.host, info.address);
  if (auto error = objection_to_request(info)) {
    return refuse(parts_, connection, who, std::move(*error));
  }
  // The connection stays open until the root actor has answered, or the other end hangs up.
  requests_[connection] = who;
  const auto reply =
      std::make_shared<RequestReply>([answers = answers_, connection](Result<std::string> answer) {
        answers->add(connection, std::move(answer));
      });
  parts_.core.tell_root(Message::of(RequestAsked{request, who, reply}));
}

void Visitors::tell_answers() {
  for (auto& [connection, answer] : answers_->take()) {
    const auto asked = requests_.find(connection);
    if (asked == requests_.end()) continue;  // it has hung up
    const std::string who = asked->second;
    requests_.erase(asked);
    if (answer.ok()) {
      parts_.wire.send(connection, Lane::kControl, pack(Granted{*answer}));
      parts_.wire.close(connection);
    } else {
      refuse(parts_, connection, who, answer.error());
    }
  }
}

// Answers that have come go out first. All who still wait for one hear that the run has ended, and
// a connection that has said nothing is closed without a word.
void Visitors::send_away() {
  ended_ = true;
  for (const auto& [connection, visitor] : std::exchange(waiting_, {})) {
    parts_.wire.close(connection);
  }
  tell_answers();
  for (const auto& [connection, who] : std::exchange(requests_, {})) {
    refuse(parts_, connection, who, {ErrorKind::kLostPeers, "the run has ended"});
  }
}

}  // namespace troupe::runtime

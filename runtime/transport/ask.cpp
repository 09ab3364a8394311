#include "runtime/transport/ask.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(200);

Error failed(const AskOptions& options, const std::string& why,
             ErrorKind kind = ErrorKind::kLostPeers) {
  return {kind, fmt::format("{} {}: {}", options.failure, without_key(options.address), why)};
}

// Says its packet as soon as it is connected, and takes the answer.
class Asker final : public WireEvents {
 public:
  Asker(Wire& wire, const AskOptions& options, const Clock& clock)
      : wire_(wire), options_(options), clock_(clock), since_(clock.now() + options.after) {}

  // The wire may listen for later, and nobody is expected yet.
  void connected(ConnectionId connection, const ConnectionInfo& info) override {
    if (!info.dialed) return wire_.close(connection);
    since_ = clock_.now();
    asked_ = true;
    wire_.send(connection, Lane::kControl, options_.question);
  }

  void arrived(ConnectionId connection, Lane, Packet packet) override {
    if (answer_ || connection != own_) return;
    Result<AnyPacket> read = unpack(packet, types_);
    if (!read.ok()) {
      fail(fmt::format("it answered what cannot be read ({})", read.error().message));
    } else if (const auto* refusal = std::get_if<Refusal>(&*read)) {
      answer_.emplace(Error{
          refusal->error.kind,
          fmt::format("{} refused: {}", without_key(options_.address), refusal->error.message)});
    } else {
      answer_.emplace(std::move(read));
    }
  }

  void disconnected(ConnectionId connection, const Error& why) override {
    if (!answer_ && connection == own_) fail(why.message, why.kind);
  }

  void has_dialed(ConnectionId connection) { own_ = connection; }
  // The moment after which nothing more is to be hoped for.
  TimePoint deadline() const {
    return since_ + (asked_ ? options_.answer_within : options_.within);
  }
  void give_up() {
    if (asked_) {
      fail(fmt::format("{} within {:.0f} s", options_.no_answer, seconds(options_.answer_within)));
    } else {
      fail(
          fmt::format("nobody answered for {:.0f} s; is the run going on, and can this host reach "
                      "it?",
                      seconds(options_.within)));
    }
  }
  void fail(const std::string& why, ErrorKind kind = ErrorKind::kLostPeers) {
    answer_.emplace(failed(options_, why, kind));
  }

  const std::optional<Result<AnyPacket>>& answer() const { return answer_; }
  Result<AnyPacket> take_answer() { return std::move(*answer_); }

 private:
  Wire& wire_;
  const AskOptions& options_;
  const Clock& clock_;
  const WireTypes types_;  // no actor's messages are expected
  TimePoint since_;
  ConnectionId own_;
  bool asked_ = false;
  std::optional<Result<AnyPacket>> answer_;
};

// For a packet that does not answer the question.
Error strange_answer(const AskOptions& options) {
  return failed(options, "it answered something else");
}

// Asks again after a pause, for so long, while it is told to come later. `waits` is told why, once.
Result<AnyPacket> ask_in_turn(Wire& wire, AskOptions asking, Duration patience,
                              const std::function<void(const std::string& why)>& waits,
                              const Clock& clock) {
  const TimePoint until = clock.now() + patience;
  for (bool told = false;; told = true) {
    ASSIGN_OR_RETURN(AnyPacket answer, ask(wire, asking, clock));
    const auto* not_now = std::get_if<NotNow>(&answer);
    if (not_now == nullptr) return answer;
    if (clock.now() >= until) {
      return failed(asking,
                    fmt::format("{}, still after {:.0f} s", not_now->why, seconds(patience)));
    }
    if (!told && waits) waits(not_now->why);
    asking.after = asking.pause;
  }
}

}  // namespace

// The wire is polled before it dials, too: whoever dials it is cut off, and the caller may cancel
// the wait.
Result<AnyPacket> ask(Wire& wire, const AskOptions& options, const Clock& clock) {
  Asker asker(wire, options, clock);
  const auto poll = [&](TimePoint until) {
    wire.poll(asker, std::min(until, clock.now() + kLook));
    if (!asker.answer() && options.cancelled && options.cancelled()) {
      asker.fail("it was cancelled");
    }
  };
  const TimePoint dials_at = clock.now() + options.after;
  while (!asker.answer() && clock.now() < dials_at) poll(dials_at);
  if (asker.answer()) return asker.take_answer();
  ASSIGN_OR_RETURN(const ConnectionId connection, wire.dial(options.address));
  asker.has_dialed(connection);
  while (!asker.answer()) {
    poll(asker.deadline());
    if (!asker.answer() && clock.now() >= asker.deadline()) asker.give_up();
  }
  wire.close(connection);
  return asker.take_answer();
}

Result<Invitation> enrol(Wire& wire, const EnrolOptions& options, const Clock& clock) {
  AskOptions asking = options;
  asking.question = pack(options.request);
  asking.failure = "cannot join";
  ASSIGN_OR_RETURN(AnyPacket answer,
                   ask_in_turn(wire, asking, options.for_a_slot, options.waits, clock));
  if (auto* invitation = std::get_if<Invitation>(&answer)) return std::move(*invitation);
  return strange_answer(asking);
}

Result<std::string> request(Wire& wire, AskOptions options, const HeadRequest& asked,
                            const Clock& clock) {
  options.question = pack(asked);
  ASSIGN_OR_RETURN(AnyPacket answer, ask_in_turn(wire, options, options.within, nullptr, clock));
  if (auto* granted = std::get_if<Granted>(&answer)) return std::move(granted->text);
  return strange_answer(options);
}

}  // namespace troupe::runtime

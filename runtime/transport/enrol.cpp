#include "runtime/transport/enrol.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(200);

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Says who it is as soon as it is connected, and takes the answer.
class Applicant final : public WireEvents {
 public:
  Applicant(Wire& wire, const EnrolOptions& options, const Clock& clock)
      : wire_(wire),
        options_(options),
        place_(without_key(options.address)),
        clock_(clock),
        since_(clock.now()) {}

  // The wire may listen for later, and nobody is expected yet.
  void connected(ConnectionId connection, const ConnectionInfo& info) override {
    if (!info.dialed) return wire_.close(connection);
    since_ = clock_.now();
    asked_ = true;
    wire_.send(connection, Lane::kControl, pack(options_.request));
  }

  void arrived(ConnectionId connection, Lane, Packet packet) override {
    if (answer_ || connection != own_) return;
    Result<AnyPacket> read = unpack(packet, types_);
    if (!read.ok()) {
      fail(fmt::format("it answered what cannot be read ({})", read.error().message));
    } else if (auto* invitation = std::get_if<Invitation>(&*read)) {
      answer_.emplace(std::move(*invitation));
    } else if (const auto* refusal = std::get_if<Refusal>(&*read)) {
      answer_.emplace(Error{refusal->error.kind,
                            fmt::format("{} refused: {}", place_, refusal->error.message)});
    } else {
      fail("it answered something else");
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
      fail(fmt::format("it did not answer within {:.0f} s", seconds(options_.answer_within)));
    } else {
      fail(
          fmt::format("nobody answered for {:.0f} s; is the run going on, and can this host reach "
                      "it?",
                      seconds(options_.within)));
    }
  }
  void fail(const std::string& why, ErrorKind kind = ErrorKind::kLostPeers) {
    answer_.emplace(Error{kind, fmt::format("cannot join {}: {}", place_, why)});
  }

  const std::optional<Result<Invitation>>& answer() const { return answer_; }

 private:
  Wire& wire_;
  const EnrolOptions& options_;
  const std::string place_;
  const Clock& clock_;
  const WireTypes types_;  // no actor's messages are expected
  TimePoint since_;
  ConnectionId own_;
  bool asked_ = false;
  std::optional<Result<Invitation>> answer_;
};

}  // namespace

Result<Invitation> enrol(Wire& wire, const EnrolOptions& options, const Clock& clock) {
  Applicant applicant(wire, options, clock);
  ASSIGN_OR_RETURN(const ConnectionId connection, wire.dial(options.address));
  applicant.has_dialed(connection);
  while (!applicant.answer()) {
    wire.poll(applicant, std::min(applicant.deadline(), clock.now() + kLook));
    if (applicant.answer()) break;
    if (clock.now() >= applicant.deadline()) applicant.give_up();
    if (options.cancelled && options.cancelled()) applicant.fail("it was cancelled");
  }
  wire.close(connection);
  return *applicant.answer();
}

}  // namespace troupe::runtime

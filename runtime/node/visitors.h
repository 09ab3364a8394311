#pragma once

// Connections that are not those of a peer: from the moment they are made until they introduce
// themselves. A process that is no node may ask to become one, and is answered at once; or it asks
// something of the head, and waits until the root actor answers.

#include <map>
#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/node/peers.h"
#include "runtime/transport/head_request.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

// The gate's thread.
class Visitors {
 public:
  // All outlive it.
  Visitors(const GateOptions& options, const GateParts& parts, const Introducer& introducer,
           Peers& peers);
  ~Visitors() { answers_->close(); }
  Visitors(const Visitors&) = delete;
  Visitors& operator=(const Visitors&) = delete;

  void came(ConnectionId connection, const ConnectionInfo& info);
  bool has(ConnectionId connection) const { return waiting_.contains(connection); }
  void left(ConnectionId connection);
  // The connection's first packet. `just_woken`: see Peers::answer().
  void introduce(ConnectionId connection, const AnyPacket& packet, bool just_woken);
  // It has done something else: its connection is closed.
  void cut_off(ConnectionId connection, const std::string& why);

  // Cuts off those that have said nothing for so long.
  void cut_off_silent(TimePoint now, Duration patience);
  // When the next one is cut off; max(): never.
  TimePoint next_due(Duration patience) const;
  // This process was asleep for so long.
  void excuse(Duration pause, TimePoint now);
  // Tells those that have asked something of the head what was answered.
  void tell_answers();
  // The node ends: everybody is sent away.
  void send_away();

 private:
  struct Visitor {
    ConnectionInfo info;
    TimePoint since;
  };
  void answer_enrolment(ConnectionId connection, const ConnectionInfo& info,
                        const Enrolment& enrolment);
  void answer_request(ConnectionId connection, const ConnectionInfo& info,
                      const HeadRequest& request);
  std::optional<Error> objection_to_request(const ConnectionInfo& info) const;

  const GateOptions& options_;
  const GateParts& parts_;
  const Introducer& introducer_;
  Peers& peers_;
  std::map<ConnectionId, Visitor> waiting_;
  std::map<ConnectionId, std::string> requests_;  // who has asked
  const std::shared_ptr<RequestAnswers> answers_;
  bool ended_ = false;
};

}  // namespace troupe::runtime

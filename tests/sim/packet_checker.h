#pragma once

// Watches what passes over the simulated wires and knows what nodes owe each other: it reads the
// packets themselves and keeps books of its own.
//
//   - A packet arrives after all before it of its lane, and none is missing.
//   - Nobody says that something has arrived which has not, or gives back what was never sent.
//   - Along each link, no more is under way than its credits allow.
//   - After a node has welcomed another one over a new connection, it lets go of the old one.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "runtime/plan.h"
#include "runtime/transport/packets.h"
#include "tests/sim/sim_network.h"

namespace troupe::sim {

class PacketChecker final : public NetworkWatcher {
 public:
  // Told of each packet, in words, when there is somebody to tell.
  using Trace = std::function<void(ProcessId, std::string_view)>;
  // All outlive the checker. `fail` is told what should not have happened.
  PacketChecker(const runtime::Plan& plan, const runtime::WireTypes& types,
                std::function<void(std::string)> fail, Trace trace = {})
      : links_of_plan_(runtime::links_of(plan)),
        types_(types),
        fail_(std::move(fail)),
        trace_(std::move(trace)) {}

  void sent(const Passage& passage) override;
  void delivered(const Passage& passage) override;
  void connected(ConnectionId connection, ProcessId at, ProcessId other) override;
  void ended(ConnectionId connection, ProcessId at, ProcessId other,
             const std::string& why) override;

 private:
  using Direction = std::pair<ProcessId, ProcessId>;
  struct LinkBook {
    std::uint64_t messages = 0, bytes = 0;  // sent for the first time, less what came back
    std::uint64_t back_messages = 0, back_bytes = 0;  // given back, as the sender has heard
    std::uint64_t arrived = 0;
  };

  void sent_envelope(const Passage& passage, const runtime::Envelope& envelope);
  void delivered_envelope(const Passage& passage, const runtime::Envelope& envelope);
  void check_received(const Passage& passage, const runtime::LaneCounts& received);
  void tell(ProcessId at, const Passage& passage, const char* what, const runtime::AnyPacket& read);
  void fail(const Passage& passage, const std::string& what);

  const std::vector<runtime::LinkPlan> links_of_plan_;
  const runtime::WireTypes& types_;
  std::function<void(std::string)> fail_;
  Trace trace_;
  std::map<Direction, runtime::LaneCounts> sent_, delivered_;  // highest sequence number
  std::map<std::uint32_t, LinkBook> links_;
  // For each node that welcomed another one, the connection over which it last did.
  std::map<Direction, ConnectionId> welcomed_;
};

}  // namespace troupe::sim

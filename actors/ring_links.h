#pragma once

// The links of a Reducer to the other members, each from the time when something is sent there.
// Ports: out "ring.M" per other member M.

#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "actors/outbox.h"
#include "runtime/actor.h"

namespace troupe::actors {

class RingLinks {
 public:
  // Sends it as soon as there is credit, behind what was posted before.
  void post(runtime::Context& context, std::uint32_t member, runtime::Message message) {
    const auto [found, added] = outboxes_.try_emplace(member);
    if (added) found->second = Outbox(port_to(context, member));
    found->second.post(std::move(message));
    found->second.flush(context);
  }
  // The member's node gets a connection before there is something to send.
  void meet(runtime::Context& context, std::uint32_t member) {
    const runtime::PortId port = port_to(context, member);
    if (port.valid()) context.meet(port);
  }
  void flush(runtime::Context& context) {
    for (auto& [member, outbox] : outboxes_) outbox.flush(context);
  }
  // What waits for the member goes to nobody.
  void forget(std::uint32_t member) { outboxes_.erase(member); }
  void forget_if(auto lost) {
    std::erase_if(outboxes_, [&](const auto& each) { return lost(each.first); });
  }
  std::int64_t waiting_bytes(std::uint32_t member) const {
    const auto found = outboxes_.find(member);
    return found == outboxes_.end() ? 0 : found->second.bytes();
  }

 private:
  static runtime::PortId port_to(runtime::Context& context, std::uint32_t member) {
    return context.out(fmt::format("ring.{}", member));
  }

  std::map<std::uint32_t, Outbox> outboxes_;  // by member
};

}  // namespace troupe::actors

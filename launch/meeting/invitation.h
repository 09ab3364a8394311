#pragma once

// The head's answer to a process that asks to be a member: all it needs to make the same run of.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/relay/relay_frames.h"
#include "runtime/transport/packets.h"

namespace troupe::launch {

// Every node of a run knows this about the data, even a node that does not have it.
struct DataIdentity {
  runtime::Hash128 fingerprint;
  std::uint64_t iterations_per_epoch = 0;
  std::uint32_t last_micro_batches = 0;  // of an epoch's last iteration; 0: as many as of others
  bool operator==(const DataIdentity&) const = default;
};

struct MemberInvitation {
  // More does not fit into what is sent.
  static constexpr std::size_t kMostTopologyBytes =
      runtime::Packet::kMostHeaderBytes - (std::size_t{1} << 14);

  std::string topology;       // effective, as text
  std::uint32_t members = 1;  // that the run began with
  std::uint32_t slots = 1;    // for these and all that may join
  std::string data_folder;    // the head's; of use on its own host
  std::string host;           // of the head
  DataIdentity data{};        // what a process without data takes as given, and no other
  // Through which members that nobody can dial reach each other: a port of the machine at which the
  // head is dialed, 0 for none, and what the member says there to be known.
  std::uint16_t relay_port = 0;
  runtime::RelayToken relay_token{};
  // The worker of each turn, as far as the run has an order (launch/run/turn_order.h).
  std::vector<std::uint32_t> order{};
  bool operator==(const MemberInvitation&) const = default;
};

// kTopology, with what to do: the effective topology, as text, is longer than members can be told.
runtime::Result<void> check_topology_fits(const std::string& effective_topology);

// kUsage: the order of turns is longer than members can be told beside the topology.
runtime::Result<void> check_order_fits(const std::string& effective_topology,
                                       const std::vector<std::uint32_t>& order);

// CHECKs that the topology is no longer than it may be.
runtime::Buffer pack_invitation(const MemberInvitation& invitation);
// kLostPeers: not what a head of this version sends.
runtime::Result<MemberInvitation> unpack_invitation(const runtime::Buffer& contents);

}  // namespace troupe::launch

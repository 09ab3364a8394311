#pragma once

// The wire of a member that nobody can dial, where the head has a relay for it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "launch/meeting/invitation.h"
#include "launch/meeting/node_uplink.h"
#include "launch/meeting/socket_folder.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

// It listens in a folder of its own, which only this user can enter, and at no port.
struct RelayedMember {
  SocketFolder folder;
  std::unique_ptr<runtime::Wire> wire;
};

// `head`: where this process has dialed the head, which has invited it as that member. The clock
// outlives the wire. None: there is no relay, or none that answers within some seconds, as where
// its port is closed; the log says so. Errors are kUsage: a folder, sockets or descriptors that
// cannot be had.
runtime::Result<std::optional<RelayedMember>> open_relayed_member(
    const std::string& head, std::uint32_t member, const MemberInvitation& invitation,
    const NodeCredentials& credentials, const runtime::Clock& clock, const runtime::Log& log,
    LetIn let_in);

}  // namespace troupe::launch

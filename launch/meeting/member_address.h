#pragma once

// Where a member listens for those that it shares links with.

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// The word for a process that only dials others: it opens no listener.
inline constexpr std::string_view kNoListener = "none";

// As ZmqWireOptions::listen takes it, numeric where it has a host; "" for kNoListener. `head` is
// where this process dials the head, `wanted` what people want instead of the following, "" for
// nothing:
//   - a head in the file system: a socket of its own beside the head's;
//   - one on this machine's loopback: any ports of that;
//   - any other: any ports of the address from which this machine reaches it. Without keys nothing
//     may be listened on there: "", which is all that a process needs that will be refused anyway.
// An address of all interfaces is the one from which this machine reaches the head, too: others
// must be told one. Asks the system's resolver, which may take seconds. Errors: kUsage for
// addresses that cannot be understood, do not resolve, or have paths too long for a socket, and for
// all interfaces where the head is on this machine, which says nothing of the others; kLostPeers
// when there is no way to the head.
runtime::Result<std::string> listen_address(const std::string& head, const std::string& wanted,
                                            bool has_keys);

// As `find` has it, asked again after every `pause` while it has no way to the head, which a
// network that is just coming up may yet give. Errors: as it says at once, or when `within` is
// over.
runtime::Result<std::string> await_listen_address(
    const std::function<runtime::Result<std::string>()>& find, runtime::Duration within,
    const runtime::Clock& clock, const std::function<void(const runtime::Error& why)>& pause);

}  // namespace troupe::launch

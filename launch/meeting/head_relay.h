#pragma once

// The relay of a run, in its head's process: members that nobody can dial reach each other through
// it. See runtime/relay/relay.h.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/log.h"
#include "runtime/relay/relay.h"

namespace troupe::launch {

// The relay takes any port where the head does. Else it has the port after the head's two.
inline constexpr std::uint16_t kRelayBehindHead = 2;

// A member's number is that of its client. One thread's.
class HeadRelay {
 public:
  // For a head that listens there; one in the file system needs none. `tokens`: what members that
  // earlier heads have invited are known by. Without a relay, which the log says, the run goes on.
  HeadRelay(const std::string& listen, const std::map<std::string, runtime::RelayToken>& tokens,
            const runtime::Log& log);

  // 0: there is none.
  std::uint16_t port() const { return relay_ ? relay_->port() : std::uint16_t{0}; }
  // Draws what the member is known by from now on. None if there is no relay.
  std::optional<runtime::RelayToken> admit(const std::string& member);

 private:
  std::unique_ptr<runtime::Relay> relay_;
};

}  // namespace troupe::launch

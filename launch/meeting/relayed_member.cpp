#include "launch/meeting/relayed_member.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "runtime/relay/relay_client.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {

namespace {

constexpr auto kRelayWithin = std::chrono::seconds(5);

}  // namespace

runtime::Result<std::optional<RelayedMember>> open_relayed_member(
    const std::string& head, std::uint32_t member, const MemberInvitation& invitation,
    const NodeCredentials& credentials, const runtime::Clock& clock, const runtime::Log& log,
    LetIn let_in) {
  if (invitation.relay_port == 0) {
    log.info(
        "the head has no relay, through which others that nobody can dial could reach this one");
    return std::optional<RelayedMember>();
  }
  ASSIGN_OR_RETURN(const runtime::Address address, runtime::parse_address(head));
  ASSIGN_OR_RETURN(const runtime::ResolvedAddress place, runtime::resolve(address));
  ASSIGN_OR_RETURN(SocketFolder folder, SocketFolder::make());
  runtime::RelayClientOptions options;
  options.host = place.host;
  options.port = invitation.relay_port;
  options.client = member;
  options.token = invitation.relay_token;
  options.folder = folder.path();
  options.listener = folder.path() + "/member";
  options.log = log;
  ASSIGN_OR_RETURN(auto wire, open_wire("ipc://" + options.listener, credentials, clock, log,
                                        std::move(let_in)));
  ASSIGN_OR_RETURN(auto relay, runtime::RelayClient::open(options));
  if (!relay->attends(kRelayWithin)) {
    log.warning(
        fmt::format("the head's relay at {} port {} does not answer; others that nobody can "
                    "dial do not reach this one; is that port open?",
                    options.host, options.port));
    return std::optional<RelayedMember>();
  }
  auto relayed = std::make_unique<runtime::RelayedWire>(std::move(wire), std::move(relay), member);
  return std::optional<RelayedMember>(RelayedMember{std::move(folder), std::move(relayed)});
}

}  // namespace troupe::launch

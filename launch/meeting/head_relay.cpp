#include "launch/meeting/head_relay.h"

#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "config/topology.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {
namespace {

using runtime::Result;

Result<std::unique_ptr<runtime::Relay>> open_relay(const runtime::Address& head,
                                                   const runtime::Log& log) {
  ASSIGN_OR_RETURN(const runtime::ResolvedAddress place, runtime::resolve(head));
  if (head.port > UINT16_MAX - kRelayBehindHead) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          fmt::format("there is no port behind {} for it", head.port)};
  }
  runtime::RelayOptions options;
  options.host = place.host;
  if (head.port != 0) options.port = static_cast<std::uint16_t>(head.port + kRelayBehindHead);
  options.log = log;
  return runtime::Relay::open(options);
}

}  // namespace

HeadRelay::HeadRelay(const std::string& listen,
                     const std::map<std::string, runtime::RelayToken>& tokens,
                     const runtime::Log& log) {
  const auto address = runtime::parse_address(listen);
  if (!address.ok() || address->kind != runtime::Address::Kind::kTcp) return;
  auto opened = open_relay(*address, log);
  if (!opened.ok()) {
    log.warning(
        fmt::format("there is no relay, so that of members with --listen none only one can "
                    "join: {}",
                    opened.error().message));
    return;
  }
  relay_ = std::move(*opened);
  for (const auto& [member, token] : tokens) {
    if (const auto client = config::member_number(member)) relay_->admit(*client, token);
  }
}

std::optional<runtime::RelayToken> HeadRelay::admit(const std::string& member) {
  const auto client = config::member_number(member);
  if (!relay_ || !client) return std::nullopt;
  const runtime::RelayToken token = runtime::draw_relay_token();
  relay_->admit(*client, token);
  return token;
}

}  // namespace troupe::launch

#include "launch/meeting/node_uplink.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/message_fields.h"
#include "launch/machine/this_host.h"
#include "pipeline/steps/state_layout.h"
#include "runtime/base/host_name.h"
#include "runtime/base/secret.h"
#include "runtime/transport/resolve.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe::launch {

namespace {

constexpr runtime::Duration kLongestDial = std::chrono::minutes(1);

// The folder's list as it is now, expired keys included; the last that could be read, when it
// cannot.
LetIn live_list(const std::string& folder, std::vector<runtime::AllowedKey> first,
                const runtime::Log& log) {
  return [file = allowed_keys_file(folder), last = std::move(first), log]() mutable {
    auto allowed = runtime::read_allow_list(file);
    if (allowed.ok()) {
      last = *allowed;
    } else {
      log.warning(allowed.error().message);
    }
    return last;
  };
}

}  // namespace

runtime::Result<void> check_credentials(const std::string& address,
                                        const NodeCredentials& credentials) {
  ASSIGN_OR_RETURN(const runtime::Address head, runtime::parse_address(address));
  if (!head.key.empty() || (!credentials.token && !credentials.key_folder)) return {};
  return runtime::Error{
      runtime::ErrorKind::kUsage,
      fmt::format("the address {0} has no key, as in '{0}#KEY', and a key of this process alone "
                  "encrypts nothing; give the address with the key, as the head has printed it, "
                  "or, if the head has no keys, leave out {1}",
                  head.text(), credentials.token ? credentials.token->from : "--key")};
}

// A token goes before a key folder. It lists nobody, so its process lets in those of `let_in`
// alone.
runtime::Result<std::unique_ptr<runtime::Wire>> open_wire(const std::string& listen,
                                                          const NodeCredentials& credentials,
                                                          const runtime::Clock& clock,
                                                          const runtime::Log& log, LetIn let_in,
                                                          std::shared_ptr<runtime::UcxFabric> ucx) {
  runtime::ZmqWireOptions options;
  options.ucx = std::move(ucx);
  options.listen = listen;
  options.clock = &clock;
  options.log = log;
  if (credentials.token) {
    const JoinToken& token = *credentials.token;
    auto keys = runtime::keys_of_secret(token.text);
    if (!keys.ok()) {
      return runtime::Error{keys.error().kind,
                            fmt::format("{}: {}", token.from, keys.error().message)};
    }
    options.keys = std::move(*keys);
    options.token_from = token.from;
  } else if (credentials.key_folder) {
    ASSIGN_OR_RETURN(KeyFolder keys, read_key_folder(*credentials.key_folder));
    options.keys = std::move(keys.own);
    options.allowed_now = live_list(*credentials.key_folder, std::move(keys.allowed), log);
  }
  if (let_in) options.allowed_now = std::move(let_in);
  ASSIGN_OR_RETURN(std::unique_ptr<runtime::ZmqWire> wire, runtime::ZmqWire::open(options));
  return std::unique_ptr<runtime::Wire>(std::move(wire));
}

runtime::Result<void> open_fabric(const config::ClusterSection& cluster, runtime::UcxFabric& ucx,
                                  const runtime::Log& log) {
  if (cluster.fabric != config::Fabric::kUcx) return {};
  runtime::NetworkRange network;
  if (cluster.fabric_network) {
    ASSIGN_OR_RETURN(network, runtime::NetworkRange::parse(*cluster.fabric_network));
    const std::vector<std::string> here = interface_addresses();
    if (std::ranges::none_of(here, [&](const auto& each) { return network.has(each); })) {
      // A run that stays on this machine needs none.
      log.warning(
          fmt::format("this machine has no address in cluster.fabric_network, {}, so that "
                      "members elsewhere do not reach it: it has {}",
                      *cluster.fabric_network, fmt::join(here, ", ")));
    }
  }
  RETURN_IF_ERROR(ucx.open(network));
  log.info(fmt::format(
      "data travel over UCX {}, unencrypted; {}", ucx.offer().version,
      cluster.fabric_network
          ? fmt::format("they may cross {}", *cluster.fabric_network == "any"
                                                 ? "any network"
                                                 : "the network " + *cluster.fabric_network)
          : "they stay on this machine"));
  return {};
}

runtime::WireTypes wire_types(const model::Gan& gan, const pipeline::TrainingOptions& options) {
  runtime::WireTypes types;
  const auto check = [layout = pipeline::StateLayout(gan),
                      options](const pipeline::TrainingState& state) {
    return pipeline::check_state(state, layout, options);
  };
  actors::add_wire_messages(types, check);
  return types;
}

runtime::GateOptions gate_options(const std::string& name, const config::FailureSection& failure,
                                  std::vector<runtime::Term> terms) {
  runtime::GateOptions options;
  static_cast<runtime::SilenceOptions&>(options) = failure;
  options.node = name;
  options.incarnation = runtime::secret_number();
  options.host = runtime::host_name();
  options.pid = static_cast<std::uint64_t>(::getpid());
  options.machine = machine_identity();
  options.host_load = host_load;
  options.terms = std::move(terms);
  options.dial_within =
      std::max(std::min(kLongestDial, failure.stuck_after / 2), 2 * failure.dead_after);
  return options;
}

runtime::Duration return_within(const config::FailureSection& failure, std::size_t members,
                                double load) {
  const runtime::Patience patience(failure.dead_after);
  return 2 * patience.with_absence(runtime::TimePoint{0}, load) +
         runtime::rhythm_among(members, failure.heartbeat) - failure.heartbeat +
         std::chrono::seconds(1);
}

}  // namespace troupe::launch

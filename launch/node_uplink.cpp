#include "launch/node_uplink.h"

#include <unistd.h>

#include <random>
#include <utility>

#include "actors/wire_messages.h"
#include "launch/nodes_file.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe::launch {

runtime::Result<std::unique_ptr<runtime::Wire>> open_wire(
    const std::string& listen, const std::optional<std::string>& key_folder,
    const runtime::Clock& clock, const runtime::Log& log) {
  runtime::ZmqWireOptions options;
  options.listen = listen;
  options.clock = &clock;
  options.log = log;
  if (key_folder) {
    ASSIGN_OR_RETURN(KeyFolder keys, read_key_folder(*key_folder));
    options.keys = std::move(keys.own);
    options.allowed = std::move(keys.allowed);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<runtime::ZmqWire> wire, runtime::ZmqWire::open(options));
  return std::unique_ptr<runtime::Wire>(std::move(wire));
}

runtime::WireTypes wire_types() {
  runtime::WireTypes types;
  actors::add_wire_messages(types);
  return types;
}

runtime::GateOptions gate_options(const std::string& name, const config::FailureSection& failure,
                                  std::vector<runtime::Term> terms) {
  std::random_device device;
  runtime::GateOptions options;
  options.node = name;
  options.incarnation = (std::uint64_t{device()} << 32 | device()) | 1;
  options.host = host_name();
  options.pid = static_cast<std::uint64_t>(::getpid());
  options.terms = std::move(terms);
  options.heartbeat = failure.heartbeat;
  options.dead_after = failure.dead_after;
  return options;
}

}  // namespace troupe::launch

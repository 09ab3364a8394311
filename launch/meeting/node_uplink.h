#pragma once

// The sockets that join a process of a run to the others, and how it introduces itself.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/topology.h"
#include "launch/meeting/key_folder.h"
#include "model/gan.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/node/gate.h"
#include "runtime/transport/keys.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/ucx_fabric.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/wire_types.h"

namespace troupe::launch {

struct JoinToken {
  std::string text;  // as make_join_token() makes it
  std::string from;  // where it was found, for people: "--token-file FILE"
};

// How a process proves who it is; neither: nothing is encrypted, and nothing leaves the machine.
struct NodeCredentials {
  std::optional<std::string> key_folder;  // as read_key_folder() takes it
  std::optional<JoinToken> token;         // for members
};

// Whether they suit a head at that address. Members meet each other as they meet the head, so a key
// of one's own is of use only with the head's behind the address. kUsage, for a head whose key is
// not there.
runtime::Result<void> check_credentials(const std::string& address,
                                        const NodeCredentials& credentials);

// The keys that a listener with keys lets in; asked anew for every new connection, on the thread
// that drives the wire.
using LetIn = std::function<std::vector<runtime::AllowedKey>()>;

// `listen` "" for a process that only dials. `let_in` null: whom the key folder lists, and without
// one nobody. `ucx` carries data once it is opened; null: ZeroMQ. The clock outlives the wire.
// Errors are kUsage: see ZmqWire::open.
runtime::Result<std::unique_ptr<runtime::Wire>> open_wire(
    const std::string& listen, const NodeCredentials& credentials, const runtime::Clock& clock,
    const runtime::Log& log, LetIn let_in = nullptr,
    std::shared_ptr<runtime::UcxFabric> ucx = nullptr);

// Opens UCX for the wire that has it, if that is the topology's fabric, and says that it does not
// encrypt. Errors (kUsage): UCX is not there or does not start.
runtime::Result<void> open_fabric(const config::ClusterSection& cluster, runtime::UcxFabric& ucx,
                                  const runtime::Log& log);

// All that actors can send to another node; states are only taken if they are of this model and of
// these options.
runtime::WireTypes wire_types(const model::Gan& gan, const pipeline::TrainingOptions& options);

// How this process introduces itself as node `name`, and what it makes of silence. Every call draws
// another incarnation. A node that cannot be reached is given up well before a run without progress
// is, so that people hear of the cause: after half that time, a minute at most, and not before a
// node that falls silent would be given up twice over.
runtime::GateOptions gate_options(const std::string& name, const config::FailureSection& failure,
                                  std::vector<runtime::Term> terms);

// How long a head waits for the members of the one before it: as long as one of so many may take to
// notice that the head it knew is gone, and the way here. `load`: of this host, as Patience has it.
runtime::Duration return_within(const config::FailureSection& failure, std::size_t members,
                                double load);

}  // namespace troupe::launch

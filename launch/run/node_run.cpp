#include "launch/run/node_run.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "launch/folder/nodes_file.h"
#include "launch/machine/usable_machine.h"
#include "launch/meeting/node_uplink.h"
#include "launch/run/networks.h"
#include "telemetry/trace/trace_json.h"

namespace troupe::launch {

namespace {

double seconds(const ::timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double cpu_seconds() {
  ::rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0.0;
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

telemetry::LinkSample sample_of(const runtime::LinkStats& link) {
  telemetry::LinkSample sample;
  sample.from = link.plan.from;
  sample.to = link.plan.to;
  sample.port = link.plan.to_port;
  sample.sent = link.sent;
  sample.in_use = link.in_use_messages;
  sample.credits = link.plan.message_credits;
  sample.queued = link.queued;
  sample.dropped = link.dropped;
  return sample;
}

telemetry::DeviceSample sample_of(const model::DeviceLoad& load) {
  return {load.word,         load.name, load.own_bytes, load.used_bytes,
          load.memory_bytes, load.busy, load.watts,     load.celsius};
}

}  // namespace

NodeRun::NodeRun(const TrainingSetup& setup, actors::NodeParts& parts, runtime::NodeOptions options,
                 runtime::GateOptions gate, runtime::Wire* wire, const runtime::Clock& clock,
                 runtime::Log& log)
    : log_(log), types_(wire_types(*setup.gan, setup.options)) {
  if (const std::string device = device_text(*setup.backend); !device.empty()) log.info(device);
  options.scheduler_threads = 1;
  options.stuck_after = setup.topology.cluster.failure.stuck_after;
  // Actors ask while the node runs, and not before.
  actors::NodeHooks hooks;
  hooks.sample = [this, name = wire == nullptr ? kLocalNode : gate.node,
                  memory = &setup.backend->memory()] {
    telemetry::NodeSample sample = sample_node(name, *node_);
    if (const auto load = memory->load()) sample.devices.push_back(sample_of(*load));
    return sample;
  };
  hooks.trace = [this] { return node_->traces(); };
  hooks.waits = [this] { return node_->wait_for_graph(); };
  static_cast<actors::NodeHooks&>(parts.monitor) = hooks;
  static_cast<actors::NodeHooks&>(parts.member) = hooks;
  auto factory = actors::make_actor_factory(parts);
  if (wire == nullptr) {
    node_.emplace(setup.plan, std::move(factory), std::move(options), clock, log);
  } else {
    node_.emplace(setup.plan, std::move(factory), std::move(options), clock, log,
                  runtime::Uplink{std::move(gate), *wire, types_});
  }
}

void NodeRun::leave_trace(const std::string& path, runtime::Disk& disk) const {
  const std::filesystem::path file(path);
  const std::string folder = file.parent_path().string();
  runtime::Result<void> written;
  if (!folder.empty()) written = disk.make_folder(folder);
  if (written.ok()) {
    telemetry::Trace trace;
    trace.nodes.push_back({file.stem().string(), {}, {}, node_->traces()});
    const std::string text = telemetry::trace_json(trace);
    written = disk.replace(path, std::as_bytes(std::span{text}));
  }
  if (!written.ok()) log_.warning(written.error().message);
}

void tell_dropped(const std::vector<runtime::LinkStats>& links, const std::string& path,
                  runtime::Log& log) {
  std::int64_t dropped = 0;
  for (const runtime::LinkStats& link : links) {
    if (link.plan.from.starts_with("replica.") || link.plan.from_port != "metrics") continue;
    dropped += link.dropped;
  }
  if (dropped == 0) return;
  log.warning(
      fmt::format("{} lacks {} lines of checkpoints and validations: they came faster than they "
                  "could be written",
                  path, dropped));
}

void abandon(const runtime::NodeEnd& end, const runtime::Log& log) {
  log.error(end.error->message);
  log.error(
      fmt::format("abandoned: {}; the process ends without them", fmt::join(end.abandoned, ", ")));
  ::_exit(runtime::exit_code(end.error->kind));
}

// The node lists all links of the plan; those that begin elsewhere are counted there.
telemetry::NodeSample sample_node(const std::string& name, const runtime::Node& node) {
  telemetry::NodeSample sample;
  sample.node = name;
  sample.cpu_seconds = cpu_seconds();
  sample.resident_bytes = resident_bytes();
  for (const runtime::PeerStats& peer : node.peer_stats()) {
    sample.sent_bytes += peer.bytes_sent;
    sample.received_bytes += peer.bytes_received;
  }
  std::set<std::string> here;
  for (runtime::ActorStats& actor : node.actor_stats()) {
    here.insert(actor.name);
    sample.actors.push_back({std::move(actor.name), std::move(actor.state), actor.handled});
  }
  for (const runtime::LinkStats& link : node.link_stats()) {
    const bool used = link.sent > 0 || link.dropped > 0;
    if (used && here.contains(link.plan.from)) sample.links.push_back(sample_of(link));
  }
  return sample;
}

}  // namespace troupe::launch

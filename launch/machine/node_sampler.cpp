#include "launch/machine/node_sampler.h"

#include <sys/resource.h>

#include <set>
#include <string_view>
#include <utility>

#include "launch/machine/usable_machine.h"

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

}  // namespace

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

#include "actors/wire_report.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::TimePoint;
using runtime::WireReader;
using runtime::WireWriter;
using telemetry::ActorSample;
using telemetry::LinkSample;
using telemetry::NodeSample;

constexpr std::size_t kMostState = 16;
constexpr std::uint64_t kMostWants = static_cast<std::uint64_t>(Probe::Wants::kWaits);

void pack_name(WireWriter& out, std::string_view name) { out.text(name.substr(0, kMostActorName)); }

void pack_wants(WireWriter& out, Probe::Wants wants) {
  out.number(static_cast<std::uint64_t>(wants));
}

Probe::Wants unpack_wants(WireReader& in) {
  return static_cast<Probe::Wants>(in.number(kMostWants));
}

void pack_actor(WireWriter& out, const ActorSample& actor) {
  out.list(3);
  pack_name(out, actor.name);
  out.text(std::string_view(actor.state).substr(0, kMostState));
  out.integer(actor.handled);
}

ActorSample unpack_actor(WireReader& in) {
  ActorSample actor;
  in.list(3);
  actor.name = in.text(kMostActorName);
  actor.state = in.text(kMostState);
  actor.handled = in.integer();
  return actor;
}

void pack_link(WireWriter& out, const LinkSample& link) {
  out.list(8);
  pack_name(out, link.from);
  pack_name(out, link.to);
  pack_name(out, link.port);
  out.integer(link.sent);
  out.integer(link.in_use);
  out.integer(link.credits);
  out.integer(link.queued);
  out.integer(link.dropped);
}

LinkSample unpack_link(WireReader& in) {
  LinkSample link;
  in.list(8);
  link.from = in.text(kMostActorName);
  link.to = in.text(kMostActorName);
  link.port = in.text(kMostActorName);
  link.sent = in.integer();
  link.in_use = in.integer();
  link.credits = in.integer();
  link.queued = in.integer();
  link.dropped = in.integer();
  return link;
}

void pack_sample(WireWriter& out, const NodeSample& sample) {
  out.list(7);
  pack_name(out, sample.node);
  out.real(sample.cpu_seconds);
  out.integer(sample.resident_bytes);
  out.integer(sample.sent_bytes);
  out.integer(sample.received_bytes);
  const std::size_t actors = std::min(sample.actors.size(), kMostSampleActors);
  out.list(actors);
  for (std::size_t i = 0; i < actors; ++i) pack_actor(out, sample.actors[i]);
  const std::size_t links = std::min(sample.links.size(), kMostSampleLinks);
  out.list(links);
  for (std::size_t i = 0; i < links; ++i) pack_link(out, sample.links[i]);
}

// One by one: what is said to follow costs nothing before it has come.
void unpack_sample(WireReader& in, NodeSample& sample) {
  in.list(7);
  sample.node = in.text(kMostActorName);
  sample.cpu_seconds = in.real();
  if (!std::isfinite(sample.cpu_seconds)) in.fail("a time that is no number");
  sample.resident_bytes = in.integer();
  sample.sent_bytes = in.integer();
  sample.received_bytes = in.integer();
  for (std::size_t left = in.list_up_to(kMostSampleActors); left > 0 && in.ok(); --left) {
    sample.actors.push_back(unpack_actor(in));
  }
  for (std::size_t left = in.list_up_to(kMostSampleLinks); left > 0 && in.ok(); --left) {
    sample.links.push_back(unpack_link(in));
  }
}

}  // namespace

std::int64_t NodeReport::bytes() const {
  return static_cast<std::int64_t>(sample.actors.size() * sizeof(ActorSample) +
                                   sample.links.size() * sizeof(LinkSample));
}

void pack(WireWriter& out, const Probe& body) {
  out.list(3);
  out.number(body.request);
  out.integer(body.sent.count());
  pack_wants(out, body.wants);
}

void unpack(WireReader& in, Probe& body) {
  in.list(3);
  body.request = in.number();
  body.sent = TimePoint{in.integer()};
  body.wants = unpack_wants(in);
}

void pack(WireWriter& out, const NodeReport& body) {
  out.list(5);
  out.number(body.request);
  out.integer(body.sent.count());
  pack_wants(out, body.wants);
  out.integer(body.answered.count());
  pack_sample(out, body.sample);
}

void unpack(WireReader& in, NodeReport& body, std::span<const Buffer> payloads) {
  in.list(5);
  body.request = in.number();
  body.sent = TimePoint{in.integer()};
  body.wants = unpack_wants(in);
  body.answered = TimePoint{in.integer()};
  unpack_sample(in, body.sample);
  if (payloads.size() > 1 ||
      (!payloads.empty() && payloads[0].size() > NodeReport::kMostContents)) {
    in.fail("a report with more than was wanted");
  }
}

}  // namespace troupe::actors

#include "runtime/transport/zmq_listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/base/host_name.h"
#include "runtime/base/socket_path.h"
#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

constexpr int kFewMessages = 64;
// Enough to empty what stood before a connection's end; a flood does not hold the driver for ever.
constexpr int kManyMessages = 100'000;
// Attached and not open yet: more than any cluster has, few enough to be no burden.
constexpr std::size_t kMostUnopened = 4096;

std::uint16_t port_of(const std::string& endpoint) {
  std::uint16_t port = 0;
  const std::size_t colon = endpoint.rfind(':');
  std::from_chars(endpoint.data() + colon + 1, endpoint.data() + endpoint.size(), port);
  return port;
}

std::int64_t most_frame_bytes(Lane lane, std::size_t chunk_bytes) {
  const std::size_t most =
      lane == Lane::kData ? std::max(chunk_bytes, kMostPacketFrameBytes) : kMostPacketFrameBytes;
  return static_cast<std::int64_t>(most + 1024);
}

}  // namespace

Result<std::unique_ptr<ZmqListener>> ZmqListener::open(ZmqContext& context,
                                                       const ZmqWireOptions& options,
                                                       ZmqSink& sink) {
  std::unique_ptr<ZmqListener> listener(new ZmqListener(options, sink));
  RETURN_IF_ERROR(listener->bind(context));
  return listener;
}

ZmqListener::~ZmqListener() {
  for (auto& [token, peer] : peers_) {
    if (peer.id.number != 0) peer.traffic->say_bye(out_of(token));
  }
}

Result<void> ZmqListener::bind(ZmqContext& context) {
  ASSIGN_OR_RETURN(Address address, parse_address(options_.listen));
  ASSIGN_OR_RETURN(const ResolvedAddress resolved, resolve(address));
  if (!resolved.loopback && !options_.keys) {
    return Error{ErrorKind::kUsage,
                 fmt::format("will not listen on {} without keys, since it can be reached from "
                             "other machines; make keys with 'troupe keygen' and name them, or "
                             "listen on 127.0.0.1",
                             address.text())};
  }
  if (address.port > UINT16_MAX - 2) {
    return Error{ErrorKind::kUsage, fmt::format("cannot listen on {}: the two ports after it are "
                                                "needed too; give one up to 65533",
                                                address.text())};
  }
  const bool tcp = address.kind == Address::Kind::kTcp;
  const char* const suffixes[] = {"", ".data", ".metrics"};
  std::array<std::uint16_t, kLanes> ports{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    ZmqSocketOptions socket;
    socket.most_frame_bytes = most_frame_bytes(static_cast<Lane>(lane), options_.chunk_bytes);
    socket.linger = options_.linger;
    socket.keys = options_.keys;
    socket.handshake_within = options_.attach_within;
    std::string endpoint = resolved.endpoint + suffixes[lane];
    if (tcp) {
      const std::size_t port = address.port == 0 ? 0 : address.port + lane;
      endpoint = endpoint_with_port(resolved, static_cast<std::uint16_t>(port));
    } else {
      const std::string path = address.path + suffixes[lane];
      if (const auto free = check_socket_path(path); !free.ok()) {
        return Error{ErrorKind::kUsage,
                     fmt::format("cannot listen on ipc://{}: {}", path, free.error().message)};
      }
    }
    ASSIGN_OR_RETURN(routers_[lane].socket, ZmqSocket::open(context, socket));
    ASSIGN_OR_RETURN(const std::string bound, routers_[lane].socket->bind(endpoint));
    if (tcp) ports[lane] = port_of(bound);
  }
  address.port = ports[0];
  data_port_ = ports[1];
  metrics_port_ = ports[2];
  if (resolved.any) address.host = host_name();
  address_ = address.text();
  return {};
}

void ZmqListener::add_to(std::vector<ZmqSocket*>& sockets) {
  for (Router& router : routers_) sockets.push_back(router.socket.get());
}

void ZmqListener::serve(TimePoint now) {
  for (Router& router : routers_) {
    if (router.socket->has_events()) read_events(router);
  }
  for (const Lane lane : {Lane::kControl, Lane::kData, Lane::kMetrics}) {
    if (!router(lane).socket->readable()) continue;
    read_up_to(lane, lane == Lane::kControl ? kManyMessages : kFewMessages, now);
  }
  if (!lost_.empty()) end_lost(now);
  end_late(now);
}

void ZmqListener::read_up_to(Lane lane, int most, TimePoint now) {
  for (int i = 0; i < most && read_message(lane, now); ++i) {
  }
}

void ZmqListener::read_events(Router& router) {
  ZmqEvent event;
  while (router.socket->next_event(event)) {
    if (event.what != ZmqEvent::What::kDisconnected) continue;
    const auto strand = router.strands.find(event.descriptor);
    if (strand == router.strands.end()) continue;
    lost_.push_back(strand->second);
    router.strands.erase(strand);
  }
}

bool ZmqListener::read_message(Lane lane, TimePoint now) {
  if (!router(lane).socket->receive(frames_)) return false;
  const auto name = StrandName::from_route(frames_[0].bytes());
  if (!name || name->lane != lane) {
    sink_.dropped();
    return true;
  }
  const std::span<Buffer> frames = std::span(frames_).subspan(1);
  const auto peer = peers_.find(name->token);
  const bool known = peer != peers_.end() && peer->second.attached.contains({lane, name->stripe});
  if (known) {
    take_of_peer(peer, *name, frames, now);
  } else if (frames.size() == 1) {
    take_attach(*name, frames[0].bytes(), now);
  } else {
    sink_.dropped();  // the socket knows the origin of a last frame only
  }
  return true;
}

void ZmqListener::take_attach(const StrandName& name, std::span<const std::byte> frame,
                              TimePoint now) {
  const auto version = version_of(frame);
  if (version && *version != kWireVersion) {
    options_.log.warning(
        fmt::format("refused a peer that speaks version {} of the wire; this end "
                    "speaks {}: run the same release on both",
                    *version, kWireVersion));
    refuse(name, fmt::format("it speaks version {} of the wire and this end {}; run the same "
                             "release of Troupe on both",
                             kWireVersion, *version));
    return sink_.dropped();
  }
  const auto attach = read_attach(frame);
  if (!attach || attach->strand != name) return sink_.dropped();
  const ZmqOrigin origin = router(name.lane).socket->origin();
  const auto peer = peers_.find(name.token);
  if (name.lane == Lane::kControl) {
    if (peer != peers_.end()) return sink_.dropped();
    note_descriptor(name, origin.descriptor);
    return welcome(name, *attach, origin, now);
  }
  // The other strands belong to the one that proved the key on control.
  if (peer == peers_.end() || peer->second.info.key != origin.key ||
      name.stripe >= peer->second.stripes) {
    return sink_.dropped();
  }
  note_descriptor(name, origin.descriptor);
  peer->second.attached.emplace(name.lane, name.stripe);
  open_if_complete(peer);
}

void ZmqListener::note_descriptor(const StrandName& name, int descriptor) {
  Router& owner = router(name.lane);
  // What is known of an earlier connection with this descriptor. It may also be of this one, which
  // then died before its attach was read: on control nothing will follow, and the deadline ends it;
  // on other lanes the dialer has noticed and ends its control too.
  read_events(owner);
  const auto [strand, fresh] = owner.strands.emplace(descriptor, name);
  if (fresh) return;
  lost_.push_back(strand->second);
  strand->second = name;
}

void ZmqListener::welcome(const StrandName& name, const Attach& attach, const ZmqOrigin& origin,
                          TimePoint now) {
  if (peers_.size() - tokens_.size() >= kMostUnopened) return sink_.dropped();
  Peer peer;
  peer.info = {false, origin.address, origin.key, origin.key_expired};
  if (peer.info.address == "ipc") peer.info.address = address_;
  peer.stripes = attach.stripes;
  peer.attached.emplace(Lane::kControl, 0);
  peer.deadline = now + options_.attach_within;
  peer.traffic = std::make_unique<ZmqTraffic>(options_, sink_);
  peer.traffic->agree_on(std::min<std::size_t>(options_.chunk_bytes, attach.chunk_bytes),
                         attach.stripes);
  WireWelcome answer;
  answer.data_port = data_port_;
  answer.metrics_port = metrics_port_;
  answer.chunk_bytes = static_cast<std::uint32_t>(options_.chunk_bytes);
  answer.sees_offer = peer.traffic->open_offer(attach.offer);
  answer.offer = peer.traffic->offer();
  peers_.emplace(name.token, std::move(peer));
  const Buffer frames[] = {write_welcome(answer)};
  router(Lane::kControl).socket->send(name.route(), frames);
}

void ZmqListener::take_of_peer(Peers::iterator peer, const StrandName& name,
                               std::span<Buffer> frames, TimePoint now) {
  Peer& state = peer->second;
  if (state.id.number == 0) return take_of_unopened(peer, name.lane, frames);
  if (!frames.empty() && kind_of(frames[0].bytes()) == FrameKind::kRefuse) {
    return end(peer, fmt::format("the other end refused the connection: {}",
                                 read_refuse(frames[0].bytes())));
  }
  const bool first_bye = !state.traffic->any_bye();
  const std::string wrong = state.traffic->take(state.id, name.lane, name.stripe, frames);
  if (!wrong.empty()) {
    sink_.dropped();
    refuse({name.token, Lane::kControl, 0}, fmt::format("this end sent {}", wrong));
    return end(peer, fmt::format("the other end sent {}", wrong));
  }
  if (state.traffic->all_byes()) return end(peer, "the other end closed the connection");
  if (first_bye && state.traffic->any_bye()) state.deadline = now + options_.linger;
}

void ZmqListener::take_of_unopened(Peers::iterator peer, Lane lane,
                                   std::span<const Buffer> frames) {
  Peer& state = peer->second;
  const bool may_be = lane == Lane::kControl && !frames.empty() && !state.ready;
  const auto ready = may_be ? read_ready(frames[0].bytes()) : std::nullopt;
  if (!ready) return sink_.dropped();
  state.ready = true;
  state.traffic->peer_sees_offer(ready->sees_offer);
  open_if_complete(peer);
}

void ZmqListener::open_if_complete(Peers::iterator peer) {
  Peer& state = peer->second;
  if (!state.ready || static_cast<int>(state.attached.size()) != state.stripes + 2) return;
  const Buffer frames[] = {write_bare(FrameKind::kOpen)};
  router(Lane::kControl).socket->send(StrandName{peer->first, Lane::kControl, 0}.route(), frames);
  state.id = sink_.next_id();
  tokens_.emplace(state.id, peer->first);
  sink_.connected(state.id, state.info);
}

void ZmqListener::refuse(const StrandName& name, std::string_view why) {
  const Buffer frames[] = {write_refuse(why)};
  router(name.lane).socket->send(name.route(), frames);
}

void ZmqListener::end(Peers::iterator peer, std::string why) {
  if (peer->second.id.number != 0) {
    sink_.disconnected(peer->second.id, {ErrorKind::kLostPeers, std::move(why)});
    tokens_.erase(peer->second.id);
  }
  peers_.erase(peer);
}

void ZmqListener::end_lost(TimePoint now) {
  // What arrived before the end is handed on before it.
  for (const Lane lane : {Lane::kControl, Lane::kData, Lane::kMetrics}) {
    read_up_to(lane, kManyMessages, now);
  }
  for (const StrandName& name : std::exchange(lost_, {})) {
    const auto peer = peers_.find(name.token);
    if (peer == peers_.end()) continue;
    if (peer->second.id.number != 0 && peer->second.traffic->said_bye(name.lane, name.stripe)) {
      continue;
    }
    end(peer, "the connection was lost: the other end or the network is gone");
  }
}

void ZmqListener::end_late(TimePoint now) {
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    const auto here = peer++;
    const bool opening = here->second.id.number == 0;
    if (now < here->second.deadline || !(opening || here->second.traffic->any_bye())) continue;
    end(here, "the other end closed the connection");
  }
}

TimePoint ZmqListener::next_deadline() const {
  TimePoint next = TimePoint::max();
  for (const auto& [token, peer] : peers_) {
    if (peer.id.number == 0 || peer.traffic->any_bye()) next = std::min(next, peer.deadline);
  }
  return next;
}

ZmqListener::Peers::iterator ZmqListener::find(ConnectionId connection) {
  const auto token = tokens_.find(connection);
  return token == tokens_.end() ? peers_.end() : peers_.find(token->second);
}

ZmqTraffic::Out ZmqListener::out_of(const Token& token) {
  return [this, token](Lane lane, int stripe, std::span<const Buffer> frames) {
    const StrandName name{token, lane, static_cast<std::uint8_t>(stripe)};
    if (!router(lane).socket->send(name.route(), frames)) lost_.push_back(name);
  };
}

bool ZmqListener::send(ConnectionId connection, Lane lane, const Packet& packet) {
  const auto peer = find(connection);
  if (peer == peers_.end()) return false;
  peer->second.traffic->send(lane, packet, out_of(peer->first));
  return true;
}

bool ZmqListener::close(ConnectionId connection) {
  const auto peer = find(connection);
  if (peer == peers_.end()) return false;
  peer->second.traffic->say_bye(out_of(peer->first));
  tokens_.erase(connection);
  peers_.erase(peer);
  return true;
}

}  // namespace troupe::runtime

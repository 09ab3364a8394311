#include "runtime/transport/zmq_listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/base/host_name.h"
#include "runtime/base/socket_path.h"
#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

// Not open yet: more than any cluster has, few enough to be no burden.
constexpr std::size_t kMostUnopened = 4096;
// A port of which the next one is free is found long before.
constexpr int kMostTries = 100;

std::uint16_t port_of(const std::string& endpoint) {
  std::uint16_t port = 0;
  const std::size_t colon = endpoint.rfind(':');
  std::from_chars(endpoint.data() + colon + 1, endpoint.data() + endpoint.size(), port);
  return port;
}

// A peer's host, as its socket tells.
struct PeerHost {
  std::string host;
  bool loopback = false;
};
PeerHost host_of(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed.ok()) return {address, false};
  const auto resolved = resolve(*parsed);
  return resolved.ok() ? PeerHost{resolved->host, resolved->loopback} : PeerHost{address, false};
}

struct Bound {
  std::array<std::unique_ptr<ZmqSocket>, kSockets> sockets;
  std::string address;  // as others can dial it
};

Result<std::string> bind_socket(ZmqContext& context, const ZmqWireOptions& options, SocketId id,
                                const std::string& endpoint, Bound& bound) {
  ZmqSocketOptions socket;
  socket.most_frame_bytes = most_frame_bytes_of(id);
  socket.linger = options.linger;
  socket.keys = options.keys;
  socket.handshake_within = options.attach_within;
  auto& made = bound.sockets[static_cast<std::size_t>(id)];
  ASSIGN_OR_RETURN(made, ZmqSocket::open(context, socket));
  return made->bind(endpoint);
}

Result<void> bind_paths(ZmqContext& context, const ZmqWireOptions& options, const std::string& path,
                        Bound& bound) {
  for (const SocketId id : {SocketId::kControl, SocketId::kData}) {
    const std::string own = path_of(path, id);
    if (const auto free = check_socket_path(own); !free.ok()) {
      return Error{ErrorKind::kUsage,
                   fmt::format("cannot listen on ipc://{}: {}", own, free.error().message)};
    }
    const auto made = bind_socket(context, options, id, "ipc://" + own, bound);
    if (!made.ok()) return made.error();
  }
  return {};
}

// Listens at the wanted port and the next one or, if that is 0, at any two that follow each other.
// Returns the first.
Result<std::uint16_t> bind_ports(ZmqContext& context, const ZmqWireOptions& options,
                                 const ResolvedAddress& resolved, std::uint16_t wanted,
                                 Bound& bound) {
  for (int tries = 1;; ++tries) {
    ASSIGN_OR_RETURN(const std::string control,
                     bind_socket(context, options, SocketId::kControl,
                                 endpoint_with_port(resolved, wanted), bound));
    const std::uint16_t port = port_of(control);
    // 0 after the last one, which is then any port.
    const auto next = static_cast<std::uint16_t>(port + 1);
    const auto data =
        bind_socket(context, options, SocketId::kData, endpoint_with_port(resolved, next), bound);
    if (data.ok() && next != 0) return port;
    const bool is_last = wanted != 0 || tries >= kMostTries;
    if (is_last && !data.ok()) return data.error();
  }
}

// An address that others reach needs keys. One for every interface cannot be dialed as it is, so
// the bound address has this host's name in its place.
Result<Bound> bind(ZmqContext& context, const ZmqWireOptions& options) {
  ASSIGN_OR_RETURN(Address address, parse_address(options.listen));
  ASSIGN_OR_RETURN(const ResolvedAddress resolved, resolve(address));
  if (!resolved.loopback && !options.keys) {
    return Error{ErrorKind::kUsage,
                 fmt::format("will not listen on {} without keys, since it can be reached from "
                             "other machines; make keys with 'troupe keygen' and name them, or "
                             "listen on 127.0.0.1",
                             address.text())};
  }
  if (address.port == UINT16_MAX) {
    return Error{ErrorKind::kUsage,
                 fmt::format("cannot listen on {}: the port after it is needed too; give one up "
                             "to 65534",
                             address.text())};
  }
  Bound bound;
  if (address.kind == Address::Kind::kIpc) {
    RETURN_IF_ERROR(bind_paths(context, options, address.path, bound));
  } else {
    ASSIGN_OR_RETURN(address.port, bind_ports(context, options, resolved, address.port, bound));
  }
  if (resolved.any) address.host = host_name();
  bound.address = address.text();
  return bound;
}

}  // namespace

Result<std::unique_ptr<ZmqListener>> ZmqListener::open(ZmqContext& context,
                                                       const ZmqWireOptions& options,
                                                       ZmqSink& sink) {
  std::unique_ptr<ZmqListener> listener(new ZmqListener(options, sink));
  ASSIGN_OR_RETURN(Bound bound, bind(context, options));
  for (std::size_t id = 0; id < kSockets; ++id) {
    listener->routers_[id].socket = std::move(bound.sockets[id]);
  }
  listener->address_ = std::move(bound.address);
  return listener;
}

ZmqListener::~ZmqListener() {
  for (auto& [token, peer] : connections_) {
    if (peer.id.number != 0) peer.traffic.say_bye(out_of(token));
  }
}

void ZmqListener::add_to(std::vector<ZmqSocket*>& sockets) {
  for (Router& router : routers_) sockets.push_back(router.socket.get());
}

void ZmqListener::serve(TimePoint now) {
  for (Router& router : routers_) {
    if (router.socket->has_events()) read_events(router);
  }
  if (router(SocketId::kControl).socket->readable()) {
    read_up_to(SocketId::kControl, kManyMessages, now);
  }
  if (router(SocketId::kData).socket->readable()) read_up_to(SocketId::kData, kFewMessages, now);
  if (options_.ucx != nullptr) serve_ucx(now);
  if (!lost_.empty()) end_lost(now);
  end_late(now);
}

void ZmqListener::serve_ucx(TimePoint now) {
  for (auto peer = connections_.begin(); peer != connections_.end();) {
    const auto here = peer++;
    Connection& state = here->second;
    if (state.id.number == 0) continue;
    const auto ended = state.traffic.take_ucx(state.id, now);
    if (ended) {
      end_as(here, *ended);
    } else if (state.deadline() != TimePoint::max()) {
      pending_.insert(here->first);
    }
  }
}

void ZmqListener::read_up_to(SocketId id, int most, TimePoint now) {
  for (int i = 0; i < most && read_message(id, now); ++i) {
  }
}

void ZmqListener::read_events(Router& router) {
  ZmqEvent event;
  while (router.socket->next_event(event)) {
    if (event.what != ZmqEvent::What::kDisconnected) continue;
    const auto route = router.routes.find(event.descriptor);
    if (route == router.routes.end()) continue;
    lost_.push_back(route->second);
    router.routes.erase(route);
  }
}

// The first frame is the route, by which a message is told apart before anything in it is read.
bool ZmqListener::read_message(SocketId id, TimePoint now) {
  if (!router(id).socket->receive(frames_)) return false;
  const auto route = Route::from_text(frames_[0].bytes());
  if (!route || route->socket != id) {
    sink_.dropped();
    return true;
  }
  const std::span<Buffer> frames = std::span(frames_).subspan(1);
  const auto peer = connections_.find(route->token);
  if (peer != connections_.end() && peer->second.attached[static_cast<std::size_t>(id)]) {
    take_of_peer(peer, id, frames, now);
  } else if (frames.size() == 1) {
    take_attach(*route, frames[0].bytes(), now);
  } else {
    sink_.dropped();  // the socket knows the origin of a last frame only
  }
  return true;
}

// The attach of either socket may come first and begins the connection, which opens with the
// second. Only that of control tells of shared memory.
void ZmqListener::take_attach(const Route& route, std::span<const std::byte> frame, TimePoint now) {
  const auto version = version_of(frame);
  if (version && *version != kProtocolVersion) {
    options_.log.warning(
        fmt::format("refused a peer that speaks version {} of the protocol; this "
                    "end speaks {}: run the same release on both",
                    *version, kProtocolVersion));
    refuse(route, fmt::format("it speaks version {} of the protocol and this end {}; run the same "
                              "release of Troupe on both",
                              kProtocolVersion, *version));
    return sink_.dropped();
  }
  const auto attach = read_attach(frame);
  if (!attach || attach->route != route) return sink_.dropped();
  const ZmqOrigin origin = router(route.socket).socket->origin();
  auto peer = connections_.find(route.token);
  if (peer == connections_.end()) {
    if (connections_.size() - tokens_.size() >= kMostUnopened) return sink_.dropped();
    const ConnectionInfo info{false, origin.address, origin.key, origin.key_expired};
    const TimePoint open_by = now + options_.attach_within;
    peer =
        connections_
            .emplace(
                route.token,
                Connection{
                    {}, info, {}, {}, {}, open_by, ZmqTraffic(options_, sink_, route.token, false)})
            .first;
    pending_.insert(route.token);
  }
  Connection& state = peer->second;
  // Both sockets belong to one process.
  if (state.info.key != origin.key) return sink_.dropped();
  if (route.socket == SocketId::kControl) {
    state.info.address = origin.address == "ipc" ? address_ : origin.address;
    state.offer = attach->offer;
    state.ucx = attach->ucx;
  }
  note_descriptor(route, origin.descriptor);
  state.attached[static_cast<std::size_t>(route.socket)] = true;
  if (state.attached[0] && state.attached[1]) open_peer(peer);
}

void ZmqListener::note_descriptor(const Route& route, int descriptor) {
  Router& owner = router(route.socket);
  // The monitor may know of an earlier connection with this descriptor. It may also know of this
  // one, which then died before its attach was read: the deadline ends it, or the dialer has
  // noticed and ends its other socket too.
  read_events(owner);
  const auto [known, fresh] = owner.routes.emplace(descriptor, route);
  if (fresh) return;
  lost_.push_back(known->second);
  known->second = route;
}

// The welcome leaves before the sink hears of the connection, so it stands before all that the
// driver sends.
void ZmqListener::open_peer(Connections::iterator peer) {
  Connection& state = peer->second;
  const auto [host, loopback] = host_of(state.info.address);
  if (const std::string why = state.traffic.open_ucx(state.ucx, host, loopback); !why.empty()) {
    options_.log.warning(fmt::format("refused {}: {}", state.info.address, why));
    refuse({peer->first, SocketId::kControl}, why);
    return end(peer, why);
  }
  const bool sees = state.traffic.open_offer(state.offer);
  const Buffer frames[] = {write_welcome({sees, state.traffic.offer(), state.traffic.ucx()})};
  router(SocketId::kControl).socket->send(Route{peer->first, SocketId::kControl}.text(), frames);
  state.id = sink_.next_id();
  tokens_.emplace(state.id, peer->first);
  sink_.connected(state.id, state.info);
}

void ZmqListener::take_of_peer(Connections::iterator peer, SocketId id, std::span<Buffer> frames,
                               TimePoint now) {
  Connection& state = peer->second;
  // One socket has attached and the other one has not: nothing is said yet.
  if (state.id.number == 0) return sink_.dropped();
  const auto ended = state.traffic.take(state.id, id, frames, now);
  if (ended) return end_as(peer, *ended);
  if (state.deadline() != TimePoint::max()) pending_.insert(peer->first);
}

void ZmqListener::end_as(Connections::iterator peer, const ZmqTraffic::End& ended) {
  if (!ended.accusation.empty()) refuse({peer->first, SocketId::kControl}, ended.accusation);
  end(peer, ended.why);
}

void ZmqListener::refuse(const Route& route, std::string_view why) {
  const Buffer frames[] = {write_refuse(why)};
  router(route.socket).socket->send(route.text(), frames);
}

void ZmqListener::end(Connections::iterator peer, std::string why) {
  if (peer->second.id.number != 0) {
    sink_.disconnected(peer->second.id, {ErrorKind::kLostPeers, std::move(why)});
    tokens_.erase(peer->second.id);
  }
  connections_.erase(peer);
}

void ZmqListener::end_lost(TimePoint now) {
  // All that arrived before the end is handed on before it.
  read_up_to(SocketId::kControl, kManyMessages, now);
  read_up_to(SocketId::kData, kManyMessages, now);
  for (const Route& route : std::exchange(lost_, {})) {
    const auto peer = connections_.find(route.token);
    if (peer == connections_.end()) continue;
    if (peer->second.id.number != 0 && peer->second.traffic.said_bye(route.socket)) continue;
    end(peer, "the connection was lost: the other end or the network is gone");
  }
}

void ZmqListener::end_late(TimePoint now) {
  std::erase_if(pending_, [&](const Token& token) {
    const auto peer = connections_.find(token);
    if (peer == connections_.end() || peer->second.deadline() == TimePoint::max()) return true;
    if (now < peer->second.deadline()) return false;
    end(peer, "the other end closed the connection");
    return true;
  });
}

TimePoint ZmqListener::next_deadline() const {
  TimePoint next = TimePoint::max();
  for (const Token& token : pending_) {
    const auto peer = connections_.find(token);
    if (peer != connections_.end()) next = std::min(next, peer->second.deadline());
  }
  return next;
}

ZmqListener::Connections::iterator ZmqListener::find(ConnectionId connection) {
  const auto token = tokens_.find(connection);
  return token == tokens_.end() ? connections_.end() : connections_.find(token->second);
}

ZmqTraffic::Out ZmqListener::out_of(const Token& token) {
  return [this, token](SocketId id, std::span<const Buffer> frames) {
    const Route route{token, id};
    if (!router(id).socket->send(route.text(), frames)) lost_.push_back(route);
  };
}

bool ZmqListener::send(ConnectionId connection, Lane lane, const Packet& packet) {
  const auto peer = find(connection);
  if (peer == connections_.end()) return false;
  peer->second.traffic.send(lane, packet, out_of(peer->first));
  return true;
}

// The peer is forgotten at once. Messages of its that still come belong to no connection and are
// dropped.
bool ZmqListener::close(ConnectionId connection) {
  const auto peer = find(connection);
  if (peer == connections_.end()) return false;
  peer->second.traffic.say_bye(out_of(peer->first));
  tokens_.erase(connection);
  connections_.erase(peer);
  return true;
}

}  // namespace troupe::runtime

#include "runtime/transport/zmq_dialer.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/descriptor.h"

namespace troupe::runtime {
namespace {

constexpr Duration kFirstRest = std::chrono::milliseconds(50);
constexpr Duration kLongestRest = std::chrono::seconds(1);
// A listener that cannot read what the dialer encrypted hangs up without a word. So does one that
// is being stopped, but not so many times.
constexpr int kMostFailedHandshakes = 5;

}  // namespace

ZmqDialer::ZmqDialer(ZmqContext& context, const ZmqWireOptions& options, ZmqSink& sink,
                     ConnectionId id, DialedAddress to)
    : context_(context), options_(options), sink_(sink), id_(id), to_(std::move(to)) {}

Result<std::unique_ptr<ZmqDialer>> ZmqDialer::begin(ZmqContext& context,
                                                    const ZmqWireOptions& options, ZmqSink& sink,
                                                    ConnectionId id, DialedAddress to) {
  std::unique_ptr<ZmqDialer> dialer(new ZmqDialer(context, options, sink, id, std::move(to)));
  RETURN_IF_ERROR(dialer->attempt(options.clock->now()));
  return dialer;
}

ZmqDialer::~ZmqDialer() { part(); }

void ZmqDialer::part() {
  if (state_ == State::kParted) return;
  drop_if_lost();
  if (state_ == State::kOpen) {
    traffic_->say_bye(out());
  } else {
    for (auto& socket : sockets_) {
      if (socket) socket->forget();
    }
  }
  state_ = State::kParted;
}

void ZmqDialer::drop_if_lost() {
  bool lost = false;
  ZmqEvent event;
  for (auto& socket : sockets_) {
    while (socket && socket->next_event(event)) {
      lost |= event.what == ZmqEvent::What::kDisconnected;
    }
  }
  for (auto& socket : sockets_) {
    if (lost && socket) socket->forget();
  }
}

Result<void> ZmqDialer::attempt(TimePoint now) {
  ++attempts_;
  token_ = random_token();
  traffic_.emplace(options_, sink_, token_, true);
  state_ = State::kAttaching;
  begun_ = now;
  // The monitor tells when nobody listens there. From the attach on, time counts.
  deadline_ = TimePoint::max();
  lacks_data_ = false;
  // Both sockets are made although one cannot connect: there are both, or none.
  bool connecting = true;
  for (const SocketId id : {SocketId::kControl, SocketId::kData}) {
    ASSIGN_OR_RETURN(const bool this_one, connect(id));
    connecting = connecting && this_one;
  }
  if (!connecting) rest(now);
  return {};
}

Result<bool> ZmqDialer::connect(SocketId id) {
  ZmqSocketOptions socket;
  socket.role = ZmqSocketOptions::Role::kDealer;
  socket.route = Route{token_, id}.text();
  socket.most_frame_bytes = most_frame_bytes_of(id);
  socket.linger = options_.linger;
  if (!to_.server_key.empty()) socket.keys = options_.keys;
  socket.server_key = to_.server_key;
  socket.handshake_within = options_.attach_within;
  ASSIGN_OR_RETURN(auto made, ZmqSocket::open(context_, socket));
  std::string endpoint = to_.resolved.endpoint;
  if (to_.address.kind == Address::Kind::kIpc) {
    endpoint = path_of(endpoint, id);
  } else if (id == SocketId::kData) {
    endpoint = endpoint_with_port(to_.resolved, static_cast<std::uint16_t>(to_.address.port + 1));
  }
  const auto connecting = made->connect(endpoint);
  sockets_[static_cast<std::size_t>(id)] = std::move(made);
  if (!connecting.ok()) options_.log.debug(connecting.error().message);
  return connecting.ok();
}

void ZmqDialer::drop_sockets() {
  for (auto& socket : sockets_) {
    if (socket) socket->forget();
    socket.reset();
  }
  traffic_.reset();
}

void ZmqDialer::rest(TimePoint now) {
  drop_sockets();
  state_ = State::kResting;
  deadline_ = now + std::min(kLongestRest, kFirstRest * (1 << std::min(attempts_ - 1, 10)));
}

void ZmqDialer::end(std::string why, ErrorKind kind) {
  drop_sockets();
  state_ = State::kEnded;
  sink_.disconnected(id_, {kind, std::move(why)});
}

// The sockets stay for a while: if one were gone, the peer might see that first.
void ZmqDialer::accuse(const ZmqTraffic::End& end, TimePoint now) {
  const Buffer frames[] = {write_refuse(end.accusation)};
  socket(SocketId::kControl).send({}, frames);
  state_ = State::kAccusing;
  deadline_ = now + options_.linger;
  sink_.disconnected(id_, {ErrorKind::kLostPeers, end.why});
}

void ZmqDialer::ignore_all(TimePoint now) {
  ZmqEvent event;
  std::vector<Buffer> frames;
  for (auto& socket : sockets_) {
    while (socket->next_event(event)) {
    }
    for (int i = 0; i < kFewMessages && socket->receive(frames); ++i) {
    }
  }
  if (now < deadline_) return;
  for (auto& socket : sockets_) socket.reset();
  traffic_.reset();
  state_ = State::kEnded;
}

void ZmqDialer::add_to(std::vector<ZmqSocket*>& sockets) {
  for (auto& socket : sockets_) {
    if (socket) sockets.push_back(socket.get());
  }
}

void ZmqDialer::serve(TimePoint now) {
  if (state_ == State::kEnded) return;
  if (state_ == State::kAccusing) return ignore_all(now);
  if (now >= deadline_) {
    if (state_ == State::kResting) {
      const auto begun = attempt(now);
      if (!begun.ok()) end(begun.error().message, begun.error().kind);
      return;
    }
    if (state_ == State::kOpen) return end("the other end closed the connection");
    return rest(now);
  }
  if (state_ == State::kResting) return;
  for (const SocketId id : {SocketId::kControl, SocketId::kData}) {
    if (socket(id).has_events() && !read_events(id, now)) return;
  }
  if (state_ == State::kAttaching) read_answer();
  if (state_ == State::kOpen) read_open(false, now);
}

bool ZmqDialer::read_events(SocketId id, TimePoint now) {
  ZmqEvent event;
  while (socket(id).next_event(event)) {
    if (event.what == ZmqEvent::What::kReady) {
      if (lacks_data_) {
        rest(now);
        return false;
      }
      attach(id);
    } else if (!socket_failed(id, event.what, now)) {
      return false;
    }
  }
  return true;
}

// While it attaches, a lost socket ends the attempt and not the dial. Where nobody listens for
// data, the control socket still tells who listens there, so that one is waited for. Once the
// connection is open a lost socket ends that, unless the other end has said goodbye on this socket.
bool ZmqDialer::socket_failed(SocketId id, ZmqEvent::What what, TimePoint now) {
  // A refusal may stand on the control socket, before the other end hung up.
  if (state_ == State::kAttaching && what == ZmqEvent::What::kDisconnected) read_answer();
  if (state_ == State::kOpen) {
    // All that arrived before the end is handed on before it.
    read_open(true, now);
    if (state_ != State::kOpen) return false;
    if (traffic_->said_bye(id)) return true;
    end("the connection was lost: the other end or the network is gone");
  } else if (state_ == State::kAttaching) {
    if (auto failure = last_failure(what, now)) {
      end(std::move(failure->message), failure->kind);
    } else if (id == SocketId::kData && what == ZmqEvent::What::kNotReached &&
               deadline_ == TimePoint::max()) {
      lacks_data_ = true;
      return true;
    } else {
      rest(now);
    }
  }
  return false;
}

std::optional<Error> ZmqDialer::last_failure(ZmqEvent::What what, TimePoint now) {
  const std::string at = to_.address.text();
  const bool encrypts = !to_.server_key.empty();
  const auto lost = [](std::string why) { return Error{ErrorKind::kLostPeers, std::move(why)}; };
  if (what == ZmqEvent::What::kRefused) {
    // The key of a token must not end on a list, where it would be good for ever.
    return lost(options_.token_from.empty()
                    ? fmt::format("{} does not know this node's key: add {} to its allow-list", at,
                                  options_.keys ? options_.keys->public_key : "it")
                    : fmt::format("{} does not take the token of {}: it has expired, or belongs to "
                                  "other keys; ask for a new one, which 'troupe token DIR' makes "
                                  "there",
                                  at, options_.token_from));
  }
  if (what == ZmqEvent::What::kOtherMechanism) {
    return lost(encrypts ? fmt::format("{} does not encrypt and this end has to: give the other "
                                       "end keys, or dial the right address",
                                       at)
                         : fmt::format("{} takes encrypted connections only: name this node's keys "
                                       "and the key of the other end",
                                       at));
  }
  // The library does not tell a peer that hangs up from one that has not answered in time, which is
  // stopped or overloaded and refuses nothing.
  const bool was_in_time = now - begun_ < options_.attach_within * 9 / 10;
  if (what == ZmqEvent::What::kFailed && was_in_time &&
      ++failed_handshakes_ >= kMostFailedHandshakes) {
    return lost(encrypts ? fmt::format("{} hangs up during the handshake: it does not encrypt, or "
                                       "it has another key than {}; compare that with the public "
                                       "key of the node that listens there",
                                       at, to_.server_key)
                         : fmt::format("{} hangs up during the handshake: it takes encrypted "
                                       "connections only, or it is not Troupe that listens there",
                                       at));
  }
  if (what == ZmqEvent::What::kNotReached && !descriptors_left(1)) return out_of_descriptors();
  return std::nullopt;
}

void ZmqDialer::attach(SocketId id) {
  if (deadline_ == TimePoint::max()) deadline_ = options_.clock->now() + options_.attach_within;
  Attach attach;
  attach.route = {token_, id};
  if (id == SocketId::kControl) {
    attach.offer = traffic_->offer();
    attach.ucx = traffic_->ucx();
  }
  const Buffer frames[] = {write_attach(attach)};
  socket(id).send({}, frames);
}

// Another version is found first, as it makes all else unreadable. A message that is no answer is
// dropped and counted, and the wait goes on.
void ZmqDialer::read_answer() {
  std::vector<Buffer> frames;
  while (state_ == State::kAttaching && socket(SocketId::kControl).receive(frames)) {
    const auto frame = frames.empty() ? std::span<const std::byte>() : frames[0].bytes();
    const auto version = version_of(frame);
    if (version && *version != kProtocolVersion) {
      return end(fmt::format("{} speaks version {} of the protocol and this end {}: run the same "
                             "release of Troupe on both",
                             to_.address.text(), *version, kProtocolVersion),
                 ErrorKind::kUsage);
    }
    if (kind_of(frame) == FrameKind::kRefuse) {
      return end(
          fmt::format("{} refused the connection: {}", to_.address.text(), read_refuse(frame)));
    }
    const auto welcome = read_welcome(frame);
    if (!welcome) {
      sink_.dropped();
      continue;
    }
    if (std::string why =
            traffic_->open_ucx(welcome->ucx, to_.resolved.host, to_.resolved.loopback);
        !why.empty()) {
      return end(fmt::format("{}: {}", to_.address.text(), why));
    }
    state_ = State::kOpen;
    deadline_ = TimePoint::max();
    traffic_->peer_sees_offer(welcome->sees_offer);
    const Buffer ready[] = {write_ready({traffic_->open_offer(welcome->offer)})};
    socket(SocketId::kControl).send({}, ready);
    sink_.connected(id_, {true, to_.address.text(), to_.server_key});
  }
}

// All of control is read each time, and only some data, so that much data never stands before
// control.
void ZmqDialer::read_open(bool everything, TimePoint now) {
  std::vector<Buffer> frames;
  for (const SocketId id : {SocketId::kControl, SocketId::kData}) {
    if (!everything && !socket(id).readable()) continue;
    const int most = everything || id == SocketId::kControl ? kManyMessages : kFewMessages;
    for (int i = 0; i < most && socket(id).receive(frames); ++i) {
      const auto ended = traffic_->take(id_, id, frames, now);
      if (!ended) continue;
      return ended->accusation.empty() ? end(ended->why) : accuse(*ended, now);
    }
  }
  if (const auto ended = traffic_->take_ucx(id_, now)) {
    return ended->accusation.empty() ? end(ended->why) : accuse(*ended, now);
  }
  deadline_ = traffic_->parting_by();
}

ZmqTraffic::Out ZmqDialer::out() {
  return [this](SocketId id, std::span<const Buffer> frames) { socket(id).send({}, frames); };
}

void ZmqDialer::send(Lane lane, const Packet& packet) {
  if (state_ == State::kOpen) traffic_->send(lane, packet, out());
}

}  // namespace troupe::runtime

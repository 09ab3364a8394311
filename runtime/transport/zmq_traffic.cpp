#include "runtime/transport/zmq_traffic.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/overloaded.h"

namespace troupe::runtime {

void ZmqSink::tell(WireEvents& driver) {
  while (!happened_.empty()) {
    Event event = std::move(happened_.front());
    happened_.pop_front();
    const ConnectionId id = event.id;
    if (!known_.contains(id)) continue;
    std::visit(Overloaded{[&](const ConnectionInfo& info) { driver.connected(id, info); },
                          [&](Arrived& arrived) {
                            driver.arrived(id, arrived.lane, std::move(arrived.packet));
                          },
                          [&](Arriving) { driver.arriving(id); },
                          [&](const Error& why) {
                            known_.erase(id);
                            driver.disconnected(id, why);
                          }},
               event.what);
  }
}

namespace {

bool uses_ucx(const ZmqWireOptions& options) {
  return options.ucx != nullptr && options.ucx->is_open();
}

PacketAssembler assembler(Lane lane, bool over_ucx, ZmqSink& sink) {
  return {over_ucx && lane != Lane::kControl ? kUcxCuts.chunk_bytes : chunk_bytes_of(lane),
          sink.memory};
}

}  // namespace

ZmqTraffic::ZmqTraffic(const ZmqWireOptions& options, ZmqSink& sink, const Token& token,
                       bool is_dialer)
    : options_(options),
      sink_(sink),
      lanes_{assembler(Lane::kControl, uses_ucx(options), sink),
             assembler(Lane::kData, uses_ucx(options), sink),
             assembler(Lane::kMetrics, uses_ucx(options), sink)} {
  if (uses_ucx(options)) {
    stream_ = options.ucx->stream(token, is_dialer, sink.memory);
    return;
  }
  if (!options.shared_memory) return;
  auto made = SharedSender::create(options.shared_bytes, random_token());
  if (made.ok()) {
    ours_ = std::move(made).value();
  } else {
    options.log.warning(made.error().message + "; payloads travel through the sockets");
  }
}

const SharedOffer& ZmqTraffic::offer() const {
  static const SharedOffer kNone;
  return ours_ != nullptr ? ours_->offer() : kNone;
}

bool ZmqTraffic::open_offer(const SharedOffer& offer) {
  if (!options_.shared_memory || offer.bytes == 0) return false;
  auto opened = SharedReceiver::open(offer);
  if (!opened.ok()) {
    options_.log.debug(opened.error().message + "; payloads travel through the sockets");
    return false;
  }
  theirs_ = std::move(opened).value();
  return true;
}

void ZmqTraffic::peer_sees_offer(bool sees) {
  peer_sees_ours_ = sees;
  if (!sees) ours_.reset();
}

const UcxOffer& ZmqTraffic::ucx() const {
  static const UcxOffer kNone;
  return stream_ != nullptr ? options_.ucx->offer() : kNone;
}

std::string ZmqTraffic::open_ucx(const UcxOffer& peer, const std::string& host, bool loopback) {
  if (stream_ == nullptr || peer.address.empty()) return "";
  if (!options_.ucx->may_reach(host, loopback)) {
    return fmt::format(
        "data over UCX are not encrypted, and {} is not of the network that they "
        "may cross; name one that it is of as cluster.fabric_network",
        host);
  }
  const auto connected = stream_->connect(peer);
  return connected.ok() ? "" : connected.error().message;
}

void ZmqTraffic::send(Lane lane, const Packet& packet, const Out& out) {
  if (stream_ != nullptr && lane != Lane::kControl) {
    lacks_ucx_ |= !stream_->is_connected();
    if (lacks_ucx_) return;
    sink_.counters.payloads_over_ucx += packet.payloads.size();
    cut(packet, lane, kUcxCuts, nullptr, 0,
        [&](std::span<const Buffer> frames) { stream_->send(frames); });
    return;
  }
  const auto on_socket = [&](std::span<const Buffer> frames) { out(socket_of(lane), frames); };
  SharedSender* shared = peer_sees_ours_ ? ours_.get() : nullptr;
  sink_.counters.payloads_shared +=
      cut(packet, lane, cuts_of(lane), shared, options_.shared_from_bytes, on_socket);
}

void ZmqTraffic::say_bye(const Out& out) {
  const Buffer bye[] = {write_bare(FrameKind::kBye)};
  if (stream_ != nullptr && stream_->is_connected()) {
    stream_->send(bye);
    stream_->part(options_.clock->now() + options_.linger);
  }
  out(SocketId::kControl, bye);
  out(SocketId::kData, bye);
}

std::optional<ZmqTraffic::End> ZmqTraffic::take(ConnectionId id, SocketId socket,
                                                std::span<Buffer> frames, TimePoint now) {
  return take_by(socket == SocketId::kControl ? Way::kControl : Way::kData, id, frames, now);
}

// All that came before a failure is handed on before it.
std::optional<ZmqTraffic::End> ZmqTraffic::take_ucx(ConnectionId id, TimePoint now) {
  if (stream_ == nullptr) return std::nullopt;
  if (lacks_ucx_) {
    const std::string why =
        "has data for the other over UCX and the other one takes none: "
        "cluster.fabric has to be the same on both";
    return End{"this end " + why, "the other end " + why};
  }
  std::vector<Buffer> frames;
  while (stream_->receive(frames)) {
    if (auto ended = take_by(Way::kUcx, id, frames, now)) return ended;
  }
  if (byes_[static_cast<std::size_t>(Way::kUcx)]) {
    stream_->end_news();
    return std::nullopt;
  }
  const std::string failure = stream_->failure();
  if (failure.empty()) return std::nullopt;
  return End{fmt::format("the connection over UCX was lost: {}", failure), ""};
}

bool ZmqTraffic::is_parted() const {
  const bool over_ucx = stream_ != nullptr && stream_->is_connected();
  return byes_[0] && byes_[1] && (!over_ucx || byes_[2]);
}

std::optional<ZmqTraffic::End> ZmqTraffic::take_by(Way way, ConnectionId id,
                                                   std::span<Buffer> frames, TimePoint now) {
  if (!frames.empty() && kind_of(frames[0].bytes()) == FrameKind::kRefuse) {
    return End{
        fmt::format("the other end refused the connection: {}", read_refuse(frames[0].bytes())),
        ""};
  }
  if (const std::string wrong = read(id, way, frames); !wrong.empty()) {
    sink_.dropped();
    stream_.reset();
    return End{fmt::format("the other end sent {}", wrong), fmt::format("this end sent {}", wrong)};
  }
  if (is_parted()) {
    // The endpoint stays until the library has sent all.
    if (stream_ != nullptr) stream_->part(now + options_.linger);
    return End{"the other end closed the connection", ""};
  }
  // The first one sets the time for the others.
  if (std::ranges::count(byes_, true) > 0 && parting_by_ == TimePoint::max()) {
    parting_by_ = now + options_.linger;
  }
  return std::nullopt;
}

// The listener learns by kReady whether the dialer sees its memory, which the dialer learns of the
// other by the welcome. A part of a packet is told too: a peer that sends a large one is not
// silent.
std::string ZmqTraffic::read(ConnectionId id, Way way, std::span<Buffer> frames) {
  if (frames.empty()) return "a message of too many frames";
  bool& said_bye = byes_[static_cast<std::size_t>(way)];
  if (said_bye) return "a message after its goodbye";
  const auto kind = kind_of(frames[0].bytes());
  if (kind == FrameKind::kBye) {
    said_bye = true;
    return "";
  }
  if (kind == FrameKind::kReady && way == Way::kControl && !peer_sees_ours_) {
    const auto ready = read_ready(frames[0].bytes());
    if (!ready) return "a damaged answer";
    peer_sees_offer(ready->sees_offer);
    return "";
  }
  if (kind != FrameKind::kPacket && kind != FrameKind::kChunk) return "a message of another kind";
  const Lane lane = lane_of(frames[0].bytes());
  if (way == Way::kData && stream_ != nullptr) {
    return "data over ZeroMQ, and the other end takes them over UCX alone: cluster.fabric has to "
           "be the same on both";
  }
  if ((socket_of(lane) == SocketId::kControl) != (way == Way::kControl)) {
    return "a message of another lane";
  }
  PacketAssembler& assembler = lanes_[index_of(lane)];
  if (std::string wrong = assembler.take(frames, theirs_.get()); !wrong.empty()) return wrong;
  if (auto packet = assembler.next()) {
    sink_.arrived(id, lane, std::move(*packet));
  } else {
    sink_.arriving(id);
  }
  return "";
}

}  // namespace troupe::runtime

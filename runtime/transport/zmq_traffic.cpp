#include "runtime/transport/zmq_traffic.h"

#include <fmt/format.h>

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

ZmqTraffic::ZmqTraffic(const ZmqWireOptions& options, ZmqSink& sink)
    : options_(options),
      sink_(sink),
      lanes_{PacketAssembler(Lane::kControl, sink.memory),
             PacketAssembler(Lane::kData, sink.memory),
             PacketAssembler(Lane::kMetrics, sink.memory)} {
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

void ZmqTraffic::send(Lane lane, const Packet& packet, const Out& out) {
  const auto on_socket = [&](std::span<const Buffer> frames) { out(socket_of(lane), frames); };
  SharedSender* shared = peer_sees_ours_ ? ours_.get() : nullptr;
  sink_.counters.payloads_shared +=
      cut(packet, lane, shared, options_.shared_from_bytes, on_socket);
}

void ZmqTraffic::say_bye(const Out& out) const {
  const Buffer bye[] = {write_bare(FrameKind::kBye)};
  out(SocketId::kControl, bye);
  out(SocketId::kData, bye);
}

std::optional<ZmqTraffic::End> ZmqTraffic::take(ConnectionId id, SocketId socket,
                                                std::span<Buffer> frames, TimePoint now) {
  if (!frames.empty() && kind_of(frames[0].bytes()) == FrameKind::kRefuse) {
    return End{
        fmt::format("the other end refused the connection: {}", read_refuse(frames[0].bytes())),
        ""};
  }
  if (const std::string wrong = read(id, socket, frames); !wrong.empty()) {
    sink_.dropped();
    return End{fmt::format("the other end sent {}", wrong), fmt::format("this end sent {}", wrong)};
  }
  if (byes_[0] && byes_[1]) return End{"the other end closed the connection", ""};
  // The first one sets the time for the other.
  if ((byes_[0] || byes_[1]) && parting_by_ == TimePoint::max()) {
    parting_by_ = now + options_.linger;
  }
  return std::nullopt;
}

// The listener learns by kReady whether the dialer sees its memory, which the dialer learns of the
// other by the welcome. A part of a packet is told too: a peer that sends a large one is not
// silent.
std::string ZmqTraffic::read(ConnectionId id, SocketId socket, std::span<Buffer> frames) {
  if (frames.empty()) return "a message of too many frames";
  if (said_bye(socket)) return "a message after its goodbye";
  const auto kind = kind_of(frames[0].bytes());
  if (kind == FrameKind::kBye) {
    byes_[static_cast<std::size_t>(socket)] = true;
    return "";
  }
  if (kind == FrameKind::kReady && socket == SocketId::kControl && !peer_sees_ours_) {
    const auto ready = read_ready(frames[0].bytes());
    if (!ready) return "a damaged answer";
    peer_sees_offer(ready->sees_offer);
    return "";
  }
  if (kind != FrameKind::kPacket && kind != FrameKind::kChunk) return "a message of another kind";
  const Lane lane = lane_of(frames[0].bytes());
  if (socket_of(lane) != socket) return "a message of another lane";
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

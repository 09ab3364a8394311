#include "runtime/transport/zmq_traffic.h"

#include <algorithm>

namespace troupe::runtime {

ZmqTraffic::ZmqTraffic(const ZmqWireOptions& options, ZmqSink& sink)
    : options_(options), sink_(sink) {
  if (!options.shared_memory) return;
  auto made = SharedSender::create(options.shared_bytes, random_token());
  if (made.ok()) {
    ours_ = std::move(made).value();
  } else {
    options.log.warning(made.error().message + "; payloads travel inline");
  }
}

void ZmqTraffic::agree_on(std::size_t chunk_bytes, int stripes) {
  stripes_ = stripes;
  lanes_.clear();
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const bool data = static_cast<Lane>(lane) == Lane::kData;
    lanes_.emplace_back(
        data ? PacketLimits{chunk_bytes, stripes, options_.shared_from_bytes}
             : PacketLimits{kSmallChunkBytes, 1, options_.shared_from_bytes, kSmallChunkBytes},
        sink_.memory());
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
    options_.log.debug(opened.error().message + "; payloads travel inline");
    return false;
  }
  theirs_ = std::move(opened).value();
  return true;
}

void ZmqTraffic::peer_sees_offer(bool sees) {
  if (!sees) ours_.reset();
}

void ZmqTraffic::send(Lane lane, const Packet& packet, const Out& out) {
  PacketCutter& cutter = lanes_[static_cast<std::size_t>(lane)].cutter;
  const std::uint64_t before = cutter.payloads_shared();
  cutter.cut(packet, ours_.get(),
             [&](int stripe, std::span<const Buffer> frames) { out(lane, stripe, frames); });
  sink_.payload_shared(cutter.payloads_shared() - before);
}

void ZmqTraffic::say_bye(const Out& out) const {
  const Buffer bye[] = {write_bare(FrameKind::kBye)};
  out(Lane::kControl, 0, bye);
  out(Lane::kMetrics, 0, bye);
  for (int stripe = 0; stripe < stripes_; ++stripe) out(Lane::kData, stripe, bye);
}

std::string ZmqTraffic::take(ConnectionId id, Lane lane, int stripe, std::span<Buffer> frames) {
  if (frames.empty()) return "a message of too many frames";
  const auto kind = kind_of(frames[0].bytes());
  if (said_bye(lane, stripe)) return "a message after its goodbye";
  if (kind == FrameKind::kBye) {
    byes_.emplace(lane, stripe);
    return "";
  }
  if (kind != FrameKind::kPacket && kind != FrameKind::kChunk) return "a message of another kind";
  PacketAssembler& assembler = lanes_[static_cast<std::size_t>(lane)].assembler;
  if (std::string wrong = assembler.take(frames, theirs_.get()); !wrong.empty()) {
    return wrong;
  }
  bool whole = false;
  for (; auto packet = assembler.next(); whole = true) sink_.arrived(id, lane, std::move(*packet));
  if (!whole) sink_.arriving(id);
  return "";
}

}  // namespace troupe::runtime

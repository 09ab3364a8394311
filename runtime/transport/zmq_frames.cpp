#include "runtime/transport/zmq_frames.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/base/secret.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {
namespace {

constexpr std::uint32_t kMagic = 0x57505254;  // "TRPW"
constexpr std::size_t kPreludeBytes = 8;
constexpr std::size_t kEntryBytes = 24;
constexpr std::size_t kMostRefusalBytes = 1000;
// A routing id must not begin with a zero, which is how libzmq marks its own.
constexpr std::byte kRouteMark{'T'};

class FrameWriter {
 public:
  FrameWriter(FrameKind kind, std::size_t bytes)
      : frame_(Buffer::allocate(kPreludeBytes + bytes)), at_(frame_.mutable_data()) {
    number<std::uint32_t>(kMagic);
    number<std::uint16_t>(kWireVersion);
    number<std::uint8_t>(static_cast<std::uint8_t>(kind));
    number<std::uint8_t>(0);
  }
  template <std::unsigned_integral T>
  void number(T value) {
    bytes(to_little_endian(value));
  }
  void bytes(std::span<const std::byte> value) { at_ = std::copy(value.begin(), value.end(), at_); }
  Buffer take() {
    CHECK(at_ == frame_.data() + frame_.size(), "a frame of another size than was announced");
    return std::move(frame_);
  }

 private:
  Buffer frame_;
  std::byte* at_;
};

// Reads zeros behind the end, and remembers that it was asked to.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> frame)
      : rest_(frame.subspan(std::min(frame.size(), kPreludeBytes))) {}
  template <class T>
  T number() {
    return static_cast<T>(from_little_endian(take(sizeof(T))));
  }
  Token token() {
    Token token{};
    const auto part = take(token.size());
    std::copy(part.begin(), part.end(), token.begin());
    return token;
  }
  std::size_t left() const { return rest_.size(); }
  bool whole() const { return !short_ && rest_.empty(); }
  bool ok() const { return !short_; }

 private:
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > rest_.size()) {
      short_ = true;
      rest_ = {};
      return {};
    }
    const auto part = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return part;
  }

  std::span<const std::byte> rest_;
  bool short_ = false;
};

constexpr std::size_t kOfferBytes = 32;

void write_offer(FrameWriter& out, const SharedOffer& offer) {
  out.number<std::uint32_t>(offer.process);
  out.number<std::uint32_t>(offer.descriptor);
  out.number<std::uint64_t>(offer.bytes);
  out.bytes(offer.token);
}

SharedOffer read_offer(FrameReader& in) {
  SharedOffer offer;
  offer.process = in.number<std::uint32_t>();
  offer.descriptor = in.number<std::uint32_t>();
  offer.bytes = in.number<std::uint64_t>();
  offer.token = in.token();
  return offer;
}

bool chunk_bytes_fit(std::uint32_t bytes) {
  return bytes >= kLeastChunkBytes && bytes <= kMostChunkBytes;
}

}  // namespace

Token random_token() {
  Token token;
  fill_secret(token);
  return token;
}

std::string StrandName::route() const {
  std::string route(3 + token.size(), '\0');
  route[0] = static_cast<char>(kRouteMark);
  route[1] = static_cast<char>(lane);
  route[2] = static_cast<char>(stripe);
  std::memcpy(route.data() + 3, token.data(), token.size());
  return route;
}

std::optional<StrandName> StrandName::from_route(std::span<const std::byte> route) {
  StrandName name;
  if (route.size() != 3 + name.token.size() || route[0] != kRouteMark) return std::nullopt;
  const auto lane = std::to_integer<std::uint8_t>(route[1]);
  name.stripe = std::to_integer<std::uint8_t>(route[2]);
  if (lane >= kLanes || name.stripe >= kMostStripes) return std::nullopt;
  name.lane = static_cast<Lane>(lane);
  if (name.lane != Lane::kData && name.stripe != 0) return std::nullopt;
  std::copy(route.begin() + 3, route.end(), name.token.begin());
  return name;
}

std::optional<std::uint16_t> version_of(std::span<const std::byte> frame) {
  if (frame.size() < kPreludeBytes) return std::nullopt;
  // The reader skips a prelude; here it is what is read.
  std::array<std::byte, 2 * kPreludeBytes> shifted{};
  std::copy_n(frame.begin(), kPreludeBytes, shifted.begin() + kPreludeBytes);
  FrameReader in(shifted);
  if (in.number<std::uint32_t>() != kMagic) return std::nullopt;
  return in.number<std::uint16_t>();
}

std::optional<FrameKind> kind_of(std::span<const std::byte> frame) {
  if (version_of(frame) != kWireVersion) return std::nullopt;
  const auto kind = std::to_integer<std::uint8_t>(frame[6]);
  if (kind < static_cast<std::uint8_t>(FrameKind::kAttach) ||
      kind > static_cast<std::uint8_t>(FrameKind::kChunk) || frame[7] != std::byte{0}) {
    return std::nullopt;
  }
  return static_cast<FrameKind>(kind);
}

Buffer write_attach(const Attach& attach) {
  FrameWriter out(FrameKind::kAttach, 8 + sizeof(Token) + kOfferBytes);
  out.number<std::uint8_t>(static_cast<std::uint8_t>(attach.strand.lane));
  out.number<std::uint8_t>(attach.strand.stripe);
  out.number<std::uint8_t>(attach.stripes);
  out.number<std::uint8_t>(0);
  out.number<std::uint32_t>(attach.chunk_bytes);
  out.bytes(attach.strand.token);
  write_offer(out, attach.offer);
  return out.take();
}

Buffer write_welcome(const WireWelcome& welcome) {
  FrameWriter out(FrameKind::kWelcome, 9 + kOfferBytes);
  out.number<std::uint16_t>(welcome.data_port);
  out.number<std::uint16_t>(welcome.metrics_port);
  out.number<std::uint32_t>(welcome.chunk_bytes);
  out.number<std::uint8_t>(welcome.sees_offer ? 1 : 0);
  write_offer(out, welcome.offer);
  return out.take();
}

Buffer write_ready(const Ready& ready) {
  FrameWriter out(FrameKind::kReady, 1);
  out.number<std::uint8_t>(ready.sees_offer ? 1 : 0);
  return out.take();
}

Buffer write_bare(FrameKind kind) { return FrameWriter(kind, 0).take(); }

Buffer write_refuse(std::string_view why) {
  why = why.substr(0, kMostRefusalBytes);
  FrameWriter out(FrameKind::kRefuse, why.size());
  out.bytes(std::as_bytes(std::span(why)));
  return out.take();
}

Buffer write_packet(std::uint64_t number, std::span<const PayloadEntry> payloads,
                    std::span<const std::byte> header) {
  CHECK(header.size() <= Packet::kMostHeaderBytes, "the header of a packet is too large");
  CHECK(payloads.size() <= Packet::kMostPayloads, "a packet has too many payloads");
  FrameWriter out(FrameKind::kPacket, 16 + payloads.size() * kEntryBytes + header.size());
  out.number<std::uint64_t>(number);
  out.number<std::uint32_t>(static_cast<std::uint32_t>(payloads.size()));
  out.number<std::uint32_t>(static_cast<std::uint32_t>(header.size()));
  for (const PayloadEntry& entry : payloads) {
    CHECK(entry.bytes <= kMostPayloadBytes, "a payload is too large");
    out.number<std::uint64_t>(entry.bytes);
    out.number<std::uint64_t>(entry.place.offset);
    out.number<std::uint32_t>(entry.place.slot);
    out.number<std::uint32_t>(static_cast<std::uint32_t>(entry.how));
  }
  out.bytes(header);
  return out.take();
}

Buffer write_chunk(const ChunkFrame& chunk) {
  FrameWriter out(FrameKind::kChunk, 16);
  out.number<std::uint64_t>(chunk.number);
  out.number<std::uint32_t>(chunk.payload);
  out.number<std::uint32_t>(chunk.chunk);
  return out.take();
}

std::optional<Attach> read_attach(std::span<const std::byte> frame) {
  if (kind_of(frame) != FrameKind::kAttach) return std::nullopt;
  FrameReader in(frame);
  Attach attach;
  const auto lane = in.number<std::uint8_t>();
  attach.strand.stripe = in.number<std::uint8_t>();
  attach.stripes = in.number<std::uint8_t>();
  const auto zero = in.number<std::uint8_t>();
  attach.chunk_bytes = in.number<std::uint32_t>();
  attach.strand.token = in.token();
  attach.offer = read_offer(in);
  if (!in.whole() || zero != 0 || lane >= kLanes || attach.stripes < 1 ||
      attach.stripes > kMostStripes || attach.strand.stripe >= attach.stripes ||
      !chunk_bytes_fit(attach.chunk_bytes)) {
    return std::nullopt;
  }
  attach.strand.lane = static_cast<Lane>(lane);
  if (attach.strand.lane != Lane::kData && attach.strand.stripe != 0) return std::nullopt;
  return attach;
}

std::optional<WireWelcome> read_welcome(std::span<const std::byte> frame) {
  if (kind_of(frame) != FrameKind::kWelcome) return std::nullopt;
  FrameReader in(frame);
  WireWelcome welcome;
  welcome.data_port = in.number<std::uint16_t>();
  welcome.metrics_port = in.number<std::uint16_t>();
  welcome.chunk_bytes = in.number<std::uint32_t>();
  const auto sees = in.number<std::uint8_t>();
  welcome.offer = read_offer(in);
  if (!in.whole() || sees > 1 || !chunk_bytes_fit(welcome.chunk_bytes)) return std::nullopt;
  welcome.sees_offer = sees == 1;
  return welcome;
}

std::optional<Ready> read_ready(std::span<const std::byte> frame) {
  if (kind_of(frame) != FrameKind::kReady) return std::nullopt;
  FrameReader in(frame);
  const auto sees = in.number<std::uint8_t>();
  if (!in.whole() || sees > 1) return std::nullopt;
  return Ready{sees == 1};
}

std::string read_refuse(std::span<const std::byte> frame) {
  std::string text;
  for (const std::byte byte : frame.subspan(std::min(frame.size(), kPreludeBytes))) {
    if (text.size() == kMostRefusalBytes) break;
    const char character = static_cast<char>(byte);
    text += character >= ' ' && character <= '~' ? character : '?';
  }
  return text;
}

std::optional<PacketFrame> read_packet(const Buffer& frame) {
  if (kind_of(frame.bytes()) != FrameKind::kPacket) return std::nullopt;
  FrameReader in(frame.bytes());
  PacketFrame packet;
  packet.number = in.number<std::uint64_t>();
  const auto count = in.number<std::uint32_t>();
  const auto header_bytes = in.number<std::uint32_t>();
  if (!in.ok() || count > Packet::kMostPayloads || header_bytes > Packet::kMostHeaderBytes ||
      in.left() != count * kEntryBytes + header_bytes) {
    return std::nullopt;
  }
  packet.payloads.resize(count);
  for (PayloadEntry& entry : packet.payloads) {
    entry.bytes = in.number<std::uint64_t>();
    entry.place.offset = in.number<std::uint64_t>();
    entry.place.slot = in.number<std::uint32_t>();
    const auto how = in.number<std::uint32_t>();
    if (entry.bytes > kMostPayloadBytes ||
        how > static_cast<std::uint32_t>(PayloadEntry::How::kShared)) {
      return std::nullopt;
    }
    entry.how = static_cast<PayloadEntry::How>(how);
  }
  packet.header = frame.slice(frame.size() - header_bytes, header_bytes);
  return packet;
}

std::optional<ChunkFrame> read_chunk(std::span<const std::byte> frame) {
  if (kind_of(frame) != FrameKind::kChunk) return std::nullopt;
  FrameReader in(frame);
  ChunkFrame chunk;
  chunk.number = in.number<std::uint64_t>();
  chunk.payload = in.number<std::uint32_t>();
  chunk.chunk = in.number<std::uint32_t>();
  if (!in.whole() || chunk.payload >= Packet::kMostPayloads) return std::nullopt;
  return chunk;
}

}  // namespace troupe::runtime

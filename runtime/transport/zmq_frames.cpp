#include "runtime/transport/zmq_frames.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/base/fields.h"
#include "runtime/base/secret.h"
#include "runtime/transport/packets.h"
#include "runtime/transport/wire_fields.h"

namespace troupe::runtime {

template <class Archive>
void fields(Archive& archive, Like<SharedOffer> auto& offer) {
  archive.number("process", offer.process);
  archive.number("descriptor", offer.descriptor);
  archive.number("bytes", offer.bytes);
  archive.all("token", offer.token);
}

template <class Archive>
void fields(Archive& archive, Like<Route> auto& route) {
  archive.all("token", route.token);
  archive.choice("socket", route.socket, SocketId::kData);
}

template <class Archive>
void fields(Archive& archive, Like<UcxOffer> auto& offer) {
  archive.text("version", offer.version, 16);
  archive.text("address", offer.address, UcxOffer::kMostBytes);
  archive.hash("check", offer.check);
}

template <class Archive>
void fields(Archive& archive, Like<Attach> auto& attach) {
  archive.object("route", attach.route);
  archive.object("offer", attach.offer);
  archive.object("ucx", attach.ucx);
}

template <class Archive>
void fields(Archive& archive, Like<WireWelcome> auto& welcome) {
  archive.flag("sees_offer", welcome.sees_offer);
  archive.object("offer", welcome.offer);
  archive.object("ucx", welcome.ucx);
}

template <class Archive>
void fields(Archive& archive, Like<Ready> auto& ready) {
  archive.flag("sees_offer", ready.sees_offer);
}

template <class Archive>
void fields(Archive& archive, Like<PayloadEntry> auto& entry) {
  archive.number("bytes", entry.bytes, kMostPayloadBytes);
  archive.choice("how", entry.how, PayloadEntry::How::kShared);
  archive.number("slot", entry.place.slot);
  archive.number("offset", entry.place.offset);
}

template <class Archive>
void fields(Archive& archive, Like<PacketFrame> auto& packet) {
  archive.list("payloads", packet.payloads, Packet::kMostPayloads);
}

namespace {

constexpr std::uint32_t kMagic = 0x57505254;  // "TRPW"
constexpr std::size_t kVersionAt = 4, kKindAt = 6, kLaneAt = 7, kPreludeBytes = 8;
constexpr std::size_t kMostRefusalBytes = 1000;
// Encryption adds some bytes to a frame.
constexpr std::size_t kEncryptionBytes = 1024;
// A routing id must not begin with a zero: libzmq marks its own with one.
constexpr std::byte kRouteMark{'T'};

// The largest frame but for a chunk: a header, and as many entries as there can be payloads.
constexpr std::size_t kMostPacketFrameBytes =
    Packet::kMostHeaderBytes + 32 + Packet::kMostPayloads * 32;

// A prelude with the body and the tail behind it.
Buffer frame_of(FrameKind kind, Lane lane, std::span<const std::byte> body,
                std::span<const std::byte> tail = {}) {
  Buffer frame = Buffer::allocate(kPreludeBytes + body.size() + tail.size());
  std::byte* at = frame.mutable_data();
  at = std::ranges::copy(to_little_endian(kMagic), at).out;
  at = std::ranges::copy(to_little_endian(kProtocolVersion), at).out;
  *at++ = static_cast<std::byte>(kind);
  *at++ = static_cast<std::byte>(lane);
  at = std::ranges::copy(body, at).out;
  std::ranges::copy(tail, at);
  return frame;
}

template <class Body>
Buffer header_of(const Body& body) {
  WireWriter out;
  write_fields(out, body);
  return out.take_header();
}

template <class Body>
std::optional<Body> read_body(FrameKind kind, std::span<const std::byte> frame) {
  if (kind_of(frame) != kind) return std::nullopt;
  WireReader in(frame.subspan(kPreludeBytes));
  Body body;
  read_fields(in, body);
  if (!in.finished()) return std::nullopt;
  return body;
}

}  // namespace

std::int64_t most_frame_bytes_of(SocketId id) {
  const std::size_t chunk = id == SocketId::kControl ? kControlChunkBytes : kChunkBytes;
  return static_cast<std::int64_t>(std::max(chunk, kMostPacketFrameBytes) + kEncryptionBytes);
}

std::string path_of(const std::string& control, SocketId id) {
  return id == SocketId::kControl ? control : control + ".data";
}

Token random_token() {
  Token token;
  fill_secret(std::as_writable_bytes(std::span(token)));
  return token;
}

std::string Route::text() const {
  std::string text(2 + sizeof(token), '\0');
  text[0] = static_cast<char>(kRouteMark);
  text[1] = static_cast<char>(socket);
  std::memcpy(text.data() + 2, token.data(), sizeof(token));
  return text;
}

std::optional<Route> Route::from_text(std::span<const std::byte> text) {
  Route route;
  if (text.size() != 2 + sizeof(route.token) || text[0] != kRouteMark) return std::nullopt;
  const auto socket = std::to_integer<std::uint8_t>(text[1]);
  if (socket >= kSockets) return std::nullopt;
  route.socket = static_cast<SocketId>(socket);
  std::memcpy(route.token.data(), text.data() + 2, sizeof(route.token));
  return route;
}

std::optional<std::uint16_t> version_of(std::span<const std::byte> frame) {
  if (frame.size() < kPreludeBytes || from_little_endian(frame.first(kVersionAt)) != kMagic) {
    return std::nullopt;
  }
  return static_cast<std::uint16_t>(
      from_little_endian(frame.subspan(kVersionAt, sizeof(std::uint16_t))));
}

std::optional<FrameKind> kind_of(std::span<const std::byte> frame) {
  if (version_of(frame) != kProtocolVersion) return std::nullopt;
  const auto kind = std::to_integer<std::uint8_t>(frame[kKindAt]);
  const bool known = kind >= static_cast<std::uint8_t>(FrameKind::kAttach) &&
                     kind <= static_cast<std::uint8_t>(FrameKind::kChunk);
  if (!known || std::to_integer<std::size_t>(frame[kLaneAt]) >= kLanes) return std::nullopt;
  return static_cast<FrameKind>(kind);
}

Lane lane_of(std::span<const std::byte> frame) { return static_cast<Lane>(frame[kLaneAt]); }

Buffer write_attach(const Attach& attach) {
  return frame_of(FrameKind::kAttach, Lane::kControl, header_of(attach).bytes());
}

Buffer write_welcome(const WireWelcome& welcome) {
  return frame_of(FrameKind::kWelcome, Lane::kControl, header_of(welcome).bytes());
}

Buffer write_ready(const Ready& ready) {
  return frame_of(FrameKind::kReady, Lane::kControl, header_of(ready).bytes());
}

Buffer write_bare(FrameKind kind, Lane lane) { return frame_of(kind, lane, {}); }

// Plain text, which releases of other versions can read.
Buffer write_refuse(std::string_view why) {
  return frame_of(FrameKind::kRefuse, Lane::kControl,
                  std::as_bytes(std::span(why.substr(0, kMostRefusalBytes))));
}

Buffer write_packet(Lane lane, std::span<const PayloadEntry> payloads,
                    std::span<const std::byte> header) {
  CHECK(header.size() <= Packet::kMostHeaderBytes, "the header of a packet is too large");
  PacketFrame packet;
  packet.payloads.assign(payloads.begin(), payloads.end());
  return frame_of(FrameKind::kPacket, lane, header_of(packet).bytes(), header);
}

std::optional<Attach> read_attach(std::span<const std::byte> frame) {
  return read_body<Attach>(FrameKind::kAttach, frame);
}

std::optional<WireWelcome> read_welcome(std::span<const std::byte> frame) {
  return read_body<WireWelcome>(FrameKind::kWelcome, frame);
}

std::optional<Ready> read_ready(std::span<const std::byte> frame) {
  return read_body<Ready>(FrameKind::kReady, frame);
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
  WireReader in(frame.bytes().subspan(kPreludeBytes));
  PacketFrame packet;
  read_fields(in, packet);
  const std::size_t begin = kPreludeBytes + in.taken();
  if (!in.ok() || frame.size() - begin > Packet::kMostHeaderBytes) return std::nullopt;
  packet.header = frame.slice(begin, frame.size() - begin);
  return packet;
}

}  // namespace troupe::runtime

// Everything that may arrive over the sockets of a connection: the frames of its handshake, read
// one by one, and packets and chunks over several lanes and stripes, in any order, put together.

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "fuzz/memory_meter.h"
#include "fuzz/wire_script.h"
#include "runtime/base/error.h"
#include "runtime/transport/zmq_packets.h"

namespace {

using namespace troupe;
using runtime::Buffer;

// What the assembler of a lane may have for bookkeeping, and the entries of one packet.
constexpr std::size_t kConstantBytes =
    runtime::kLanes * runtime::PacketAssembler::kFreeBytes + (std::size_t{1} << 20);

// What is read must be written again as the same bytes.
void read_handshake(const Buffer& frame) {
  std::optional<Buffer> again;
  if (const auto attach = runtime::read_attach(frame.bytes())) again = write_attach(*attach);
  if (const auto welcome = runtime::read_welcome(frame.bytes())) again = write_welcome(*welcome);
  if (const auto ready = runtime::read_ready(frame.bytes())) again = write_ready(*ready);
  if (const auto chunk = runtime::read_chunk(frame.bytes())) again = write_chunk(*chunk);
  if (again) CHECK(std::ranges::equal(again->bytes(), frame.bytes()), "another frame");
  CHECK(runtime::read_refuse(frame.bytes()).size() <= frame.size(), "a refusal out of nothing");
  if (const auto name = runtime::StrandName::from_route(frame.bytes())) {
    CHECK(name->route().size() == frame.size(), "another route");
  }
}

// The receiving end of a connection.
class Ends {
 public:
  // False: something was wrong, and nothing more is read.
  bool take(fuzz::WireLine& line) {
    if (line.frames.empty()) return true;
    read_handshake(line.frames[0]);
    const auto kind = runtime::kind_of(line.frames[0].bytes());
    if (kind != runtime::FrameKind::kPacket && kind != runtime::FrameKind::kChunk) return true;
    runtime::PacketAssembler& assembler = lanes_[line.lane];
    if (!assembler.take(line.frames, nullptr).empty()) return false;
    while (const auto packet = assembler.next()) check(*packet);
    return true;
  }

 private:
  static void check(const runtime::Packet& packet) {
    CHECK(packet.header.size() <= runtime::Packet::kMostHeaderBytes, "a large header");
    CHECK(packet.payloads.size() <= runtime::Packet::kMostPayloads, "many payloads");
  }
  static runtime::PacketLimits limits(int stripes) {
    return {runtime::kLeastChunkBytes, stripes, SIZE_MAX};
  }

  runtime::RecycledMemory memory_;
  std::array<runtime::PacketAssembler, runtime::kLanes> lanes_ = {
      runtime::PacketAssembler(limits(1), memory_), runtime::PacketAssembler(limits(3), memory_),
      runtime::PacketAssembler(limits(1), memory_)};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::WireScript script(std::as_bytes(std::span(data, size)));
  const fuzz::MemoryMeter meter;
  Ends ends;
  while (auto line = script.next()) {
    if (!ends.take(*line)) break;
    *line = {};
    // The script says how much has arrived by then: chunks are longer than the words for them.
    meter.check(script.arrived(), kConstantBytes);
  }
  return 0;
}

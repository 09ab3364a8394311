// Everything that may arrive over the sockets of a connection: the frames of its handshake, read
// one by one, and packets and chunks of all lanes, in any order, put together.

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

// The entries of one packet in each lane, and room for the reader.
constexpr std::size_t kConstantBytes = std::size_t{4} << 20;

// What is read can be written again.
void read_handshake(const Buffer& frame) {
  std::optional<Buffer> again;
  if (const auto attach = runtime::read_attach(frame.bytes())) again = write_attach(*attach);
  if (const auto welcome = runtime::read_welcome(frame.bytes())) again = write_welcome(*welcome);
  if (const auto ready = runtime::read_ready(frame.bytes())) again = write_ready(*ready);
  // A number may have been written longer than it needs to be.
  if (again) CHECK(again->size() <= frame.size(), "a longer frame");
  CHECK(runtime::read_refuse(frame.bytes()).size() <= frame.size(), "a refusal out of nothing");
  if (const auto route = runtime::Route::from_text(frame.bytes())) {
    CHECK(route->text().size() == frame.size(), "another route");
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

  runtime::RecycledMemory memory_;
  std::array<runtime::PacketAssembler, runtime::kLanes> lanes_ = {
      runtime::PacketAssembler(runtime::Lane::kControl, memory_),
      runtime::PacketAssembler(runtime::Lane::kData, memory_),
      runtime::PacketAssembler(runtime::Lane::kMetrics, memory_)};
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

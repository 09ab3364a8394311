// Anything that may arrive from another process: packets of nodes, with the bodies of actors'
// messages in them. What is accepted must stay the same when it is sent on.

#include <span>
#include <variant>

#include "actors/message_fields.h"
#include "fuzz/frames.h"
#include "fuzz/memory_meter.h"
#include "runtime/base/error.h"
#include "runtime/transport/packets.h"

namespace {

using namespace troupe;

// Lists of small entries are bounded by number, not by the input.
constexpr std::size_t kConstantBytes = std::size_t{1} << 20;

runtime::Packet pack_again(const runtime::AnyPacket& packet, const runtime::WireTypes& types) {
  return std::visit(
      [&types](const auto& kind) {
        if constexpr (requires { runtime::pack(kind, types); }) {
          return runtime::pack(kind, types);
        } else {
          return runtime::pack(kind);
        }
      },
      packet);
}

void check_same(const runtime::Packet& a, const runtime::Packet& b) {
  CHECK(std::ranges::equal(a.header.bytes(), b.header.bytes()), "another header");
  CHECK(a.payloads.size() == b.payloads.size(), "other payloads");
  for (std::size_t i = 0; i < a.payloads.size(); ++i) {
    CHECK(std::ranges::equal(a.payloads[i].bytes(), b.payloads[i].bytes()), "another payload");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const runtime::WireTypes kTypes = [] {
    runtime::WireTypes types;
    actors::add_wire_messages(types);
    return types;
  }();
  const runtime::Packet packet = fuzz::packet_of(std::as_bytes(std::span(data, size)));
  const fuzz::MemoryMeter meter;
  const auto first = runtime::unpack(packet, kTypes);
  meter.check(size, kConstantBytes);
  if (!first.ok()) return 0;
  // The input may have used longer forms than ours; from here on there is one.
  const runtime::Packet sent = pack_again(*first, kTypes);
  const auto second = runtime::unpack(sent, kTypes);
  CHECK(second.ok(), second.error().message);
  check_same(pack_again(*second, kTypes), sent);
  return 0;
}

// What a head answers a process that wants to be a member, as whoever listens at that address may
// have written it. What is accepted must stay the same when it is written again.

#include <span>

#include "fuzz/memory_meter.h"
#include "launch/meeting/invitation.h"
#include "runtime/base/error.h"

namespace {

using namespace troupe;

// Texts are copied once, and every field has a bound of its own.
constexpr std::size_t kConstantBytes = std::size_t{1} << 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = runtime::Buffer::copy_of(std::as_bytes(std::span(data, size)));
  const fuzz::MemoryMeter meter;
  const auto first = launch::unpack_invitation(input);
  meter.check(size, kConstantBytes);
  if (!first.ok()) {
    CHECK(first.error().kind == runtime::ErrorKind::kLostPeers, "an error of another kind");
    CHECK(!first.error().message.empty(), "an error without a word");
    return 0;
  }
  CHECK(first->members > 0, "a run without members");
  const auto second = launch::unpack_invitation(launch::pack_invitation(*first));
  CHECK(second.ok(), second.error().message);
  CHECK(*second == *first, "another invitation");
  return 0;
}

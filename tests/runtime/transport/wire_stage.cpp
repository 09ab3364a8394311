#include "tests/runtime/transport/wire_stage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/base/random.h"

namespace troupe::runtime {
namespace {

// Processes that are killed leave their files to the one that has made the paths up.
struct IpcPaths {
  ~IpcPaths() {
    if (::getpid() != owner) return;
    for (const std::string& path : all) {
      ::unlink(path.c_str());
      ::unlink((path + ".data").c_str());
    }
  }

  const pid_t owner = ::getpid();
  std::vector<std::string> all;
};

}  // namespace

StageEnd::StageEnd(const ZmqWireOptions& options) {
  auto opened = ZmqWire::open(options);
  CHECK(opened.ok(), opened.ok() ? "" : opened.error().message);
  wire = std::move(opened).value();
}

ConnectionId StageEnd::dial(const std::string& address) const {
  const auto dialed = wire->dial(address);
  CHECK(dialed.ok(), dialed.ok() ? "" : dialed.error().message);
  return *dialed;
}

bool play(std::initializer_list<StageEnd*> ends, const std::function<bool()>& condition) {
  const Clock& clock = stage_clock();
  const TimePoint deadline = clock.now() + std::chrono::minutes(1);
  while (!condition()) {
    if (clock.now() > deadline) return false;
    for (StageEnd* end : ends) {
      end->wire->poll(end->diary, clock.now() + std::chrono::milliseconds(1));
    }
  }
  return true;
}

const Clock& stage_clock() {
  static const SteadyClock clock;
  return clock;
}

ZmqWireOptions plain(const std::string& listen) {
  ZmqWireOptions options;
  options.clock = &stage_clock();
  options.listen = listen;
  return options;
}

std::shared_ptr<UcxFabric> open_ucx(const char* transports) {
  ::setenv("UCX_TLS", transports, 1);
  auto fabric = std::make_shared<UcxFabric>(stage_clock());
  const auto opened = fabric->open({});
  CHECK(opened.ok(), opened.ok() ? "" : opened.error().message);
  return fabric;
}

std::string fresh_ipc_address() {
  static IpcPaths paths;
  const std::string path = fmt::format("/tmp/troupe-wire-{}-{}", ::getpid(), paths.all.size());
  paths.all.push_back(path);
  ::unlink(path.c_str());  // of a killed process that had this number before
  return "ipc://" + path;
}

Buffer pattern(std::size_t bytes, std::uint64_t seed) {
  Buffer buffer = Buffer::allocate(bytes);
  std::byte* out = buffer.mutable_data();
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = mix64(seed * 0x9E3779B97F4A7C15ULL + i);
    std::memcpy(out + i, &word, std::min<std::size_t>(8, bytes - i));
  }
  return buffer;
}

bool same_bytes(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

Packet packet_of(std::uint64_t seed, const std::vector<std::size_t>& payload_bytes) {
  Packet packet;
  packet.header = pattern(24 + seed % 100, seed);
  for (std::size_t i = 0; i < payload_bytes.size(); ++i) {
    packet.payloads.push_back(pattern(payload_bytes[i], seed + 1000 * (i + 1)));
  }
  return packet;
}

bool is_packet(const Packet& packet, std::uint64_t seed,
               const std::vector<std::size_t>& payload_bytes) {
  const Packet expected = packet_of(seed, payload_bytes);
  if (!same_bytes(packet.header, expected.header)) return false;
  if (packet.payloads.size() != expected.payloads.size()) return false;
  for (std::size_t i = 0; i < payload_bytes.size(); ++i) {
    if (!same_bytes(packet.payloads[i], expected.payloads[i])) return false;
    if (reinterpret_cast<std::uintptr_t>(packet.payloads[i].data()) % 8 != 0) return false;
  }
  return true;
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

}  // namespace troupe::runtime

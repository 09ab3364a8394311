#pragma once

// Two or more ZmqWires in one thread, and what each was told.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe::runtime {

struct ArrivedPacket {
  ConnectionId connection;
  Lane lane;
  Packet packet;
};

// Writes down what a wire tells.
class WireDiary : public WireEvents {
 public:
  void connected(ConnectionId connection, const ConnectionInfo& info) override {
    infos.emplace(connection, info);
    open.push_back(connection);
  }
  void arrived(ConnectionId connection, Lane lane, Packet packet) override {
    packets.push_back({connection, lane, std::move(packet)});
  }
  void arriving(ConnectionId) override { ++parts; }
  void disconnected(ConnectionId connection, const Error& why) override {
    ends[connection] = why.message;
    kinds[connection] = why.kind;
  }

  std::vector<ConnectionId> open;  // ever
  std::map<ConnectionId, ConnectionInfo> infos;
  std::vector<ArrivedPacket> packets;
  int parts = 0;  // of packets that were not whole by them
  std::map<ConnectionId, std::string> ends;
  std::map<ConnectionId, ErrorKind> kinds;  // of the ends
};

// A wire and its diary.
struct StageEnd {
  explicit StageEnd(const ZmqWireOptions& options);
  ConnectionId dial(const std::string& address) const;

  std::unique_ptr<ZmqWire> wire;
  WireDiary diary;
};

// Polls both until the condition holds. False: it did not within a minute.
bool play(std::initializer_list<StageEnd*> ends, const std::function<bool()>& condition);

const Clock& stage_clock();
// A wire on that clock, which listens there unless it is "", without keys.
ZmqWireOptions plain(const std::string& listen = "");
// An open fabric for one wire, which uses what UCX_TLS would name.
std::shared_ptr<UcxFabric> open_ucx(const char* transports);
// A path for a socket, of this process and not given before.
std::string fresh_ipc_address();
// Bytes that tell every position from its neighbours, and seeds from each other.
Buffer pattern(std::size_t bytes, std::uint64_t seed);
bool same_bytes(const Buffer& a, const Buffer& b);
Packet packet_of(std::uint64_t seed, const std::vector<std::size_t>& payload_bytes);
// What packet_of() makes of these.
bool is_packet(const Packet& packet, std::uint64_t seed,
               const std::vector<std::size_t>& payload_bytes);
int open_descriptors();

}  // namespace troupe::runtime

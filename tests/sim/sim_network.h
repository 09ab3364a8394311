#pragma once

// Wires between simulated processes, all in one thread: packets take random times, connections
// break, directions are cut for a while, processes die. Everything follows from the seed and from
// what is asked of it.
//
// Each lane of a connection is first in, first out; lanes overtake each other freely. What is on
// its way when a connection breaks arrives up to some packet and is lost from there on, for each
// lane apart; both ends hear of it, at different times, and what they send until then is lost too.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/wire.h"
#include "tests/sim/dice.h"

namespace troupe::sim {

using runtime::ConnectionId;
using runtime::Duration;
using runtime::Lane;
using runtime::Packet;
using runtime::TimePoint;

// A process, as the network knows it: its position in the order of SimNetwork::add().
using ProcessId = std::size_t;

struct NetworkOptions {
  // For a packet, and for the way to a listener and back.
  Duration least_delay = std::chrono::microseconds(50);
  Duration most_delay = std::chrono::milliseconds(2);
  // For each direction of a connection; 0: a packet takes its delay, whatever its size.
  double bytes_per_second = 0;
  // Until an end notices that its connection broke.
  Duration least_notice = std::chrono::milliseconds(1);
  Duration most_notice = std::chrono::milliseconds(100);
  // After which a dial that found nobody is tried again.
  Duration dial_again = std::chrono::milliseconds(20);
};

// A packet that one process sent another.
struct Passage {
  ConnectionId connection;
  ProcessId from = 0;
  ProcessId to = 0;
  Lane lane = Lane::kControl;
  const Packet* packet = nullptr;
};

// Told of everything that passes; for checkers and traces.
class NetworkWatcher {
 public:
  virtual ~NetworkWatcher() = default;
  virtual void sent(const Passage&) {}
  // Just before the receiver is told.
  virtual void delivered(const Passage&) {}
  // An end was told of its connection, or let it go.
  virtual void connected(ConnectionId, ProcessId /*at*/, ProcessId /*other*/) {}
  virtual void ended(ConnectionId, ProcessId /*at*/, ProcessId /*other*/,
                     const std::string& /*why*/) {}
};

class SimNetwork;

class SimWire final : public runtime::Wire {
 public:
  SimWire(SimNetwork& network, ProcessId process, std::string address, bool listens)
      : network_(network), process_(process), address_(std::move(address)), listens_(listens) {}

  std::string address() const override { return listens_ ? address_ : ""; }
  // Where its connections come from.
  const std::string& source() const { return address_; }
  runtime::Result<ConnectionId> dial(const std::string& address) override;
  void send(ConnectionId connection, Lane lane, Packet packet) override;
  void close(ConnectionId connection) override;
  // Never waits: who drives the process calls again when something is due.
  void poll(runtime::WireEvents& events, TimePoint until) override;
  void wake() override { woken_ = true; }

  // wake() since the last poll().
  bool woken() const { return woken_; }

 private:
  SimNetwork& network_;
  const ProcessId process_;
  const std::string address_;
  const bool listens_;
  bool woken_ = false;
};

class SimNetwork {
 public:
  // The clock outlives the network.
  SimNetwork(const runtime::Clock& clock, std::uint64_t seed, NetworkOptions options = {})
      : clock_(clock), dice_(seed), options_(options) {}

  // A new process at the address, where it listens, or not. The network owns the wire.
  SimWire& add(const std::string& address, bool listens = true);
  // From now on whom the process dials is shown that its key has expired; see ConnectionInfo.
  void expire_key(ProcessId process) { processes_[process].key_expired = true; }
  // Outlives the network; one more.
  void watch(NetworkWatcher& watcher) { watchers_.push_back(&watcher); }

  // The process has ended: nobody listens there any more. Its connections it has closed itself.
  void leave(ProcessId process) { processes_[process].dead = true; }

  // When something is to be told to the process.
  TimePoint next_due(ProcessId process) const;
  // The processes whose next_due() may have changed since the last call, some twice.
  std::vector<ProcessId> take_changed() { return std::exchange(changed_, {}); }
  // Connections with two ends that have not heard of an end, oldest first.
  std::vector<ConnectionId> connections() const;

  // Faults.

  void drop(ConnectionId connection);
  // Nothing gets through from one to the other until then; it waits.
  void block(ProcessId from, ProcessId to, TimePoint until);
  // So too, but it is on its way, and the receiver sees parts of it come all the time.
  void trickle(ProcessId from, ProcessId to, TimePoint until);
  // Packets take `factor` times as long until then.
  void slow(ProcessId from, ProcessId to, int factor, TimePoint until);
  // The process is silent from now on, its connections break, and nobody listens there.
  void kill(ProcessId process);

 private:
  friend class SimWire;

  struct Flight {
    TimePoint due;
    Packet packet;
  };
  struct Ending {
    TimePoint due;
    std::string why;
    bool after_packets = false;  // closed by the other end; else it broke
  };
  // One end, and what is on the way to it.
  struct End {
    ProcessId process = 0;
    TimePoint due{0};   // of connected()
    bool told = false;  // connected()
    bool over = false;  // told of the end, or let go
    std::optional<Ending> ending;
    std::array<std::deque<Flight>, runtime::kLanes> lanes;
    TimePoint busy_until{0};  // what carries packets to it, at its rate
  };
  struct Connection {
    std::string address;
    bool established = false;
    bool broken = false;
    TimePoint dial_due{0};
    std::array<End, 2> ends;  // who dialed, who listened
  };
  struct Process {
    std::unique_ptr<SimWire> wire;
    bool key_expired = false;
    bool dead = false;
    std::set<std::uint64_t> connections{};  // with an end here
  };
  // What is to be told next at one end.
  struct Due {
    enum class Kind { kNone, kDial, kConnected, kPart, kPacket, kEnd } kind = Kind::kNone;
    TimePoint when = TimePoint::max();
    std::uint64_t connection = 0;
    std::size_t end = 0;
    std::size_t lane = 0;
  };

  ConnectionId dial(ProcessId from, const std::string& address);
  void send(ProcessId from, ConnectionId connection, Lane lane, Packet packet);
  void close(ProcessId from, ConnectionId connection);
  void poll(ProcessId process, runtime::WireEvents& events);

  Due earliest(ProcessId process) const;
  void look_at(std::uint64_t number, const Connection& connection, std::size_t end,
               Due& best) const;
  void tell(const Due& due, runtime::WireEvents& events);
  void tell_packet(const Due& due, runtime::WireEvents& events);
  void try_dial(std::uint64_t number, runtime::WireEvents& events);
  void break_off(Connection& connection, std::size_t end, const std::string& why);
  void cut_lanes(End& end);
  void forget_if_over(std::uint64_t number);
  void forget(std::uint64_t number);
  TimePoint clear_from(ProcessId from, ProcessId to) const;
  Duration delay(ProcessId from, ProcessId to);

  const runtime::Clock& clock_;
  Dice dice_;
  const NetworkOptions options_;
  std::vector<Process> processes_;
  std::map<std::string, ProcessId> listeners_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t next_number_ = 1;
  std::map<std::pair<ProcessId, ProcessId>, TimePoint> blocked_until_;
  std::map<std::pair<ProcessId, ProcessId>, TimePoint> next_part_;  // of those that trickle
  std::map<std::pair<ProcessId, ProcessId>, std::pair<int, TimePoint>> slow_until_;
  std::vector<NetworkWatcher*> watchers_;
  std::vector<ProcessId> changed_;
};

}  // namespace troupe::sim

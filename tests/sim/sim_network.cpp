#include "tests/sim/sim_network.h"

#include <algorithm>

namespace troupe::sim {

namespace {

// Between two parts of what trickles.
constexpr Duration kPartPause = std::chrono::milliseconds(100);

}  // namespace

using runtime::ConnectionInfo;
using runtime::Result;
using runtime::WireEvents;

Result<ConnectionId> SimWire::dial(const std::string& address) {
  return network_.dial(process_, address);
}

void SimWire::send(ConnectionId connection, Lane lane, Packet packet) {
  network_.send(process_, connection, lane, std::move(packet));
}

void SimWire::close(ConnectionId connection) { network_.close(process_, connection); }

void SimWire::poll(WireEvents& events, TimePoint /*until*/) {
  woken_ = false;
  network_.poll(process_, events);
}

SimWire& SimNetwork::add(const std::string& address, bool listens) {
  const ProcessId process = processes_.size();
  processes_.push_back({std::make_unique<SimWire>(*this, process, address, listens), {}, false});
  if (listens) listeners_[address] = process;
  return *processes_.back().wire;
}

Duration SimNetwork::delay(ProcessId from, ProcessId to) {
  const Duration drawn = dice_.between(options_.least_delay, options_.most_delay);
  const auto slow = slow_until_.find({from, to});
  if (slow == slow_until_.end() || slow->second.second <= clock_.now()) return drawn;
  return drawn * slow->second.first;
}

TimePoint SimNetwork::clear_from(ProcessId from, ProcessId to) const {
  const auto found = blocked_until_.find({from, to});
  return found == blocked_until_.end() ? TimePoint(0) : found->second;
}

void SimNetwork::block(ProcessId from, ProcessId to, TimePoint until) {
  TimePoint& blocked = blocked_until_[{from, to}];
  blocked = std::max(blocked, until);
  changed_.insert(changed_.end(), {from, to});
}

void SimNetwork::trickle(ProcessId from, ProcessId to, TimePoint until) {
  block(from, to, until);
  next_part_[{from, to}] = clock_.now();
}

void SimNetwork::slow(ProcessId from, ProcessId to, int factor, TimePoint until) {
  slow_until_[{from, to}] = {factor, until};
}

std::vector<ConnectionId> SimNetwork::connections() const {
  std::vector<ConnectionId> all;
  for (const auto& [number, connection] : connections_) {
    const bool over = connection.ends[0].over || connection.ends[1].over;
    if (connection.established && !connection.broken && !over) all.push_back({number});
  }
  return all;
}

ConnectionId SimNetwork::dial(ProcessId from, const std::string& address) {
  Connection& connection = connections_[next_number_];
  connection.address = address;
  connection.ends[0].process = from;
  const auto listener = listeners_.find(address);
  connection.ends[1].process = listener == listeners_.end() ? from : listener->second;
  connection.dial_due = clock_.now() + delay(from, connection.ends[1].process);
  for (const End& end : connection.ends) processes_[end.process].connections.insert(next_number_);
  return {next_number_++};
}

void SimNetwork::send(ProcessId from, ConnectionId id, Lane lane, Packet packet) {
  const auto found = connections_.find(id.number);
  if (found == connections_.end() || processes_[from].dead) return;
  Connection& connection = found->second;
  const std::size_t own = connection.ends[0].process == from ? 0 : 1;
  if (!connection.established || connection.ends[own].over) return;
  End& other = connection.ends[1 - own];
  for (NetworkWatcher* watcher : watchers_) {
    watcher->sent({id, from, other.process, lane, &packet});
  }
  if (connection.broken || other.over) return;
  auto& flights = other.lanes[static_cast<std::size_t>(lane)];
  TimePoint due = clock_.now();
  if (options_.bytes_per_second > 0) {
    const double seconds = static_cast<double>(packet.bytes()) / options_.bytes_per_second;
    other.busy_until = std::max(other.busy_until, due) +
                       std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    due = other.busy_until;
  }
  due += delay(from, other.process);
  if (!flights.empty()) due = std::max(due, flights.back().due);
  flights.push_back({due, std::move(packet)});
  changed_.push_back(other.process);
}

void SimNetwork::close(ProcessId from, ConnectionId id) {
  const auto found = connections_.find(id.number);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (!connection.established) {
    forget(id.number);
    return;
  }
  const std::size_t own = connection.ends[0].process == from ? 0 : 1;
  End& end = connection.ends[own];
  End& other = connection.ends[1 - own];
  if (end.over) return;
  end.over = true;
  for (auto& lane : end.lanes) lane.clear();
  for (NetworkWatcher* watcher : watchers_) {
    watcher->ended(id, from, other.process, "closed here");
  }
  if (!other.over && !other.ending) {
    other.ending =
        Ending{clock_.now() + delay(from, other.process), "closed by the other end", true};
    changed_.push_back(other.process);
  }
  forget_if_over(id.number);
}

void SimNetwork::forget_if_over(std::uint64_t number) {
  const Connection& connection = connections_.at(number);
  if (connection.ends[0].over && connection.ends[1].over) forget(number);
}

void SimNetwork::forget(std::uint64_t number) {
  for (const End& end : connections_.at(number).ends) {
    processes_[end.process].connections.erase(number);
  }
  connections_.erase(number);
}

// Some first packets of each lane that are on the way still arrive.
void SimNetwork::cut_lanes(End& end) {
  for (auto& lane : end.lanes) {
    const std::size_t left = dice_.below(lane.size() + 1);
    while (lane.size() > left) lane.pop_back();
  }
}

void SimNetwork::break_off(Connection& connection, std::size_t end, const std::string& why) {
  End& told = connection.ends[end];
  if (told.over) return;
  cut_lanes(told);
  const Duration notice = dice_.between(options_.least_notice, options_.most_notice);
  told.ending = Ending{clock_.now() + notice, why, false};
  changed_.push_back(told.process);
}

void SimNetwork::drop(ConnectionId id) {
  const auto found = connections_.find(id.number);
  if (found == connections_.end() || !found->second.established || found->second.broken) return;
  found->second.broken = true;
  for (const std::size_t end : {0, 1}) break_off(found->second, end, "connection reset");
}

void SimNetwork::kill(ProcessId process) {
  processes_[process].dead = true;
  const std::set<std::uint64_t> numbers = processes_[process].connections;
  for (const std::uint64_t number : numbers) {
    Connection& connection = connections_.at(number);
    for (const std::size_t end : {0, 1}) {
      if (connection.ends[end].process != process) continue;
      if (!connection.established) {
        if (end == 0) connection.ends[0].over = connection.ends[1].over = true;
        continue;
      }
      connection.broken = true;
      connection.ends[end].over = true;
      break_off(connection, 1 - end, "the other end is gone");
    }
    forget_if_over(number);
  }
}

void SimNetwork::look_at(std::uint64_t number, const Connection& connection, std::size_t end,
                         Due& best) const {
  const End& own = connection.ends[end];
  const ProcessId other = connection.ends[1 - end].process;
  const auto offer = [&](Due::Kind kind, TimePoint when, std::size_t lane) {
    if (when < best.when) best = {kind, when, number, end, lane};
  };
  if (own.over) return;
  if (!connection.established) {
    const TimePoint clear =
        std::max(clear_from(own.process, other), clear_from(other, own.process));
    if (end == 0) offer(Due::Kind::kDial, std::max(connection.dial_due, clear), 0);
    return;
  }
  const TimePoint clear = clear_from(other, own.process);
  if (!own.told) {
    offer(Due::Kind::kConnected, std::max(own.due, clear), 0);
    return;
  }
  const auto part = next_part_.find({other, own.process});
  if (part != next_part_.end() && part->second < clear) offer(Due::Kind::kPart, part->second, 0);
  bool empty = true;
  for (std::size_t lane = 0; lane < own.lanes.size(); ++lane) {
    if (own.lanes[lane].empty()) continue;
    empty = false;
    offer(Due::Kind::kPacket, std::max(own.lanes[lane].front().due, clear), lane);
  }
  if (!own.ending) return;
  if (!own.ending->after_packets) {
    offer(Due::Kind::kEnd, own.ending->due, 0);
  } else if (empty) {
    offer(Due::Kind::kEnd, std::max(own.ending->due, clear), 0);
  }
}

SimNetwork::Due SimNetwork::earliest(ProcessId process) const {
  Due best;
  if (processes_[process].dead) return best;
  for (const std::uint64_t number : processes_[process].connections) {
    const Connection& connection = connections_.at(number);
    for (const std::size_t end : {0, 1}) {
      if (connection.ends[end].process == process) look_at(number, connection, end, best);
    }
  }
  return best;
}

TimePoint SimNetwork::next_due(ProcessId process) const { return earliest(process).when; }

void SimNetwork::poll(ProcessId process, WireEvents& events) {
  for (Due due = earliest(process); due.when <= clock_.now(); due = earliest(process)) {
    tell(due, events);
  }
}

void SimNetwork::try_dial(std::uint64_t number, WireEvents& events) {
  Connection& connection = connections_.at(number);
  const ProcessId from = connection.ends[0].process;
  const auto listener = listeners_.find(connection.address);
  if (listener == listeners_.end() || processes_[listener->second].dead) {
    connection.dial_due = clock_.now() + options_.dial_again;
    return;
  }
  const ProcessId to = listener->second;
  if (const ProcessId earlier = std::exchange(connection.ends[1].process, to); earlier != from) {
    processes_[earlier].connections.erase(number);
  }
  processes_[to].connections.insert(number);
  connection.established = true;
  connection.ends[0].told = true;
  connection.ends[1].due = clock_.now() + delay(from, to);
  changed_.push_back(to);
  for (NetworkWatcher* watcher : watchers_) watcher->connected({number}, from, to);
  events.connected({number}, ConnectionInfo{true, connection.address, "", false});
}

void SimNetwork::tell(const Due& due, WireEvents& events) {
  if (due.kind == Due::Kind::kDial) {
    try_dial(due.connection, events);
    return;
  }
  if (due.kind == Due::Kind::kPacket) {
    tell_packet(due, events);
    return;
  }
  End& own = connections_.at(due.connection).ends[due.end];
  const ProcessId other = connections_.at(due.connection).ends[1 - due.end].process;
  const ConnectionId id{due.connection};
  if (due.kind == Due::Kind::kPart) {
    next_part_[{other, own.process}] = clock_.now() + kPartPause;
    events.arriving(id);
    return;
  }
  if (due.kind == Due::Kind::kConnected) {
    own.told = true;
    for (NetworkWatcher* watcher : watchers_) watcher->connected(id, own.process, other);
    events.connected(id,
                     {false, processes_[other].wire->source(), "", processes_[other].key_expired});
    return;
  }
  const std::string why = own.ending->why;
  own.over = true;
  for (auto& lane : own.lanes) lane.clear();
  for (NetworkWatcher* watcher : watchers_) watcher->ended(id, own.process, other, why);
  forget_if_over(due.connection);
  events.disconnected(id, {runtime::ErrorKind::kLostPeers, why});
}

void SimNetwork::tell_packet(const Due& due, WireEvents& events) {
  Connection& connection = connections_.at(due.connection);
  End& own = connection.ends[due.end];
  Packet packet = std::move(own.lanes[due.lane].front().packet);
  own.lanes[due.lane].pop_front();
  const auto lane = static_cast<Lane>(due.lane);
  const ConnectionId id{due.connection};
  for (NetworkWatcher* watcher : watchers_) {
    watcher->delivered({id, connection.ends[1 - due.end].process, own.process, lane, &packet});
  }
  events.arrived(id, lane, std::move(packet));
}

}  // namespace troupe::sim

#pragma once

// Several nodes in one thread, under one clock: which of them does what next is drawn from the
// seed, and time moves on when there is nothing left to do. The same seed and the same plan give
// the same run, event by event.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/node/node.h"
#include "runtime/step_scheduler.h"
#include "runtime/transport/wire_types.h"
#include "tests/sim/sim_network.h"

namespace troupe::sim {

// One process of the world and the node it runs.
struct ProcessSetup {
  // What the gate is told; its node and the address of the plan's first one, which is that of the
  // world's first process, are filled in when they are empty.
  runtime::GateOptions gate;
  runtime::NodeOptions node = {.trace_records = 1024};
  runtime::ActorFactory factory;
  // Where it listens; "": at "sim://" and its number.
  std::string address{};
  // False: nobody can dial it. Its connections come from its address all the same.
  bool listens = true;
  // When it starts.
  TimePoint start{0};
};

class World {
 public:
  // `trace`: told, line by line, what happens; without it no line is made. `types` outlive it.
  using Trace = std::function<void(std::string_view line)>;
  World(std::uint64_t seed, const runtime::WireTypes& types, NetworkOptions network = {},
        Trace trace = {});
  ~World();

  runtime::ManualClock& clock() { return clock_; }
  SimNetwork& network() { return network_; }
  Dice& dice() { return dice_; }

  // A process that will run what the plan places on the node. Processes are numbered in the order
  // of the calls.
  ProcessId add(const runtime::Plan& plan, const std::string& node, ProcessSetup setup);
  // When the time has come, before anything else that is due then.
  void at(TimePoint when, std::function<void()> what);

  // Until every process has ended or was killed; false: not within so much time from the start of
  // the world, or so many events, or until stop().
  bool run(TimePoint limit, std::int64_t most_events = 2'000'000);
  void stop() { stopped_ = true; }
  std::int64_t events() const { return events_; }

  // Faults of processes; those of wires are the network's.
  void kill(ProcessId process);
  // It does nothing until then, like a stopped process.
  void pause(ProcessId process, TimePoint until);

  std::size_t processes() const { return processes_.size(); }
  const std::string& name(ProcessId process) const { return processes_[process]->name; }
  bool killed(ProcessId process) const { return processes_[process]->killed; }
  // Not of one that was killed or has not started.
  runtime::Node& node(ProcessId process) { return *processes_[process]->node; }
  bool has_node(ProcessId process) const { return processes_[process]->node != nullptr; }
  const std::optional<runtime::NodeEnd>& end(ProcessId process) const {
    return processes_[process]->end;
  }
  // What it logged from `level` on: every level when there is a trace, warnings and errors else.
  const std::string& log_lines(ProcessId process) const { return processes_[process]->lines; }
  // What the process last knew of the other: a PeerStats::state; "" when nothing.
  std::string peer_state(ProcessId process, ProcessId other) const;
  // Whether one of the two was killed, has given the other up, or has ended before they met.
  bool parted(ProcessId one, ProcessId other) const;

  bool traced() const { return static_cast<bool>(trace_); }
  // A line of the trace.
  void note(ProcessId process, std::string_view what);

 private:
  struct Process {
    std::string name;
    std::string address;
    runtime::Plan plan;
    ProcessSetup setup;
    SimWire* wire = nullptr;
    std::string lines;
    std::unique_ptr<runtime::Log> log;
    std::unique_ptr<runtime::StepScheduler> scheduler;
    std::unique_ptr<runtime::Node> node;
    std::optional<runtime::NodeEnd> end;
    bool killed = false;
    bool closed = false;  // ended, gate and all
    bool look = true;     // something has happened since the node was tended
    TimePoint tended{-1}, turned{-1};
    TimePoint paused_until{0};
  };
  enum class Deed : std::uint8_t { kStart, kRun, kTend, kTurn };

  bool over(const Process& process) const { return process.killed || process.closed; }
  void gather(ProcessId id, std::vector<std::pair<ProcessId, Deed>>& deeds);
  TimePoint next_due(ProcessId id) const;
  void perform(ProcessId id, Deed deed);
  void start(Process& process);
  bool do_scheduled();
  void move_on();

  runtime::ManualClock clock_;
  Dice dice_;
  const std::uint64_t draws_;  // what nodes are told by which they know each other follows from it
  const runtime::WireTypes& types_;
  SimNetwork network_;
  Trace trace_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::multimap<TimePoint, std::function<void()>> scheduled_;
  std::int64_t events_ = 0;
  bool stopped_ = false;
  bool nothing_due_ = false;
};

}  // namespace troupe::sim

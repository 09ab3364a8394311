#pragma once

// Several nodes in one thread, under one clock: which of them does what next is drawn from the
// seed, and time moves on when there is nothing left to do. The same seed and the same plan give
// the same run, event by event.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/node/node.h"
#include "runtime/step_scheduler.h"
#include "runtime/transport/wire_types.h"
#include "tests/sim/sim_network.h"

namespace troupe::sim {

// A gatekeeper whose numbers follow from the world's seed, and that does what a test says.
struct SimGatekeeper final : runtime::Gatekeeper {
  std::uint64_t seed = 0;
  std::function<void(const std::string& node)> given_up;  // there is room for another process then
  std::function<bool(const std::string& host)> this_machine;
  std::function<runtime::EnrolmentAnswer(const std::vector<std::string>& awaited)> answer;
  std::function<void(const std::vector<runtime::DirectoryEntry>& neighbours)> told;

  runtime::Result<runtime::EnrolmentAnswer> invite(
      const runtime::Enrolment& enrolment, const std::vector<std::string>& awaited) override {
    if (!answer) return Gatekeeper::invite(enrolment, awaited);
    return answer(awaited);
  }
  std::uint64_t number_between(const std::string& one, const std::string& other) override {
    return (seed ^ runtime::hash_of(one + " " + other).low) | 1U;
  }
  bool is_this_machine(const std::string& host) override {
    return this_machine && this_machine(host);
  }
  bool makes_room(const std::string& node) override {
    if (given_up) given_up(node);
    return given_up != nullptr;
  }
  void neighbours_are(const std::vector<runtime::DirectoryEntry>& neighbours) override {
    if (told) told(neighbours);
  }
};

// One process of the world and the node it runs.
struct ProcessSetup {
  // What the gate is told; its node and the address of the plan's first one, which is that of the
  // world's first process, are filled in when they are empty.
  runtime::GateOptions gate;
  std::shared_ptr<SimGatekeeper> keeper = std::make_shared<SimGatekeeper>();  // the gate's
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
  enum class Deed : std::uint8_t { kStart, kRun, kTend, kTurn };
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
    // It may do these now; if there are none, it has something to do at `due`.
    std::vector<Deed> deeds;
    TimePoint due = TimePoint::max();
  };

  bool over(const Process& process) const { return process.killed || process.closed; }
  std::vector<Deed> deeds_of(ProcessId id) const;
  TimePoint next_due(ProcessId id) const;
  // After anything that may change what the process has to do, and when.
  void look_at(ProcessId id);
  void look_at_all();
  // One of all deeds, which stand in the order of the processes.
  std::pair<ProcessId, Deed> deed(std::size_t number) const;
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
  std::size_t deeds_ = 0;  // of all processes
  std::set<std::pair<TimePoint, ProcessId>> dues_;
  std::multimap<TimePoint, std::function<void()>> scheduled_;
  std::int64_t events_ = 0;
  bool stopped_ = false;
  bool nothing_due_ = false;
};

}  // namespace troupe::sim

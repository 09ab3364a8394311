#include "tests/sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::sim {
namespace {

// A clock that is to move but has no reason to: what is due wants another look.
constexpr Duration kMoment = std::chrono::microseconds(1);

}  // namespace

World::World(std::uint64_t seed, const runtime::WireTypes& types, NetworkOptions network,
             Trace trace)
    : dice_(seed),
      draws_(runtime::mix64(~seed)),
      types_(types),
      network_(clock_, runtime::mix64(seed), network),
      trace_(std::move(trace)) {}

World::~World() = default;

void World::note(ProcessId process, std::string_view what) {
  if (!trace_) return;
  trace_(fmt::format("{:12.6f} {:<10} {}", std::chrono::duration<double>(clock_.now()).count(),
                     processes_[process]->name, what));
}

ProcessId World::add(const runtime::Plan& plan, const std::string& node, ProcessSetup setup) {
  const ProcessId id = processes_.size();
  auto process = std::make_unique<Process>();
  process->name = node;
  process->address = setup.address.empty() ? fmt::format("sim://{}", id) : setup.address;
  process->plan = plan;
  if (setup.gate.node.empty()) setup.gate.node = node;
  setup.gate.pid = 1000 + id;
  if (setup.gate.host.empty()) setup.gate.host = "sim";
  if (setup.gate.incarnation == 1) setup.gate.incarnation = dice_.next() | 1U;
  setup.keeper->seed = draws_;
  setup.gate.keeper = setup.keeper;
  if (setup.gate.head_address.empty() && plan.actors.front().node != node) {
    setup.gate.head_address = processes_.empty() ? "sim://0" : processes_.front()->address;
  }
  process->setup = std::move(setup);
  process->wire = &network_.add(process->address, process->setup.listens);
  runtime::LogOptions options;
  options.to_stderr = false;
  options.level = traced() ? runtime::LogLevel::kDebug : runtime::LogLevel::kWarning;
  options.also = [this, id, own = process.get()](runtime::LogLevel, std::string_view line) {
    own->lines += std::string(line) + "\n";
    if (traced()) note(id, fmt::format("logs   {}", line));
  };
  process->log = std::make_unique<runtime::Log>(runtime::Log::open(options).value());
  process->scheduler = std::make_unique<runtime::StepScheduler>(dice_.next(), clock_);
  processes_.push_back(std::move(process));
  look_at(id);
  return id;
}

void World::at(TimePoint when, std::function<void()> what) {
  scheduled_.emplace(when, std::move(what));
}

void World::start(Process& process) {
  const runtime::Uplink uplink{process.setup.gate, *process.wire, types_, false};
  process.node =
      std::make_unique<runtime::Node>(process.plan, process.setup.factory, process.setup.node,
                                      clock_, *process.log, uplink, process.scheduler.get());
  process.node->begin();
}

void World::kill(ProcessId id) {
  Process& process = *processes_[id];
  if (over(process)) return;
  note(id, "is killed");
  network_.kill(id);
  process.killed = true;
  process.node.reset();
  look_at(id);
}

void World::pause(ProcessId id, TimePoint until) {
  note(id, "stands still");
  processes_[id]->paused_until = std::max(processes_[id]->paused_until, until);
  look_at(id);
}

std::string World::peer_state(ProcessId id, ProcessId other) const {
  const Process& process = *processes_[id];
  if (!process.node) return {};
  for (const runtime::PeerStats& peer : process.node->peer_stats()) {
    if (peer.node == processes_[other]->name) return peer.state;
  }
  return {};
}

bool World::parted(ProcessId one, ProcessId other) const {
  const auto given_up = [&](ProcessId by, ProcessId peer) {
    const std::string state = peer_state(by, peer);
    return processes_[peer]->killed || state == "lost" ||
           (state == "awaited" && processes_[peer]->end);
  };
  return given_up(one, other) || given_up(other, one);
}

std::vector<World::Deed> World::deeds_of(ProcessId id) const {
  const Process& process = *processes_[id];
  const TimePoint now = clock_.now();
  if (over(process) || process.paused_until > now) return {};
  if (!process.node) {
    if (process.setup.start <= now) return {Deed::kStart};
    return {};
  }
  std::vector<Deed> deeds;
  if (!process.end) {
    if (process.scheduler->runnable() > 0) deeds.push_back(Deed::kRun);
    const bool due = process.tended != now && process.node->next_due() <= now;
    if (process.look || due) deeds.push_back(Deed::kTend);
  }
  const bool due = process.turned != now && process.node->gate_due() <= now;
  if (process.wire->woken() || due || network_.next_due(id) <= now) deeds.push_back(Deed::kTurn);
  return deeds;
}

void World::perform(ProcessId id, Deed deed) {
  Process& process = *processes_[id];
  switch (deed) {
    case Deed::kStart:
      start(process);
      break;
    case Deed::kRun:
      process.scheduler->run_one();
      process.look = true;
      break;
    case Deed::kTend:
      process.look = false;
      process.tended = clock_.now();
      if (process.node->tend()) {
        process.end = process.node->end();
        note(id, process.end->error ? "ends: " + process.end->error->message : "ends");
      }
      break;
    case Deed::kTurn:
      process.look = true;
      process.turned = clock_.now();
      process.node->turn_gate(clock_.now());
      break;
  }
  // The gate of a node that was given up still says goodbye.
  process.closed = process.end && process.node->gate_due() == TimePoint::max();
  if (process.closed) network_.leave(id);
  look_at(id);
  // Wires that a test has added to the network itself are of no process.
  for (const ProcessId changed : network_.take_changed()) {
    if (changed < processes_.size()) look_at(changed);
  }
}

TimePoint World::next_due(ProcessId id) const {
  const Process& process = *processes_[id];
  if (over(process)) return TimePoint::max();
  if (!process.node) return std::max(process.setup.start, process.paused_until);
  TimePoint due = std::min(process.node->gate_due(), network_.next_due(id));
  if (!process.end) due = std::min(due, process.node->next_due());
  return std::max(due, process.paused_until);
}

void World::look_at(ProcessId id) {
  Process& process = *processes_[id];
  deeds_ -= process.deeds.size();
  process.deeds = deeds_of(id);
  deeds_ += process.deeds.size();
  dues_.erase({process.due, id});
  process.due = TimePoint::max();
  if (!process.deeds.empty()) return;
  // A deed of this moment is due again as soon as time moves.
  process.due = std::max(next_due(id), clock_.now() + kMoment);
  if (process.due < TimePoint::max()) dues_.emplace(process.due, id);
}

void World::look_at_all() {
  for (ProcessId id = 0; id < processes_.size(); ++id) look_at(id);
}

std::pair<ProcessId, World::Deed> World::deed(std::size_t number) const {
  ProcessId id = 0;
  for (; number >= processes_[id]->deeds.size(); ++id) number -= processes_[id]->deeds.size();
  return {id, processes_[id]->deeds[number]};
}

// It may have touched any process.
bool World::do_scheduled() {
  if (scheduled_.empty() || scheduled_.begin()->first > clock_.now()) return false;
  const auto what = std::move(scheduled_.extract(scheduled_.begin()).mapped());
  what();
  look_at_all();
  return true;
}

// Time moves only when nobody has anything to do.
void World::move_on() {
  TimePoint due = scheduled_.empty() ? TimePoint::max() : scheduled_.begin()->first;
  if (!dues_.empty()) due = std::min(due, dues_.begin()->first);
  if (due == TimePoint::max()) {
    nothing_due_ = true;
    return;
  }
  clock_.advance(std::max(due - clock_.now(), kMoment));
  while (!dues_.empty() && dues_.begin()->first <= clock_.now()) look_at(dues_.begin()->second);
}

bool World::run(TimePoint limit, std::int64_t most_events) {
  look_at_all();
  while (!stopped_ && !nothing_due_ && clock_.now() <= limit && events_ < most_events) {
    if (do_scheduled()) continue;
    if (deeds_ > 0) {
      const auto [id, what] = deed(dice_.below(deeds_));
      perform(id, what);
      ++events_;
      continue;
    }
    if (std::ranges::all_of(processes_, [&](const auto& process) { return over(*process); })) {
      return true;
    }
    move_on();
  }
  return false;
}

}  // namespace troupe::sim

#pragma once

// One seed: a small cluster with random actors, links and paces, and a random fate.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan.h"
#include "tests/sim/sim_actors.h"
#include "tests/sim/world.h"

namespace troupe::sim {

// What a history is made of; as drawn from its seed.
struct HistoryDraft {
  runtime::Plan plan;
  std::vector<WorkerTraits> workers;  // by actor; those of roots are empty
  NetworkOptions network;
  runtime::GateOptions gate;      // what all nodes have in common
  std::vector<TimePoint> starts;  // by process
  int troubles = 0;               // faults that will happen
  bool deadly = false;            // whether processes may be killed
  bool mild = false;         // connections break and nothing else: nobody may be given up for that
  std::size_t outbound = 0;  // process that does not listen; 0: all do
};

HistoryDraft draft_of(std::uint64_t seed);

struct HistoryEnd {
  std::vector<std::string> failures;  // none: all is as it should be
  Duration simulated{0};
  std::int64_t events = 0;     // of the driver
  std::int64_t arrived = 0;    // items
  std::int64_t came_back = 0;  // items
  int reconnections = 0;       // of pairs of nodes, counted at both ends
  int parted = 0;              // pairs that gave each other up, or of which one was killed
};

// The same seed gives the same history and, with a trace, the same lines.
HistoryEnd play_history(std::uint64_t seed, const World::Trace& trace = {});

}  // namespace troupe::sim

#pragma once

// Decides how many nodes each pool of a run shall have, by a deadline and a budget. Pure functions
// of what was measured: nothing here asks for a node or knows the time.
//
// The budget is for nodes of pools. It has to do for what was spent, for what nodes cost until the
// run ends, and for the time in which they are given back, so that it is not exceeded where nodes
// end within PoolOffer::stops_in. Where it does not last to the end of the run, nodes are used as
// long as it does, and the other workers go on alone. Where there are none, as much as possible is
// made of it.
//
// Nodes that come get as many micro-batches as the mean of those that train, until they are
// measured and all are shared out by speed (Balancer), which takes some iterations.
//
// A deadline is aimed at with a tenth of what is left to spare, and more nodes are asked for when
// less than half of that remains. Nodes are given back early only where this saves a tenth of what
// is still to be spent, so that nodes do not come and go with every measurement.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/scaling/iteration_time.h"

namespace troupe::pipeline {

struct BurstLimits {
  std::optional<double> finish_within{};  // seconds, from the beginning of the run
  std::optional<double> budget{};         // in the currency of the prices
  double decide_every = 60.0;             // seconds
};

// What a pool has to offer.
struct PoolOffer {
  std::string name;
  std::uint32_t most = 1;
  std::uint32_t workers = 1;  // of a node, all its members together
  double price = 0.0;         // of a node for an hour
  double speed = 0.0;         // of a worker; as Crew has it
  double starts_in = 0.0;     // seconds from asking for a node until it trains
  double stops_in = 120.0;  // from the decision to give it back until it costs nothing, at the most
  double losses_per_hour = 0.0;  // of a node
  std::uint32_t wanted = 0;      // nodes, now
  std::uint32_t running = 0;     // those that train
  // Those that cost something, or may do so at any moment, and are not being given back; and for
  // how long all others together may go on to cost something.
  std::uint32_t costing = 0;
  double leaving_seconds = 0.0;
};

struct BurstFacts {
  // Whether speeds are known. Until then nodes only go where the budget wants it, and one is asked
  // for where there is no worker.
  bool measured = true;
  double elapsed = 0.0;  // seconds since the run began
  double iterations_left = 0.0;
  double spent = 0.0;  // on nodes of pools
  IterationWork work;
  RingLine line;
  // Seconds of an iteration beyond the model, as measured where the slowest worker had that speed;
  // 0: any takes as long. Most of it is work that each member does by itself, such as applying
  // steps. `line.member_bytes_per_second` is that of such a worker's member too.
  double unexplained = 0.0;
  double unexplained_speed = 0.0;
  Crew others;  // workers that are of no pool
  std::vector<PoolOffer> pools;
};

// "2 of hpc, 1 of cloud"; "no nodes".
std::string nodes_text(const BurstFacts& facts, const std::vector<std::uint32_t>& nodes);
// How long an iteration takes with so many nodes of each pool, all of them there, and micro-batches
// shared out by speed.
double iteration_seconds(const BurstFacts& facts, const std::vector<std::uint32_t>& nodes);

// What would come of so many nodes of each pool.
struct BurstForecast {
  std::vector<std::uint32_t> nodes;
  double seconds = 0.0;    // from now until the run ends; infinite: it does not
  double cost = 0.0;       // of nodes of pools, in the end, if they are given back at once
  double give_back = 0.0;  // that it may cost besides to give them back
  bool lasts = true;       // the budget does, to the end of the run
  double made = 0.0;       // iterations from now on with nodes of pools, as long as it lasts
};
BurstForecast forecast(const BurstFacts& facts, const BurstLimits& limits,
                       const std::vector<std::uint32_t>& nodes);
// With the nodes that are wanted now.
BurstForecast forecast(const BurstFacts& facts, const BurstLimits& limits);

// The numbers of nodes that are worth a look: pools are filled one after the other, and first the
// one where a unit of work costs least. None first.
std::vector<std::vector<std::uint32_t>> worth_a_look(const BurstFacts& facts);

struct BurstDecision {
  BurstForecast forecast;  // of the nodes that shall be wanted
  bool changes = false;    // they are not those that are wanted now
  // The budget is spent, and no worker is left that costs nothing.
  bool must_end = false;
  // The run ends behind its deadline, or before it with a twentieth of what is left to spare. Both
  // false: it is close, or there is no deadline, or nothing is measured.
  bool is_too_late = false;
  bool is_in_time = false;
  std::string reason{};  // for people
};
BurstDecision decide(const BurstFacts& facts, const BurstLimits& limits);

// "3 h 12 min", "4 min", "12 s", and "never" for a time that does not come.
std::string time_text(double seconds);

}  // namespace troupe::pipeline

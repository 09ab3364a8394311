#pragma once

// The rings in which members of one site make a worker's iterations together
// (pipeline/steps/sites.h): a RingSum for each worker that several replicas have parts of, from its
// first step of an outer step, or of a turn, to the last. Every View begins them anew. One thread.

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/ring_sum.h"
#include "pipeline/steps/sites.h"

namespace troupe::actors {

struct SiteOptions {
  pipeline::Sites sites;
  std::uint64_t steps = 1;          // of a worker in an iteration of all
  std::uint64_t slots = 1;          // of its schedule
  std::uint32_t turns = 1;          // in an iteration of all, each of them a step of all
  std::uint32_t micro_batches = 1;  // of one of a worker's iterations
  std::uint64_t events = 1;         // in these
};

class SiteRings {
 public:
  SiteRings(SiteOptions options, std::uint32_t member)
      : options_(std::move(options)), member_(member) {}

  // The step of all members that this one, of the worker or of all, belongs to; where workers take
  // turns, the first of the iteration.
  std::uint64_t outer_step(std::uint32_t worker, std::uint64_t step) const {
    return worker == kOfAll ? step : step / options_.steps * options_.turns;
  }

  struct Ring {
    RingSum sum;
    std::vector<std::uint32_t> members;   // in its order
    std::vector<std::uint32_t> replicas;  // of this node: numbers within it
  };

  // The ring for the worker's step, while `next` is the next step of all; null: this member has no
  // part of it, or the step is none that can be made now.
  Ring* find(const pipeline::View& view, std::uint64_t next, std::uint32_t worker,
             std::uint64_t step);
  // Members that this one sends to in any iteration of the View.
  std::set<std::uint32_t> next_in_rings(const pipeline::View& view) const;
  // The steps of all before this one are made.
  void forget_before(std::uint64_t next) {
    rings_.erase(rings_.begin(), rings_.lower_bound({next / options_.turns, 0}));
  }
  void forget() { rings_.clear(); }
  // The first step of all of whose iteration nothing is here; 0: nothing is here at all.
  std::uint64_t unbegun() const {
    return rings_.empty() ? 0 : (rings_.rbegin()->first.first + 1) * options_.turns;
  }

  std::string waiting_for() const;

 private:
  bool is_own(std::uint32_t replica) const {
    return replica / options_.sites.replicas_per_member == member_;
  }

  SiteOptions options_;
  std::uint32_t member_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Ring> rings_;  // by iteration of all and worker
};

}  // namespace troupe::actors

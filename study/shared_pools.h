#pragma once

// How the nodes of a study's pools are shared out among the runs that go on. A run's head asks for
// its nodes and gives them back, as that of any run does; it is told how many it shall have, and
// its journal (launch/pools/pool_journal.h) tells which have not gone yet.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/topology.h"
#include "runtime/base/clock.h"
#include "study/trial_book.h"

namespace troupe::study {

// So many nodes of the pool shall a run have.
struct NodeWish {
  RunNumber run;
  std::string pool;
  std::uint32_t nodes = 0;

  bool operator==(const NodeWish&) const = default;
};

// Because of it all runs together never have more nodes of a pool than its `nodes`, those included
// that are on their way out, and those that a run has left behind.
class SharedPools {
 public:
  explicit SharedPools(const std::vector<config::PoolSection>& pools);

  bool empty() const { return pools_.empty(); }
  // The run begins or goes on, and wants no nodes.
  void begin(RunNumber run, const std::string& folder);
  void end(RunNumber run);
  // What is to be told now. A run is told nothing else of that pool before the wish is answered.
  // Looks at most once a second, unless something has happened.
  std::vector<NodeWish> next(runtime::TimePoint now);
  // `heard`: its head has answered. Else it may have heard all the same, and is told again in a
  // while.
  void answer(const NodeWish& wish, bool heard, runtime::TimePoint now);

 private:
  struct Pool {
    std::string name;
    std::uint32_t nodes = 0;
  };
  // What a run has of a pool.
  struct Share {
    std::uint32_t wanted = 0;           // of what it may have heard, the most
    std::optional<std::uint32_t> told;  // a wish that is not answered
    bool is_sure = true;                // it has heard `wanted`, and nothing since
    runtime::TimePoint again{0};        // when it may be told something
    std::uint32_t left = 0;             // nodes that have not gone

    std::uint32_t aim() const { return told.value_or(wanted); }
  };
  struct Run {
    RunNumber number;
    std::string folder;
    bool goes_on = true;
    std::vector<Share> shares;  // of each pool
  };

  void read_journals();
  void add_wishes(std::size_t pool, runtime::TimePoint now, std::vector<NodeWish>& wishes);

  std::vector<Pool> pools_;
  std::vector<Run> runs_;  // in the order in which they began
  runtime::TimePoint looks_again_{0};
};

}  // namespace troupe::study

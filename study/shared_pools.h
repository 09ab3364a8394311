#pragma once

// How the nodes of a study's pools are shared out among the runs that go on. A run's head asks for
// its nodes and gives them back, as that of any run does; the study tells it how many it shall
// have, and its journal (launch/pools/pool_journal.h) tells which have not gone yet.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/topology.h"
#include "runtime/base/clock.h"
#include "study/trial_book.h"

namespace troupe::study {

// A run shall have so many nodes of the pool.
struct NodeWish {
  RunNumber run;
  std::string pool;
  std::uint32_t nodes = 0;

  bool operator==(const NodeWish&) const = default;
};

// Its wishes keep all runs together at a pool's `nodes`, with those that are on their way out, and
// those that an ended run has left behind. A head replaces a lost node by itself, so the new one
// may stand beside the lost one until that is gone.
class SharedPools {
 public:
  static constexpr runtime::Duration kLook = std::chrono::seconds(1);  // between two looks

  // How a head has taken a wish. It may have heard one that it has not answered.
  enum class Answer : std::uint8_t { kDone, kRefused, kNone };

  explicit SharedPools(const std::vector<config::PoolSection>& pools);

  bool empty() const { return pools_.empty(); }
  // The run begins or goes on, and wants no nodes.
  void begin(RunNumber run, const std::string& folder);
  // The run takes no nodes any more. Those that it has left behind count until they are gone.
  void end(RunNumber run);
  // The wishes to be told now. A run is told nothing else of that pool before the wish is answered.
  // Looks once per kLook at most, unless something has happened.
  std::vector<NodeWish> next(runtime::TimePoint now);
  // One that was not done is told again in a while. True: it is the first such answer of the run.
  bool answer(const NodeWish& wish, Answer answer, runtime::TimePoint now);

 private:
  struct Pool {
    std::string name;
    std::uint32_t nodes = 0;
  };
  struct Share {                        // of a run in a pool
    std::uint32_t wanted = 0;           // the most that it may have heard
    std::optional<std::uint32_t> told;  // a wish that is not answered
    bool is_sure = true;                // it has heard `wanted`, and nothing since
    runtime::TimePoint again{0};        // when it may be told something
    std::uint32_t left = 0;             // nodes that have not gone
    std::uint32_t leaving = 0;          // those of them that are on their way out
    bool has_failed = false;            // a wish was not done

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

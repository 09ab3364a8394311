#pragma once

// Runs to which everything happens that a seed has drawn: members, newcomers and heads die, come
// and stand still, newcomers are slow, members are told to end, connections break, words get
// through in one direction only, too few are left, work is shared out anew, workers train alone in
// a quarter of the runs and take turns in another one, alone or several at a time, in an order that
// is drawn and set for half a run and follows from their offers behind that, or in sites in one
// that is set for all of it, and who teaches is the first or the last to have what a step adds up
// to.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/training/training_play.h"

namespace troupe::sim {

// How the workers of a run train (train.strategy); of kSharedNorm as of kSynchronous, with batch
// norm over all micro-batches.
enum class Strategy {
  kSynchronous,
  kSharedNorm,
  kLocal,
  kLocalInInt8,
  kTree,
  kDownpour,
  kEasgd,
  kGem,
  kQuorum,
  kGemInSites,
  kQuorumInSites
};
inline constexpr std::array kStrategyWords{
    "synchronous", "shared-norm", "local",  "local-int8", "tree",        "downpour",
    "easgd",       "gem",         "quorum", "gem-sites",  "quorum-sites"};

constexpr bool takes_turns(Strategy strategy) { return strategy >= Strategy::kDownpour; }

struct TrainingHistoryEnd {
  TrainingEnd end;
  Strategy strategy = Strategy::kSynchronous;
  bool resumed = false;  // because the run had ended with an error
  std::optional<std::string> failure;
};

// The run ends with the state of an undisturbed one, or with an error and a disk from which another
// run comes to that state; and nobody finds another not to do what all do. `strategy` takes the
// place of the one that the seed draws.
TrainingHistoryEnd play_training_history(std::uint64_t seed, const World::Trace& trace = {},
                                         std::optional<Strategy> strategy = {});

}  // namespace troupe::sim

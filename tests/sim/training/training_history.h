#pragma once

// Runs to which everything happens that a seed has drawn: members, newcomers and heads die, come
// and stand still, members are told to end, connections break, words get through in one direction
// only, too few are left, work is shared out anew, workers train alone in a quarter of the runs and
// take turns in another one, alone or several at a time, in an order that is drawn and set, and who
// teaches is the first or the last to have what a step adds up to.

#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/training/training_play.h"

namespace troupe::sim {

struct TrainingHistoryEnd {
  TrainingEnd end;
  bool local = false;    // workers trained alone between outer steps (train.strategy)
  bool rounded = false;  // and their changes were summed in int8
  bool turns = false;    // workers took turns
  bool quorum = false;   // several of them at a time
  bool resumed = false;  // because the run had ended with an error
  std::optional<std::string> failure;
};

// The run ends with the state of an undisturbed one, or with an error and a disk from which another
// run comes to that state; and nobody finds another not to do what all do.
TrainingHistoryEnd play_training_history(std::uint64_t seed, const World::Trace& trace = {});

}  // namespace troupe::sim

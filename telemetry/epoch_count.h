#pragma once

// Which epoch a run is in, counted in one way wherever people read it.

#include <cstdint>
#include <string>

namespace troupe::telemetry {

struct EpochCount {
  // From 1: the one that is being trained, and of a run that has ended the one in which it did. 0:
  // not known.
  std::uint64_t epoch = 0;
  std::uint64_t all = 0;  // those the run is to have; 0: not known
};

// After `done` of `all` iterations. 0 iterations: not known.
EpochCount count_epochs(std::uint64_t done, std::uint64_t all, std::uint64_t per_epoch);
// "epoch 2/3", "epoch 2".
std::string epoch_text(const EpochCount& count);

}  // namespace troupe::telemetry

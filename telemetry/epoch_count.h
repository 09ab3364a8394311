#pragma once

// The epoch a run is in, counted in one way wherever people read it.

#include <cstdint>
#include <string>

namespace troupe::telemetry {

struct EpochCount {
  // The epoch that is being trained, from 1. When the run has ended: the one in which it did. 0:
  // not known.
  std::uint64_t epoch = 0;
  std::uint64_t all = 0;  // how many the run is to have; 0: not known
};

// The run has made `done` of `all` iterations. 0 of `all` or `per_epoch`: not known.
EpochCount count_epochs(std::uint64_t done, std::uint64_t all, std::uint64_t per_epoch);
// "epoch 2/3", "epoch 2".
std::string epoch_text(const EpochCount& count);

}  // namespace troupe::telemetry

#pragma once

// PyTorch computing one convolution, in a process of its own (convolution_peer.py).

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "bench/answering.h"
#include "model/backend.h"
#include "model/operation.h"

namespace troupe::bench {

class TorchConvolution {
 public:
  TorchConvolution();

  // What it is, or why it is not there.
  const std::string& version() const { return version_; }
  // It could not be asked for another reason than not being installed.
  bool wrong() const { return wrong_; }

  // A convolution in one direction, with the contents of the bench's arrays. False, with the reason
  // on standard error, when the mean size of its result is not `expected`. Without PyTorch nothing,
  // here and below.
  bool begin(const model::Operation& convolution, double expected);
  // Runs it once in each way; false when that failed.
  bool run();
  // For the runs since begin(), by the faster of its layouts.
  std::optional<double> best_seconds(model::Precision precision) const;

 private:
  Answering program_;
  std::string version_;
  bool ready_ = false, wrong_ = false;
  std::array<std::vector<double>, 4> seconds_;  // of the ways, in the order of its answers
};

}  // namespace troupe::bench

#pragma once

// One line about a running training: how far, losses, events/s, time left.

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "model/gan.h"
#include "runtime/base/clock.h"

namespace troupe::actors {

struct ProgressOptions {
  std::FILE* out = nullptr;  // null: silent
  bool terminal = false;     // rewrite one line in place; else a line every few seconds
  std::uint64_t first_iteration = 0;
  std::uint64_t iterations = 0;  // of the whole run
  std::uint64_t iterations_per_epoch = 1;
};

class ProgressLine {
 public:
  explicit ProgressLine(ProgressOptions options) : options_(options) {}

  // A step was committed with this weighted loss; `last` closes its iteration.
  void step(runtime::TimePoint now, std::uint64_t iteration, model::SlotKind slot, double loss,
            std::uint64_t events, bool last);
  // Writes the line if enough time has passed since the last one.
  void show(runtime::TimePoint now);
  void finish(runtime::TimePoint now);

  // "epoch 2/3 [#####.....] 53 %  iteration 424/800  loss d 3.1 g 4.2  812 events/s  00:47 left"
  std::string text(runtime::TimePoint now) const;

 private:
  void write(const std::string& line, const char* end) const;
  std::string loss_text() const;

  ProgressOptions options_;
  std::uint64_t done_ = 0;  // finished iterations, counted over the whole run
  std::uint64_t events_ = 0;
  std::map<std::string, double> loss_;  // by learner_name(), of those whose step was told
  runtime::TimePoint began_{0}, shown_{0};
  bool started_ = false;
};

}  // namespace troupe::actors

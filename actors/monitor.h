#pragma once

// Where metrics end: RUN/metrics.jsonl and the progress line on the terminal. What it misses is
// counted by the links; nothing that trains waits for it.
//
// Ports: in "metrics" (metrics lane), control. Has a thread of its own: files block.
//
// metrics.jsonl holds one JSON object per line, "kind" first: "step" (step, epoch, iteration, slot,
// attempts, events, losses by name, seconds load/compute/reduce/apply, state_hash before the step),
// "checkpoint" and "validation" (step and their own fields).

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/progress_line.h"
#include "model/gan.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct MonitorOptions {
  std::string metrics_path;             // opened for appending
  std::vector<model::LossTerm> losses;  // names and weights
  std::vector<model::SlotKind> schedule;
  ProgressOptions progress;
};

class Monitor final : public runtime::Actor {
 public:
  explicit Monitor(MonitorOptions options);
  ~Monitor() override;

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void timer(runtime::Context& context, runtime::TimerId id) override;

 private:
  void take_step(runtime::Context& context, const StepMetrics& step);
  void write(runtime::Context& context, const std::string& line);

  MonitorOptions options_;
  ProgressLine progress_;
  std::FILE* file_ = nullptr;
  bool write_failed_ = false;
};

}  // namespace troupe::actors

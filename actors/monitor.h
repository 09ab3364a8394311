#pragma once

// Where metrics end: RUN/metrics.jsonl and the progress line on the terminal. Nothing that trains
// waits for it; how many steps it has missed it says at the end.
//
// Ports: in "metrics" (metrics lane), control. Has a thread of its own: files block.
//
// metrics.jsonl holds one JSON object per line, "kind" first: "step" (step, epoch, iteration, slot,
// attempts, events, event_sum, losses by name, seconds load/compute/reduce/apply, state_hash before
// the step), "checkpoint", "validation" and "view" (step and their own fields), "node" (what became
// of another node). event_sum is what StepHeader has of that name.

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
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
  std::uint64_t first_step = 0;  // the first that is to be told
  // Another Monitor was told steps that it may not have written; what comes before they are told
  // again is left out.
  bool told_before = false;
  // Called with every change of another node, on the Monitor's thread; may block. Default: nobody.
  std::function<void(const NodeChange&)> on_node;
};

class Monitor final : public runtime::Actor {
 public:
  explicit Monitor(MonitorOptions options);
  ~Monitor() override;

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void timer(runtime::Context& context, runtime::TimerId id) override;

 private:
  // A step of this run, and a later one than those that were written.
  bool is_to_come(const StepMetrics& step) const;
  void take_step(runtime::Context& context, const StepMetrics& step);
  void take_change(runtime::Context& context, const NodeChange& change);
  void look_for_steps(runtime::Context& context);
  void finish(runtime::Context& context);
  void write(runtime::Context& context, const std::string& line);

  MonitorOptions options_;
  ProgressLine progress_;
  std::FILE* file_ = nullptr;
  bool write_failed_ = false;
  std::uint64_t next_step_;              // the one after the newest that was written
  std::uint64_t written_ = 0;            // steps
  std::optional<FinishMetrics> finish_;  // while steps are awaited that it has overtaken
  runtime::TimerId look_;
  int looks_ = 0;  // since a step came
};

}  // namespace troupe::actors

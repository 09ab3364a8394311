#pragma once

// Where metrics end: RUN/metrics.jsonl and whatever else is made of its records (docs/watching.md),
// and the progress line on the terminal. Nothing that trains waits for it; how many steps it has
// missed it says at the end.
//
// Ports: in "metrics" (metrics lane), control. Has a thread of its own: files block.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/node_reports.h"
#include "actors/progress_line.h"
#include "model/gan.h"
#include "runtime/actor.h"
#include "runtime/base/disk.h"
#include "telemetry/history.h"
#include "telemetry/node_sample.h"
#include "telemetry/record.h"
#include "telemetry/sample_board.h"
#include "telemetry/sinks/sinks.h"

namespace troupe::actors {

struct MonitorOptions {
  telemetry::SinkOptions sinks;  // all but `time` and `warn`
  std::string showers_folder;    // for files of showers; made when there are any
  telemetry::RunFacts facts;
  telemetry::NodeFacts node;  // that this Monitor is on
  // Of the same, on the Monitor's thread: what it does, about once a second, its traces() and its
  // wait_for_graph(), when somebody asks. Empty: it tells nothing.
  std::function<telemetry::NodeSample()> sample;
  std::function<std::vector<runtime::ActorTrace>()> trace;
  std::function<std::string()> waits;
  std::vector<model::LossTerm> losses;  // names and weights
  std::vector<model::SlotKind> schedule;
  ProgressOptions progress;
  std::uint64_t first_step = 0;  // the first that is to be told
  // Another Monitor was told steps that it may not have written; what comes before they are told
  // again is left out.
  bool told_before = false;
  // Called about once a second on the Monitor's thread, and may block. True: the files of metrics
  // were removed with their folder, which is there again. Default: they stay.
  std::function<bool()> files_are_gone;
  // Called with every change of another node, on the Monitor's thread; may block. Default: nobody.
  std::function<void(const NodeChange&)> on_node;
  // Seconds since 1970. Default: of the system.
  std::function<double()> time_of_day;
};

class Monitor final : public runtime::Actor {
 public:
  // The disk outlives it.
  Monitor(MonitorOptions options, runtime::Disk& disk);

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void timer(runtime::Context& context, runtime::TimerId id) override;
  // A member that is gone does not answer.
  void undeliverable(runtime::Context&, runtime::Message, const runtime::Error&) override {}

 private:
  // A step of this run, and a later one than those that were written.
  bool is_to_come(const StepMetrics& step) const;
  // Into all sinks, with the time of now.
  void tell(std::uint64_t step, telemetry::RecordBody body);
  void take_step(runtime::Context& context, const StepMetrics& step);
  void take_change(runtime::Context& context, const NodeChange& change);
  void look_after_files();
  void look_for_steps(runtime::Context& context);
  void take_showers(runtime::Context& context, const ShowersMetrics& showers);
  void take_report(runtime::Context& context, const runtime::Message& message,
                   const NodeReport& report);
  void take_question(runtime::Context& context, const Question& question);
  void take_sample(const telemetry::NodeSample& sample, double clock_error);
  void probe(runtime::Context& context, const Probe& probe) const;
  void tell_samples(runtime::Context& context);
  void finish(runtime::Context& context);

  MonitorOptions options_;
  runtime::Disk& disk_;
  ProgressLine progress_;
  std::optional<telemetry::Sinks> sinks_;
  telemetry::SampleBoard board_;
  std::optional<NodeReports> reports_;
  std::uint64_t next_step_;              // the one after the newest that was written
  std::uint64_t written_ = 0;            // steps
  std::optional<FinishMetrics> finish_;  // while steps are awaited that it has overtaken
  runtime::TimerId look_;
  int looks_ = 0;  // since a step came
};

}  // namespace troupe::actors

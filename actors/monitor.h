#pragma once

// Writes the metrics of the run: RUN/metrics.jsonl and everything else that is made of its records
// (docs/watching.md), and the progress line on the terminal. Nothing that trains waits for it. At
// the end it says how many steps it has missed.
//
// Ports: in "metrics" (metrics lane), control. Has a thread of its own: files block.

#include <functional>
#include <map>
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

// The hooks are asked about once a second for what the node does.
struct MonitorOptions : NodeHooks {
  telemetry::SinkOptions sinks;  // all but `time` and `warn`
  std::string showers_folder;    // for files of showers; made when there are any
  telemetry::RunFacts facts;
  telemetry::NodeFacts node;            // the Monitor's own node
  std::vector<model::LossTerm> losses;  // names and weights
  std::vector<model::SlotKind> schedule;
  ProgressOptions progress;
  std::uint64_t first_step = 0;  // the first that is to be told
  // Hashes of the state before each step from step 0 on, as far as the run has to have them: it
  // takes the turns of another one, which had them. The log says whether it has. Empty: any.
  std::vector<std::string> ordered_states;
  // Another Monitor was told steps that it may not have written. Steps are left out until those are
  // told again.
  bool told_before = false;
  // Called about once a second on the Monitor's thread, and may block. True: the files of metrics
  // were removed with their folder, which is there again. Default: they stay.
  std::function<bool()> files_are_gone;
  // Called with every change of another node, on the Monitor's thread; may block. May be null.
  std::function<void(const NodeChange&)> on_node;
  // Seconds since 1970. Default: the system's clock.
  std::function<double()> time_of_day;
};

class Monitor final : public runtime::Actor {
  using Context = runtime::Context;
  using Message = runtime::Message;

 public:
  // The disk outlives it.
  Monitor(MonitorOptions options, runtime::Disk& disk);

  void start(Context& context) override;
  void timer(Context& context, runtime::TimerId id) override;
  // A member that is gone does not answer.
  void undeliverable(Context&, Message, const runtime::Error&) override {}

 private:
  void receive_step(Context& context, const StepMetrics& step);
  void receive_event(Context& context, const EventMetrics& event);
  void receive_samples(Context& context, const SampleMetrics& told, Message& message);
  void receive_report(Context& context, const NodeReport& report, Message& message);
  void receive_question(Context& context, const Question& question);
  void receive_showers(Context& context, const ShowersMetrics& showers);
  void receive_change(Context& context, const NodeChange& change);
  void receive_finish(Context& context, const FinishMetrics& last);
  // Whether it is a step of this run, and a later one than those that were written.
  bool is_to_come(const StepMetrics& step) const;
  // With that of the run whose turns this one takes.
  void compare_state(Context& context, std::uint64_t step, const std::string& hash);
  // Gives a record to all sinks, with the present time.
  void tell(std::uint64_t step, telemetry::RecordBody body);
  void tell_step(Context& context, const StepMetrics& step);
  void take_sample(const telemetry::NodeSample& sample, double clock_error);
  // Tells `on_node` which device a node computes on, once.
  void note_device(const telemetry::NodeState& node);
  void tell_samples(Context& context);
  void probe(Context& context, const Probe& probe, const auto& members) const;
  void look_after_files();
  void look_for_steps(Context& context);
  void finish(Context& context);

  MonitorOptions options_;
  runtime::Disk& disk_;
  ProgressLine progress_;
  std::optional<telemetry::Sinks> sinks_;
  telemetry::SampleBoard board_;
  std::map<std::string, std::string> devices_;  // of nodes, as told
  std::optional<NodeReports> reports_;
  std::uint64_t next_step_;    // the one after the newest that was written
  std::uint64_t written_ = 0;  // steps
  // States up to that before this step were what they have to be; none: none was compared.
  std::optional<std::uint64_t> compared_until_;
  std::optional<FinishMetrics> finish_;  // while the steps that it has overtaken are awaited
  runtime::TimerId look_;
  int looks_ = 0;  // without a step between them
};

}  // namespace troupe::actors

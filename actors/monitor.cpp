#include "actors/monitor.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/base/clock.h"
#include "runtime/base/utf8.h"
#include "telemetry/watch/run_files.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;

constexpr auto kShowEvery = std::chrono::seconds(1);
// At the end steps may still be on their way, or were dropped. After so many looks in a row that
// find no step, none is waited for any more.
constexpr auto kLookEvery = std::chrono::milliseconds(50);
constexpr int kMostLooks = 20;

telemetry::StepFacts facts_of(const StepMetrics& step, const MonitorOptions& options) {
  telemetry::StepFacts facts{step, {}, {}, {}};
  facts.slot = model::slot_name(options.schedule[step.slot]);
  for (std::size_t i = 0; i < step.losses.size(); ++i) {
    facts.losses.emplace_back(options.losses[i].name(), step.losses[i]);
  }
  facts.state_hash = step.state_hash.text();
  return facts;
}

double system_time() { return runtime::seconds_since_1970(runtime::wall_now()); }

}  // namespace

Monitor::Monitor(MonitorOptions options, runtime::Disk& disk)
    : options_(std::move(options)),
      disk_(disk),
      progress_(options_.progress),
      next_step_(options_.first_step) {
  if (!options_.time_of_day) options_.time_of_day = system_time;
}

void Monitor::start(Context& context) {
  on<StepMetrics>(&Monitor::receive_step);
  on<SampleMetrics>(&Monitor::receive_samples);
  on<EventMetrics>(&Monitor::receive_event);
  on<NodeReport>(&Monitor::receive_report);
  on<Question>(&Monitor::receive_question);
  on<ShowersMetrics>(&Monitor::receive_showers);
  on<NodeChange>(&Monitor::receive_change);
  on<FinishMetrics>(&Monitor::receive_finish);
  telemetry::SinkOptions sinks = options_.sinks;
  sinks.time = options_.time_of_day();
  sinks.warn = [log = context.log()](const std::string& line) { log.warning(line); };
  sinks_.emplace(std::move(sinks));
  if (const std::string address = sinks_->published_at(); !address.empty())
    context.log().info(fmt::format("metrics are published at {}", address));
  reports_.emplace(NodeReportsOptions{options_, options_.node.name});
  sinks_->begin(
      {options_.time_of_day(), next_step_, telemetry::RunRecord{options_.facts, options_.node}});
  context.after(kShowEvery);
}

void Monitor::timer(Context& context, runtime::TimerId id) {
  if (id == look_) return look_for_steps(context);
  progress_.show(context.now());
  look_after_files();
  tell_samples(context);
  context.after(kShowEvery);
}

void Monitor::receive_step(Context& context, const StepMetrics& step) {
  if (step.again) options_.told_before = false;
  if (!options_.told_before && is_to_come(step)) tell_step(context, step);
  if (finish_ && next_step_ >= finish_->told_until) finish(context);
}

void Monitor::receive_event(Context& context, const EventMetrics& event) {
  if (const auto* saved = std::get_if<telemetry::CheckpointFacts>(&event.record.body)) {
    compare_state(context, event.record.step, saved->state_hash);
  }
  tell(event.record.step, event.record.body);
}

void Monitor::receive_samples(Context&, const SampleMetrics& told, Message& message) {
  for (const Sample& sample : told.samples) {
    board_.take(message.sender_name(), sample.name, sample.value);
  }
}

void Monitor::receive_finish(Context& context, const FinishMetrics& last) {
  finish_ = last;
  if (next_step_ >= finish_->told_until) return finish(context);
  // Metrics of other nodes take a way of their own, which may be slower.
  look_ = context.after(kLookEvery);
}

void Monitor::tell(std::uint64_t step, telemetry::RecordBody body) {
  sinks_->take({options_.time_of_day(), step, std::move(body)});
}

void Monitor::look_after_files() {
  if (options_.files_are_gone && options_.files_are_gone()) sinks_->put_back();
}

void Monitor::look_for_steps(Context& context) {
  if (!finish_) return;
  if (++looks_ == kMostLooks) return finish(context);
  context.post_progress();
  look_ = context.after(kLookEvery);
}

void Monitor::finish(Context& context) {
  look_after_files();
  const auto newest = std::move(finish_->newest);
  finish_.reset();
  if (newest && is_to_come(*newest)) tell_step(context, *newest);
  if (const std::uint64_t made = next_step_ - options_.first_step; made > written_) {
    context.log().warning(fmt::format(
        "{} lacks {} lines of steps that came faster than they could be written, or were lost with "
        "their node; training and checkpoints are whole",
        options_.sinks.metrics_path, made - written_));
  }
  if (compared_until_) {
    context.log().info(fmt::format(
        "--order: all states up to that before step {} are those of the run whose order it is",
        *compared_until_));
  }
  tell_samples(context);
  if (sinks_->dropped() > 0) {
    context.log().warning(fmt::format(
        "{} lines of {} or events for TensorBoard found no room on their disk and are lost",
        sinks_->dropped(), options_.sinks.metrics_path));
  }
  progress_.finish(context.now());
  context.send_control("coordinator", Message::of(LastStateDone{}));
}

// The step comes from another node, which may send anything.
bool Monitor::is_to_come(const StepMetrics& step) const {
  const std::size_t slots = options_.schedule.size();
  if (step.slot >= slots) return false;
  // Rounds have no losses.
  const bool has_losses = options_.schedule[step.slot] != model::SlotKind::kStatistics;
  return step.step >= next_step_ && step.iteration < options_.progress.iterations &&
         step.step == step.iteration * slots + step.slot &&
         step.losses.size() == (has_losses ? options_.losses.size() : 0);
}

void Monitor::compare_state(Context& context, std::uint64_t step, const std::string& hash) {
  if (step >= options_.ordered_states.size()) return;
  const std::string& expected = options_.ordered_states[step];
  compared_until_ = std::max(compared_until_.value_or(0), step);
  if (hash == expected) return;
  context.log().warning(fmt::format(
      "--order: the state before step {} is {}, and was {} in the run whose order it "
      "is, so that this run does not make its bits; it was a run of other data, another "
      "topology, seed, version or first weights",
      step, runtime::printable(hash), runtime::printable(expected)));
  options_.ordered_states.clear();
  compared_until_.reset();
}

void Monitor::tell_step(Context& context, const StepMetrics& step) {
  compare_state(context, step.step, step.state_hash.text());
  tell(step.step, facts_of(step, options_));
  next_step_ = step.step + 1;
  ++written_;
  looks_ = 0;
  if (options_.schedule[step.slot] == model::SlotKind::kStatistics) return;
  double total = 0.0;
  for (std::size_t i = 0; i < step.losses.size(); ++i) {
    total += options_.losses[i].weight * step.losses[i];
  }
  progress_.step(context.now(), step.iteration, options_.schedule[step.slot], total, step.events,
                 step.slot + 1 == options_.schedule.size());
}

// The record names the step that training has reached, so that a run that goes on from a checkpoint
// knows which lines to keep.
void Monitor::receive_change(Context&, const NodeChange& change) {
  // Members tell of themselves, nodes of pools do not.
  if (change.role != kPoolRole) reports_->take_change(change);
  tell(next_step_, telemetry::NodeFacts(change));
  if (change.pid != 0) devices_.erase(change.name);  // another process has the name now
  if (options_.on_node) options_.on_node(change);
}

void Monitor::receive_showers(Context& context, const ShowersMetrics& showers) {
  const std::string name = telemetry::showers_file_name(showers.step);
  const std::string path = fmt::format("{}/{}", options_.showers_folder, name);
  auto written = disk_.make_folder(options_.showers_folder);
  if (written.ok()) written = disk_.replace(path, std::as_bytes(std::span{showers.json}));
  if (!written.ok()) return context.log().warning(written.error().message);
  sinks_->take_showers(showers.json, showers.step, options_.time_of_day());
  tell(showers.step, telemetry::ShowersFacts{"showers/" + name});
}

void Monitor::receive_report(Context& context, const NodeReport& report, Message& message) {
  // A node tells what its process is called, and can be no other one's.
  const std::string& member = report.sample.node;
  if (!runtime::carries_out(member, message.sender_name())) return;
  reports_->take(member, report, message.payloads(), context.now());
  const auto clock = reports_->clock(member);
  using Seconds = std::chrono::duration<double>;
  take_sample(report.sample, clock ? Seconds(clock->error).count() : 0.0);
}

void Monitor::receive_question(Context& context, const Question& question) {
  const auto wanted = reports_->ask(question.wants, context.now(), question.done);
  if (wanted) probe(context, *wanted, reports_->members());
}

void Monitor::probe(Context& context, const Probe& probe, const auto& members) const {
  for (const std::string& member : members) {
    const auto number = config::member_number(member);
    context.send_control(number ? config::member_name(*number) : member, Message::of(Probe(probe)));
  }
}

void Monitor::take_sample(const telemetry::NodeSample& sample, double clock_error) {
  telemetry::History* const history = options_.sinks.history.get();
  if (history == nullptr) return;
  const bool has_rates = history->take_node(sample, options_.time_of_day(), clock_error);
  const auto node = history->node(sample.node);
  if (!node) return;
  note_device(*node);
  if (!has_rates) return;
  const std::string series = "node/" + sample.node;
  board_.take(series, "cores", node->cores);
  board_.take(series, "resident_bytes", static_cast<double>(sample.resident_bytes));
  board_.take(series, "sent_bytes_per_second", node->sent_per_second);
  board_.take(series, "received_bytes_per_second", node->received_per_second);
}

void Monitor::note_device(const telemetry::NodeState& node) {
  const auto& devices = node.sample.devices;
  if (!options_.on_node || node.state != "running" || devices.empty()) return;
  const std::string device = fmt::format("{} ({})", devices[0].device, devices[0].name);
  if (std::exchange(devices_[node.name], device) == device) return;
  options_.on_node(
      NodeChange{{.name = node.name, .role = node.role, .state = node.state, .device = device}});
}

void Monitor::tell_samples(Context& context) {
  reports_->tend(context.now());
  probe(context, reports_->beat(context.now()), reports_->take_turn());
  if (options_.sample) take_sample(options_.sample(), 0.0);
  // A session that has nothing to do is not worth a file.
  if (!board_.empty() && sinks_->has_begun()) {
    tell(next_step_, board_.take_values());
  }
  sinks_->flush();
  if (options_.sinks.history) {
    options_.sinks.history->set_dropped(sinks_->dropped() + board_.left_out());
  }
}

}  // namespace troupe::actors

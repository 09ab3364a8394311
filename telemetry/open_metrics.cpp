#include "telemetry/open_metrics.h"

#include <vector>

#include "telemetry/metrics_text.h"

namespace troupe::telemetry {
namespace {

using Type = MetricFamily::Type;

void add_run(const RunFacts& facts, MetricsText& text) {
  MetricSamples run;
  run.add({{"name", facts.name}, {"model", facts.model}, {"version", facts.version}}, 1.0);
  text.add({Type::kInfo, "troupe_run", "", "What is trained."}, run);
  text.add({Type::kGauge, "troupe_run_iterations", "", "Iterations that the run is to have."},
           static_cast<double>(facts.iterations));
}

void add_counts(const RunProgress& progress, MetricsText& text) {
  const auto count = [&text](std::string_view name, std::uint64_t value, std::string_view help) {
    text.add({Type::kCounter, name, "", help}, static_cast<double>(value));
  };
  count("troupe_steps", progress.steps, "Optimiser updates committed.");
  count("troupe_iterations", progress.iterations, "Iterations made.");
  count("troupe_epochs", progress.epochs, "Epochs made.");
  count("troupe_events", progress.events, "Showers trained on.");
  count("troupe_dropped", progress.dropped, "Metrics that found no room and were left out.");
  text.add({Type::kCounter, "troupe_node_time_seconds", "seconds",
            "Time of nodes that compute, added up."},
           progress.node_hours * 3600.0);
  text.add({Type::kCounter, "troupe_core_time_seconds", "seconds",
            "Time of processor cores that were busy, added up."},
           progress.core_hours * 3600.0);
  text.add({Type::kCounter, "troupe_cost", "", "Cost so far, in the currency of the price."},
           progress.cost);
}

void add_progress(const RunProgress& progress, MetricsText& text) {
  MetricSamples state;
  for (const char* name : {"starting", "training", "ended", "failed", "stopped"})
    state.add({{"state", name}}, progress.state == name ? 1.0 : 0.0);
  text.add({Type::kGauge, "troupe_run_state", "", "1 for the state that the run is in."}, state);
  add_counts(progress, text);
  text.add({Type::kGauge, "troupe_events_per_second", "", "Showers trained on a second, lately."},
           progress.events_per_second);
  if (progress.seconds_left) {
    text.add({Type::kGauge, "troupe_left_seconds", "seconds", "Time until the run is done."},
             *progress.seconds_left);
  }
  if (progress.began > 0.0) {
    text.add({Type::kGauge, "troupe_began_time_seconds", "seconds",
              "When the run began, since 1970; of a resumed one, its first session."},
             progress.began);
  }
  if (progress.newest > 0.0) {
    text.add({Type::kGauge, "troupe_newest_time_seconds", "seconds",
              "When the run told something last, since 1970."},
             progress.newest);
  }
}

// "loss/SLOT/TERM" is SLOT and TERM; false when it is something else.
bool split_loss(std::string_view series, std::string_view& slot, std::string_view& term) {
  constexpr std::string_view kLoss = "loss/";
  if (!series.starts_with(kLoss)) return false;
  series.remove_prefix(kLoss.size());
  const std::size_t slash = series.find('/');
  if (slash == std::string_view::npos) return false;
  slot = series.substr(0, slash);
  term = series.substr(slash + 1);
  return true;
}

void add_series(const std::vector<RecordPoint>& latest, MetricsText& text) {
  constexpr std::string_view kSeconds = "seconds/", kValidation = "validation/";
  MetricSamples loss, seconds, validation, others;
  for (const RecordPoint& value : latest) {
    const std::string_view series = value.series;
    std::string_view slot, term;
    if (split_loss(series, slot, term)) {
      loss.add({{"slot", slot}, {"term", term}}, value.value);
    } else if (series.starts_with(kSeconds)) {
      seconds.add({{"part", series.substr(kSeconds.size())}}, value.value);
    } else if (series.starts_with(kValidation)) {
      validation.add({{"figure", series.substr(kValidation.size())}}, value.value);
    } else {
      others.add({{"series", series}}, value.value);
    }
  }
  text.add({Type::kGauge, "troupe_loss", "", "Loss of the slot's newest step, by term."}, loss);
  text.add({Type::kGauge, "troupe_step_seconds", "seconds", "Time of the newest step, by part."},
           seconds);
  text.add({Type::kGauge, "troupe_validation", "", "Figures of the newest validation."},
           validation);
  text.add({Type::kGauge, "troupe_sample", "", "Newest number of every other series."}, others);
}

void add_nodes(const std::vector<NodeState>& nodes, MetricsText& text) {
  MetricSamples up, cores, cpu, resident, sent, received, clock;
  for (const NodeState& node : nodes) {
    up.add({{"node", node.name}, {"role", node.role}, {"host", node.host}},
           node.state == "running" ? 1.0 : 0.0);
    if (node.sampled <= 0.0) continue;
    cores.add({{"node", node.name}}, node.cores);
    cpu.add({{"node", node.name}}, node.sample.cpu_seconds);
    resident.add({{"node", node.name}}, static_cast<double>(node.sample.resident_bytes));
    sent.add({{"node", node.name}}, static_cast<double>(node.sample.sent_bytes));
    received.add({{"node", node.name}}, static_cast<double>(node.sample.received_bytes));
    clock.add({{"node", node.name}}, node.clock_error);
  }
  text.add({Type::kGauge, "troupe_node_up", "", "1 where the node is running."}, up);
  text.add({Type::kGauge, "troupe_node_cores", "", "Processor cores busy, lately."}, cores);
  text.add({Type::kCounter, "troupe_node_cpu_seconds", "seconds", "Processor time of the node."},
           cpu);
  text.add({Type::kGauge, "troupe_node_resident_bytes", "bytes", "Memory that the node holds."},
           resident);
  text.add({Type::kCounter, "troupe_node_sent_bytes", "bytes", "Sent to other nodes."}, sent);
  text.add({Type::kCounter, "troupe_node_received_bytes", "bytes", "Received from other nodes."},
           received);
  text.add({Type::kGauge, "troupe_node_clock_error_seconds", "seconds",
            "How far the node's clock may be off that of the head."},
           clock);
}

// Only of nodes that run: when a node is gone, so are its queues.
void add_actors_and_links(const std::vector<NodeState>& nodes, MetricsText& text) {
  MetricSamples handled, sent, dropped, queued, in_use, credits;
  for (const NodeState& node : nodes) {
    if (node.state != "running") continue;
    for (const ActorSample& actor : node.sample.actors) {
      handled.add({{"node", node.name}, {"actor", actor.name}}, static_cast<double>(actor.handled));
    }
    for (const LinkSample& link : node.sample.links) {
      const auto add = [&](MetricSamples& samples, std::int64_t value) {
        samples.add(
            {{"node", node.name}, {"from", link.from}, {"to", link.to}, {"port", link.port}},
            static_cast<double>(value));
      };
      add(sent, link.sent);
      add(dropped, link.dropped);
      add(queued, link.queued);
      if (link.credits == 0) continue;
      add(in_use, link.in_use);
      add(credits, link.credits);
    }
  }
  text.add({Type::kCounter, "troupe_actor_handled", "", "Messages the actor has handled."},
           handled);
  text.add({Type::kCounter, "troupe_link_sent", "", "Messages sent over the link."}, sent);
  text.add({Type::kCounter, "troupe_link_dropped", "", "Metrics that the link had no room for."},
           dropped);
  text.add({Type::kGauge, "troupe_link_queued", "", "Messages in the receiver's mailbox."}, queued);
  text.add({Type::kGauge, "troupe_link_in_use", "", "Credits that the link's sender has out."},
           in_use);
  text.add({Type::kGauge, "troupe_link_credits", "", "Credits of the link, messages."}, credits);
}

}  // namespace

MetricsFormat metrics_format(std::string_view accept) {
  return accept.find("application/openmetrics-text") != std::string_view::npos
             ? MetricsFormat::kOpenMetrics
             : MetricsFormat::kPrometheus;
}

std::string_view content_type(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string open_metrics(const History& history, MetricsFormat format) {
  MetricsText text(format);
  add_run(history.facts(), text);
  add_progress(history.progress(), text);
  add_series(history.latest(), text);
  const std::vector<NodeState> nodes = history.nodes();
  add_nodes(nodes, text);
  add_actors_and_links(nodes, text);
  return std::move(text).finish();
}

}  // namespace troupe::telemetry

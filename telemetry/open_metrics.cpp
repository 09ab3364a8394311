#include "telemetry/open_metrics.h"

#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/utf8.h"

namespace troupe::telemetry {
namespace {

enum class Kind { kGauge, kCounter, kInfo };

struct Family {
  Kind kind = Kind::kGauge;
  std::string_view name;  // without "_total" and "_info"; its unit, if any, stands at its end
  std::string_view help;  // without line breaks and backslashes
};

// By labels. The last one with the same labels stays.
using Samples = std::map<std::string, double>;
using Label = std::pair<std::string_view, std::string_view>;

std::string escaped(std::string_view value) {
  std::string out;
  for (const char letter : runtime::valid_utf8(value)) {
    if (letter == '\\' || letter == '"') out += '\\';
    if (letter == '\n') {
      out += "\\n";
    } else {
      out += letter;
    }
  }
  return out;
}

// Values may hold anything; bytes that are not UTF-8 become U+FFFD.
std::string labels(std::initializer_list<Label> all) {
  std::string text;
  for (const auto& [name, value] : all) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "{" : ",", name, escaped(value));
  }
  return text + '}';
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0.0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// The syntax of OpenMetrics 1.0 and of the text format of Prometheus
// (https://github.com/OpenObservability/OpenMetrics, exposition formats of Prometheus 0.0.4).
class Printer {
 public:
  explicit Printer(MetricsFormat format) : is_open_(format == MetricsFormat::kOpenMetrics) {}

  // Adds nothing when there are no samples. Each family comes once.
  void add(const Family& family, const Samples& samples) {
    if (samples.empty()) return;
    const bool is_counter = family.kind == Kind::kCounter, is_info = family.kind == Kind::kInfo;
    const std::string sample = fmt::format("{}{}", family.name,
                                           is_counter ? "_total"
                                           : is_info  ? "_info"
                                                      : "");
    // Prometheus' own format has no families: it describes the name that stands before the number.
    const std::string_view described = is_open_ ? family.name : std::string_view(sample);
    text_ += fmt::format("# TYPE {} {}\n", described,
                         is_counter            ? "counter"
                         : is_info && is_open_ ? "info"
                                               : "gauge");
    for (const std::string_view unit : {"seconds", "bytes"}) {
      if (!is_open_ || !family.name.ends_with(fmt::format("_{}", unit))) continue;
      text_ += fmt::format("# UNIT {} {}\n", described, unit);
    }
    text_ += fmt::format("# HELP {} {}\n", described, family.help);
    for (const auto& [labels, value] : samples) {
      text_ += fmt::format("{}{} {}\n", sample, labels, number_text(value));
    }
  }

  std::string finish() && {
    if (is_open_) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  const bool is_open_;
  std::string text_;
};

// The number that a family tells of one thing; nothing: the thing has no such number.
using Number = std::optional<double>;
template <class Thing>
struct FamilyOf {
  Family family;
  Number (*number)(const Thing&);
};

Number number(auto value) { return static_cast<double>(value); }
// Nothing for a number below 0, which stands for one that is not known.
Number told(auto value) { return value < 0 ? Number() : number(value); }
Number positive(double value) { return value > 0.0 ? Number(value) : std::nullopt; }

constexpr FamilyOf<RunProgress> kOfTheRun[] = {
    {{Kind::kCounter, "troupe_steps", "Optimiser updates committed."},
     [](const RunProgress& run) { return number(run.steps); }},
    {{Kind::kCounter, "troupe_iterations", "Iterations made."},
     [](const RunProgress& run) { return number(run.iterations); }},
    {{Kind::kCounter, "troupe_epochs", "Epochs made."},
     [](const RunProgress& run) { return number(run.epochs); }},
    {{Kind::kCounter, "troupe_events", "Showers trained on."},
     [](const RunProgress& run) { return number(run.events); }},
    {{Kind::kCounter, "troupe_dropped", "Metrics that found no room and were left out."},
     [](const RunProgress& run) { return number(run.dropped); }},
    {{Kind::kCounter, "troupe_node_time_seconds", "Time of nodes that compute, added up."},
     [](const RunProgress& run) { return number(run.node_hours * 3600.0); }},
    {{Kind::kCounter, "troupe_core_time_seconds",
      "Time of processor cores that were busy, added up."},
     [](const RunProgress& run) { return number(run.core_hours * 3600.0); }},
    {{Kind::kCounter, "troupe_cost", "Cost so far, in the currency of the price."},
     [](const RunProgress& run) { return number(run.cost); }},
    {{Kind::kGauge, "troupe_events_per_second", "Showers trained on a second, lately."},
     [](const RunProgress& run) { return number(run.events_per_second); }},
    {{Kind::kGauge, "troupe_left_seconds", "Time until the run is done."},
     [](const RunProgress& run) { return run.seconds_left; }},
    {{Kind::kGauge, "troupe_began_time_seconds",
      "When the run began, since 1970; of a resumed one, its first session."},
     [](const RunProgress& run) { return positive(run.began); }},
    {{Kind::kGauge, "troupe_newest_time_seconds", "When the run told something last, since 1970."},
     [](const RunProgress& run) { return positive(run.newest); }},
};

// Families of nodes that have told of themselves.
constexpr FamilyOf<NodeState> kOfNodes[] = {
    {{Kind::kGauge, "troupe_node_cores", "Processor cores busy, lately."},
     [](const NodeState& node) { return number(node.cores); }},
    {{Kind::kCounter, "troupe_node_cpu_seconds", "Processor time of the node."},
     [](const NodeState& node) { return number(node.sample.cpu_seconds); }},
    {{Kind::kGauge, "troupe_node_resident_bytes", "Memory that the node holds."},
     [](const NodeState& node) { return number(node.sample.resident_bytes); }},
    {{Kind::kCounter, "troupe_node_sent_bytes", "Sent to other nodes."},
     [](const NodeState& node) { return number(node.sample.sent_bytes); }},
    {{Kind::kCounter, "troupe_node_received_bytes", "Received from other nodes."},
     [](const NodeState& node) { return number(node.sample.received_bytes); }},
    {{Kind::kGauge, "troupe_node_clock_error_seconds",
      "How far the node's clock may be off that of the head."},
     [](const NodeState& node) { return number(node.clock_error); }},
};

// A link of control has no credits.
constexpr FamilyOf<LinkSample> kOfLinks[] = {
    {{Kind::kCounter, "troupe_link_sent", "Messages sent over the link."},
     [](const LinkSample& link) { return number(link.sent); }},
    {{Kind::kCounter, "troupe_link_dropped", "Metrics that the link had no room for."},
     [](const LinkSample& link) { return number(link.dropped); }},
    {{Kind::kGauge, "troupe_link_queued", "Messages in the receiver's mailbox."},
     [](const LinkSample& link) { return number(link.queued); }},
    {{Kind::kGauge, "troupe_link_in_use", "Credits that the link's sender has out."},
     [](const LinkSample& link) { return link.credits == 0 ? Number() : number(link.in_use); }},
    {{Kind::kGauge, "troupe_link_credits", "Credits of the link, messages."},
     [](const LinkSample& link) { return link.credits == 0 ? Number() : number(link.credits); }},
};

constexpr FamilyOf<DeviceSample> kOfDevices[] = {
    {{Kind::kGauge, "troupe_device_own_bytes", "Memory of the device that the node has."},
     [](const DeviceSample& device) { return number(device.own_bytes); }},
    {{Kind::kGauge, "troupe_device_used_bytes", "Memory of the device that all processes have."},
     [](const DeviceSample& device) { return told(device.used_bytes); }},
    {{Kind::kGauge, "troupe_device_memory_bytes", "Memory of the device."},
     [](const DeviceSample& device) { return number(device.memory_bytes); }},
    {{Kind::kGauge, "troupe_device_busy_ratio", "Share of time that the device computes, lately."},
     [](const DeviceSample& device) { return told(device.busy); }},
    {{Kind::kGauge, "troupe_device_watts", "Power that the device takes."},
     [](const DeviceSample& device) { return told(device.watts); }},
    {{Kind::kGauge, "troupe_device_celsius", "Temperature of the device."},
     [](const DeviceSample& device) { return told(device.celsius); }},
};

void add_run(const RunFacts& facts, const RunProgress& progress, Printer& text) {
  text.add(
      {Kind::kInfo, "troupe_run", "What is trained."},
      {{labels({{"name", facts.name}, {"model", facts.model}, {"version", facts.version}}), 1.0}});
  text.add({Kind::kGauge, "troupe_run_iterations", "Iterations that the run is to have."},
           {{"", static_cast<double>(facts.iterations)}});
  Samples states;
  for (const char* name : {"starting", "training", "ended", "failed", "stopped"}) {
    states[labels({{"state", name}})] = progress.state == name ? 1.0 : 0.0;
  }
  text.add({Kind::kGauge, "troupe_run_state", "1 for the state that the run is in."}, states);
  for (const auto& [family, number] : kOfTheRun) {
    if (const Number value = number(progress)) text.add(family, {{"", *value}});
  }
}

void add_series(const std::vector<RecordPoint>& latest, Printer& text) {
  constexpr std::string_view kLoss = "loss/", kSeconds = "seconds/", kValidation = "validation/";
  Samples loss, seconds, validation, others;
  for (const auto& [name, value] : latest) {
    const std::string_view series = name;
    // "loss/SLOT/TERM"
    const std::size_t slash = series.find('/', kLoss.size());
    if (series.starts_with(kLoss) && slash != std::string_view::npos) {
      const std::string_view slot = series.substr(kLoss.size(), slash - kLoss.size());
      loss[labels({{"slot", slot}, {"term", series.substr(slash + 1)}})] = value;
    } else if (series.starts_with(kSeconds)) {
      seconds[labels({{"part", series.substr(kSeconds.size())}})] = value;
    } else if (series.starts_with(kValidation)) {
      validation[labels({{"figure", series.substr(kValidation.size())}})] = value;
    } else {
      others[labels({{"series", series}})] = value;
    }
  }
  text.add({Kind::kGauge, "troupe_loss", "Loss of the slot's newest step, by term."}, loss);
  text.add({Kind::kGauge, "troupe_step_seconds", "Time of the newest step, by part."}, seconds);
  text.add({Kind::kGauge, "troupe_validation", "Figures of the newest validation."}, validation);
  text.add({Kind::kGauge, "troupe_sample", "Newest number of every other series."}, others);
}

void add_nodes(const std::vector<NodeState>& nodes, Printer& text) {
  Samples up;
  for (const NodeState& node : nodes) {
    up[labels({{"node", node.name}, {"role", node.role}, {"host", node.host}})] =
        node.state == "running" ? 1.0 : 0.0;
  }
  text.add({Kind::kGauge, "troupe_node_up", "1 where the node is running."}, up);
  for (const auto& [family, number] : kOfNodes) {
    Samples samples;
    for (const NodeState& node : nodes) {
      // Every family of kOfNodes has a number for every node.
      if (node.sampled > 0.0) samples[labels({{"node", node.name}})] = *number(node);
    }
    text.add(family, samples);
  }
}

// Adds families of parts of nodes, by labels.
template <class Families, class Part>
void add_all(const Families& families, const std::map<std::string, Part>& parts, Printer& text) {
  for (const auto& [family, number] : families) {
    Samples samples;
    for (const auto& [name, part] : parts) {
      if (const Number value = number(part)) samples[name] = *value;
    }
    text.add(family, samples);
  }
}

// Only of nodes that run: when a node is gone, so are its queues.
void add_parts(const std::vector<NodeState>& nodes, Printer& text) {
  Samples handled;
  std::map<std::string, LinkSample> links;  // by labels
  std::map<std::string, DeviceSample> devices;
  for (const NodeState& node : nodes) {
    if (node.state != "running") continue;
    for (const ActorSample& actor : node.sample.actors) {
      handled[labels({{"node", node.name}, {"actor", actor.name}})] =
          static_cast<double>(actor.handled);
    }
    for (const LinkSample& link : node.sample.links) {
      links[labels(
          {{"node", node.name}, {"from", link.from}, {"to", link.to}, {"port", link.port}})] = link;
    }
    for (const DeviceSample& device : node.sample.devices) {
      devices[labels({{"node", node.name}, {"device", device.device}, {"name", device.name}})] =
          device;
    }
  }
  text.add({Kind::kCounter, "troupe_actor_handled", "Messages the actor has handled."}, handled);
  add_all(kOfLinks, links, text);
  add_all(kOfDevices, devices, text);
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
  Printer text(format);
  add_run(history.facts(), history.progress(), text);
  add_series(history.latest(), text);
  const std::vector<NodeState> nodes = history.nodes();
  add_nodes(nodes, text);
  add_parts(nodes, text);
  return std::move(text).finish();
}

}  // namespace troupe::telemetry

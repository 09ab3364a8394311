#include "telemetry/history_json.h"

#include <iterator>

#include <fmt/format.h>

#include "runtime/base/json_text.h"

namespace troupe::telemetry {
namespace {

using runtime::json_number;
using runtime::json_string;
using Out = std::back_insert_iterator<std::string>;

// Every item printed by `print`, with commas between.
template <class Items, class Print>
void list(std::string& out, const Items& items, const Print& print) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    print(item);
  }
  out += ']';
}

// Times need more digits than measured numbers.
std::string time_text(double seconds) { return fmt::format("{:.3f}", seconds); }

void print_run(std::string& out, const RunFacts& run) {
  fmt::format_to(Out(out), R"(,"run":{{"name":{},"model":{},"version":{},"schedule":)",
                 json_string(run.name), json_string(run.model), json_string(run.version));
  list(out, run.schedule, [&](const std::string& slot) { out += json_string(slot); });
  out += R"(,"losses":)";
  list(out, run.losses, [&](const auto& loss) {
    fmt::format_to(Out(out), "[{},{}]", json_string(loss.first), json_number(loss.second));
  });
  fmt::format_to(Out(out),
                 R"(,"iterations":{},"iterations_per_epoch":{},"micro_batches":{},)"
                 R"("micro_batch":{},"price_per_node_hour":{}}})",
                 run.iterations, run.iterations_per_epoch, run.micro_batches, run.micro_batch,
                 json_number(run.price_per_node_hour));
}

void print_progress(std::string& out, const RunProgress& now) {
  fmt::format_to(
      Out(out),
      R"(,"progress":{{"state":{},"error":{},"steps":{},"iterations":{},"epochs":{},"epoch":{},)"
      R"("all_epochs":{},"events":{},)"
      R"("events_per_second":{},"seconds_left":{},"dropped":{},"began":{},"newest":{},)"
      R"("node_hours":{},"core_hours":{},"cost":{}}})",
      json_string(now.state), json_string(now.error), now.steps, now.iterations, now.epochs,
      now.epoch, now.all_epochs, now.events, json_number(now.events_per_second),
      now.seconds_left ? json_number(*now.seconds_left) : "null", now.dropped, time_text(now.began),
      time_text(now.newest), json_number(now.node_hours), json_number(now.core_hours),
      json_number(now.cost));
}

void print_node(std::string& out, const NodeState& node) {
  fmt::format_to(Out(out),
                 R"({{"name":{},"host":{},"role":{},"pid":{},"state":{},"cause":{},"since":{},)"
                 R"("cores":{},"resident_bytes":{},"sent_per_second":{},"received_per_second":{},)"
                 R"("clock_error":{},"actors":)",
                 json_string(node.name), json_string(node.host), json_string(node.role), node.pid,
                 json_string(node.state), json_string(node.cause), time_text(node.since),
                 json_number(node.cores), node.sample.resident_bytes,
                 json_number(node.sent_per_second), json_number(node.received_per_second),
                 json_number(node.clock_error));
  list(out, node.sample.actors, [&](const ActorSample& actor) {
    fmt::format_to(Out(out), R"({{"name":{},"state":{},"handled":{}}})", json_string(actor.name),
                   json_string(actor.state), actor.handled);
  });
  out += R"(,"links":)";
  list(out, node.sample.links, [&](const LinkSample& link) {
    fmt::format_to(Out(out),
                   R"({{"from":{},"to":{},"port":{},"sent":{},"in_use":{},"credits":{},)"
                   R"("queued":{},"dropped":{}}})",
                   json_string(link.from), json_string(link.to), json_string(link.port), link.sent,
                   link.in_use, link.credits, link.queued, link.dropped);
  });
  out += '}';
}

void print_series(std::string& out, const SeriesNews& series) {
  fmt::format_to(Out(out), R"({}:{{"width":{},"from":{},"x":)", json_string(series.name),
                 series.width, series.from);
  list(out, series.points,
       [&](const SeriesPoint& point) { fmt::format_to(Out(out), "{}", point.x); });
  const auto print = [&](const char* name, double SeriesPoint::*part) {
    fmt::format_to(Out(out), R"(,"{}":)", name);
    list(out, series.points,
         [&](const SeriesPoint& point) { fmt::format_to(Out(out), "{:.6g}", point.*part); });
  };
  print("mean", &SeriesPoint::mean);
  print("low", &SeriesPoint::low);
  print("high", &SeriesPoint::high);
  out += '}';
}

void print_lists(std::string& out, const HistoryNews& news) {
  if (!news.marks.empty()) {
    out += R"(,"marks":)";
    list(out, news.marks, [&](const Mark& mark) {
      fmt::format_to(Out(out), R"({{"kind":{},"step":{},"time":{},"text":{}}})",
                     json_string(mark.kind), mark.step, time_text(mark.time),
                     json_string(mark.text));
    });
  }
  if (!news.validations.empty()) {
    out += R"(,"validations":)";
    list(out, news.validations, [&](const Validation& validation) {
      fmt::format_to(Out(out), R"({{"step":{},"time":{},"rows":{}}})", validation.step,
                     time_text(validation.time), validation.rows);
    });
  }
  if (!news.log.empty()) {
    out += R"(,"log":)";
    list(out, news.log, [&](const LogLine& line) {
      fmt::format_to(Out(out), R"({{"time":{},"level":{},"text":{}}})", time_text(line.time),
                     json_string(line.level), json_string(line.text));
    });
  }
}

}  // namespace

std::string history_json(const HistoryNews& news) {
  std::string out = fmt::format(R"({{"version":{},"whole":{},"now":{})", news.version, news.whole,
                                time_text(news.now));
  if (news.run) print_run(out, *news.run);
  if (news.progress) print_progress(out, *news.progress);
  if (!news.series.empty()) {
    out += R"(,"series":{)";
    for (const SeriesNews& series : news.series) {
      if (out.back() != '{') out += ',';
      print_series(out, series);
    }
    out += '}';
  }
  if (news.nodes) {
    out += R"(,"nodes":)";
    list(out, *news.nodes, [&](const NodeState& node) { print_node(out, node); });
  }
  if (news.showers) {
    out += R"(,"showers":)";
    list(out, *news.showers, [&](std::uint64_t step) { fmt::format_to(Out(out), "{}", step); });
  }
  print_lists(out, news);
  return out + "}";
}

}  // namespace troupe::telemetry

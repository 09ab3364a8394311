#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "launch/processes/signal_watch.h"
#include "launch/run/measured_pace.h"
#include "launch/run/run_outlook.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "runtime/base/amount_text.h"
#include "runtime/base/json_writer.h"

namespace troupe {
namespace {

using launch::MeasuredPace;
using launch::RunOutlook;
using pipeline::OutlookLine;

// The object that --json prints.
struct PlanLine {
  std::vector<std::pair<std::string, std::uint32_t>> nodes;
  const OutlookLine& line;
  double events_per_second = 0.0;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<PlanLine> auto& plan) {
  archive.map("nodes", plan.nodes, [](auto& item, auto& count) { item.number("", count); });
  archive.number("workers", plan.line.workers);
  archive.real("events_per_second", plan.events_per_second);
  archive.real("efficiency", plan.line.efficiency);
  for (const auto& [name, forecast] :
       {std::pair("expected", &plan.line.forecast), std::pair("at_best", &plan.line.at_best),
        std::pair("at_worst", &plan.line.at_worst)}) {
    archive.group(name, [made = forecast](auto& members) {
      members.real("seconds", made->seconds);
      members.real("cost", made->cost);
      members.flag("lasts", made->lasts);
    });
  }
  archive.flag("cheapest", plan.line.is_cheapest);
  archive.flag("fastest", plan.line.is_fastest);
  archive.flag("recommended", plan.line.is_recommended);
}

struct PlanAnswer {
  const RunOutlook& told;
  const MeasuredPace& pace;
  std::vector<PlanLine> lines;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<PlanAnswer> auto& plan) {
  archive.group("measured", [&](auto& measured) {
    measured.number("workers", plan.pace.workers);
    measured.list("iteration_seconds", plan.pace.iterations, SIZE_MAX,
                  [](auto& item, auto seconds) { item.real("", seconds); });
    measured.real("worker_events_per_second", plan.told.speed);
    measured.real("ring_bytes_per_second", plan.pace.ring_bytes_per_second);
    measured.real("doubt", plan.told.doubt.pace);
  });
  archive.number("iterations", plan.told.iterations);
  archive.number("events_per_iteration", plan.told.events_per_iteration);
  archive.list("lines", plan.lines, SIZE_MAX);
  archive.text("reason", plan.told.outlook.reason, SIZE_MAX);
  archive.list("assumptions", plan.told.assumptions, SIZE_MAX);
}

double events_per_second(const RunOutlook& told, const OutlookLine& line) {
  return line.iterations_per_second * static_cast<double>(told.events_per_iteration);
}

std::string json(const RunOutlook& told, const MeasuredPace& pace) {
  PlanAnswer plan{told, pace, {}};
  for (const OutlookLine& line : told.outlook.lines) {
    PlanLine& made = plan.lines.emplace_back(PlanLine{{}, line, events_per_second(told, line)});
    for (std::size_t i = 0; i < told.pools.size(); ++i) {
      made.nodes.emplace_back(told.pools[i], line.forecast.nodes[i]);
    }
  }
  return runtime::json_members(plan);
}

std::string marks_of(const OutlookLine& line) {
  std::string marks;
  if (line.is_cheapest) marks += "  cheapest";
  if (line.is_fastest) marks += "  fastest";
  if (line.is_recommended) marks += "  recommended";
  if (!line.forecast.lasts) marks += "  the budget does not last";
  return marks;
}

std::string text_of(const RunOutlook& told, const OutlookLine& line, std::size_t width) {
  using pipeline::time_text;
  const std::string efficiency =
      line.forecast.lasts ? fmt::format("{:.0f} %", 100.0 * line.efficiency) : "-";
  return fmt::format("{:<{}} {:>7} {:>9.4g} {:>12} {:>12} {:>12} {:>9} {:>11}{}\n", line.nodes,
                     width, line.workers, events_per_second(told, line),
                     time_text(line.forecast.seconds), time_text(line.at_best.seconds),
                     time_text(line.at_worst.seconds), runtime::amount_text(line.forecast.cost),
                     efficiency, marks_of(line));
}

// `strategy`: pipeline::strategy_text().
void print_for_people(const RunOutlook& told, const MeasuredPace& pace,
                      const std::string& strategy) {
  const auto [low, high] = std::ranges::minmax(pace.iterations);
  std::cout << fmt::format(
      "measured: {} iteration{} of {} worker{}, {:.3g} to {:.3g} s each; a worker computes {:.4g} "
      "events/s\nthe run: {} iterations of {} events\n{}\n",
      pace.iterations.size(), pace.iterations.size() == 1 ? "" : "s", pace.workers,
      pace.workers == 1 ? "" : "s", low, high, told.speed, told.iterations,
      told.events_per_iteration, strategy.empty() ? "" : strategy + "\n");
  std::size_t width = 5;
  for (const OutlookLine& line : told.outlook.lines) width = std::max(width, line.nodes.size());
  std::cout << fmt::format("{:<{}} {:>7} {:>9} {:>12} {:>12} {:>12} {:>9} {:>11}\n", "nodes", width,
                           "workers", "events/s", "time", "at best", "at worst", "cost",
                           "efficiency");
  for (const OutlookLine& line : told.outlook.lines) std::cout << text_of(told, line, width);
  const bool recommends = std::ranges::any_of(told.outlook.lines, &OutlookLine::is_recommended);
  std::cout << (recommends ? "\nrecommended: " : "\nno line is recommended: ")
            << told.outlook.reason
            << fmt::format(
                   "\nat best and at worst: workers are {:.0f} % faster or slower than measured, "
                   "and lines {:g} times as fast or slow\nassumed:\n",
                   100.0 * told.doubt.pace, told.doubt.line);
  for (const std::string& assumption : told.assumptions) std::cout << "  " << assumption << "\n";
}

// Where a run without --out has its data.
std::string data_folder() {
  return std::filesystem::absolute("runs/data").lexically_normal().string();
}

// Measured here, or what the earlier run's folder tells; none: a signal ended it.
runtime::Result<launch::PaceMeasured> pace_of(const CommandLine& line,
                                              const config::LoadedTopology& loaded) {
  if (line.has("run")) {
    ASSIGN_OR_RETURN(MeasuredPace pace,
                     launch::read_pace(line.get<std::string>("run"), loaded.topology));
    return launch::PaceMeasured{std::move(pace), 0};
  }
  launch::hold_signals();
  ASSIGN_OR_RETURN(runtime::Log log, open_log(log_level(line)));
  launch::PaceMeasurement how;
  line.take("iterations", how.iterations);
  how.data_folder = data_folder();
  how.version = TROUPE_VERSION;
  how.progress = stderr;
  how.progress_on_terminal = ::isatty(STDERR_FILENO) == 1;
  return launch::measure_pace(loaded, how, log);
}

int plan(const CommandLine& line) {
  if (line.has("run") && line.has("iterations")) {
    return line.usage_error("--run takes the pace of that run; leave out --iterations");
  }
  const auto path = line.get<std::string>("topology");
  tell_if_shipped(path);
  auto loaded = config::load_topology(path, settings(line));
  if (!loaded.ok()) return report(loaded.error());
  // A price that nobody tells is known before minutes are spent on measuring.
  auto& pools = loaded->topology.cluster.pools;
  if (const auto priced = launch::ask_prices(pools); !priced.ok()) return report(priced.error());
  const auto measured = pace_of(line, *loaded);
  if (!measured.ok()) return report(measured.error());
  if (!measured->pace) {
    note_failure(fmt::format("stopped by signal {}", measured->signal));
    return 128 + measured->signal;
  }
  std::optional<std::uint32_t> workers;
  line.take("workers", workers);
  std::string earlier;
  line.take("run", earlier);
  const auto told = launch::run_outlook(*loaded, workers, *measured->pace, earlier);
  if (!told.ok()) return report(told.error());
  if (line.get<bool>("json")) {
    answer(json(*told, *measured->pace));
  } else {
    print_for_people(*told, *measured->pace,
                     pipeline::strategy_text(loaded->topology.train.options));
  }
  return 0;
}

}  // namespace

Command plan_verb() {
  return {
      .name = "plan",
      .summary = "how fast a run would be with nodes of its pools, and what they would cost",
      .about =
          "Trains a few iterations here, or takes the pace of an earlier run, and forecasts "
          "the whole run with various numbers of nodes: events per second, time, cost, and "
          "how much of the workers' time is of use. Nothing is asked for.",
      .example = "troupe plan config/topologies/quickstart.yaml",
      .places = {{.name = "topology", .asked = "which topology file?", .takes = Takes::kTopology}},
      .options = {setting_option(),
                  workers_option("members of no pool, as in troupe run"),
                  {.name = "iterations",
                   .value = "N",
                   .about = "iterations to be timed here, behind a first one (default 8)",
                   .takes = Takes::kWhole,
                   .least = 1,
                   .most = 1'000'000},
                  {.name = "run",
                   .value = "DIR",
                   .about = "takes the pace of the run in this folder, and how its pools "
                            "started nodes; nothing is trained",
                   .takes = Takes::kFolder},
                  log_level_option(),
                  json_option()},
      .synonyms = {"forecast", "estimate"},
      .carry_out = plan};
}

}  // namespace troupe

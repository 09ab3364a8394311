#include <algorithm>
#include <iostream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "config/topology_identity.h"
#include "launch/run/judgement.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "runtime/base/json_text.h"
#include "runtime/plan_groups.h"

namespace troupe {
namespace {

std::string told(const launch::Placement& placement, const std::string& ring) {
  const std::uint32_t members = placement.members;
  if (members == 0) return "placement: everything in this process\n";
  const std::size_t here = placement.here.size();
  return fmt::format("placement: a head and {} member{}, each a process{}\n{}", members,
                     members == 1 ? "" : "s",
                     here == members ? "" : fmt::format("; {} of them on this machine", here),
                     ring.empty() ? "" : ring + "\n");
}

std::string line_of(const std::string& text) { return text.empty() ? "" : text + "\n"; }

// "network generator: input 200, 16 layers, 872948 parameters". Its layers are in the full text.
std::string short_text(const std::string& network) {
  const std::string head = network.substr(0, network.find('\n'));
  const std::size_t last = network.find_last_not_of('\n');
  const std::size_t begin = network.rfind('\n', last) + 1;
  const auto lines = std::count(network.begin(), network.begin() + std::ptrdiff_t(begin), '\n');
  return fmt::format("{}, {} layers, {}\n", head, lines - 2,
                     network.substr(begin + 2, last - begin - 1));
}

// `all`: every layer, actor and link, instead of groups of equal ones.
void print_for_people(const config::LoadedTopology& loaded, const launch::Judgement& judged,
                      bool all) {
  const launch::RunBounds& bounds = judged.bounds;
  const model::GanDescription& gan = loaded.topology.model.gan;
  for (const auto* network : {&gan.generator, &gan.discriminator}) {
    if (network->layers.empty()) continue;  // a task of one network has no generator
    const std::string text = model::print_network(*network, model::infer_shapes(*network));
    std::cout << (all ? text + "\n" : short_text(text));
  }
  std::cout << (all ? runtime::print(bounds.plan) : runtime::print_groups(bounds.plan)) << "\n"
            << fmt::format(
                   "bounds: {:.1f} MB of messages at most; {:.1f} MB of activations and {:.1f} MB "
                   "of state per replica; {}{}\n",
                   static_cast<double>(bounds.message_bytes) / 1e6,
                   static_cast<double>(bounds.arena_bytes) / 1e6,
                   static_cast<double>(bounds.state_bytes) / 1e6, launch::iteration_text(bounds),
                   bounds.cache_bytes > 0
                       ? fmt::format("; {:.1f} MB of kept events in each process",
                                     static_cast<double>(bounds.cache_bytes) / 1e6)
                       : "")
            << line_of(pipeline::strategy_text(loaded.topology.train.options))
            << line_of(bounds.sites) << told(judged.placement, bounds.ring)
            << line_of(judged.device)
            << "topology hash: " << config::topology_hash(loaded.topology).text() << "\n";
}

std::string json(const config::LoadedTopology& loaded, const launch::RunBounds& bounds) {
  return fmt::format(
      R"("topology_hash":"{}","actors":{},"links":{},"message_bytes":{},"arena_bytes":{},)"
      R"("state_bytes":{},"iteration_bytes":{},"cache_bytes":{},"plan":{})",
      config::topology_hash(loaded.topology).text(), bounds.plan.actors.size(),
      runtime::count_links(bounds.plan), bounds.message_bytes, bounds.arena_bytes,
      bounds.state_bytes, bounds.iteration_bytes, bounds.cache_bytes,
      runtime::json_string(runtime::print(bounds.plan)));
}

// As troupe run does; says on standard error what such a run would go without, and what keeps this
// machine from it, as the run may be meant for another.
runtime::Result<launch::Judgement> judge(const config::LoadedTopology& loaded,
                                         std::optional<std::uint32_t> workers, bool with_data) {
  ASSIGN_OR_RETURN(launch::Judgement judgement, launch::judge_run(loaded, workers));
  runtime::LogOptions lines;
  lines.to_stderr = false;
  lines.also = [](runtime::LogLevel level, std::string_view line) {
    const bool warns = level == runtime::LogLevel::kWarning;
    std::cerr << "troupe: " << (warns ? "warning: " : "") << line << "\n";
  };
  ASSIGN_OR_RETURN(runtime::Log log, runtime::Log::open(lines));
  const auto opened = launch::judge_by_opening(loaded, with_data, log, judgement);
  for (const runtime::Error& here : judgement.here) log.warning(here.message);
  if (judgement.idle) log.warning(*judgement.idle);
  for (const std::string& warning : judgement.warnings) log.warning(warning);
  RETURN_IF_ERROR(opened);
  return judgement;
}

int check(const CommandLine& line) {
  const auto path = line.get<std::string>("topology");
  tell_if_shipped(path);
  const auto loaded = config::load_topology(path, settings(line));
  if (!loaded.ok()) return report(loaded.error());
  std::optional<std::uint32_t> workers;
  line.take("workers", workers);
  const auto judged = judge(*loaded, workers, !line.get<bool>("no-data"));
  if (!judged.ok()) return report(judged.error());
  if (line.get<bool>("json")) {
    answer(json(*loaded, judged->bounds));
  } else {
    print_for_people(*loaded, *judged, line.get<bool>("links"));
  }
  return 0;
}

}  // namespace

Command check_verb() {
  return {
      .name = "check",
      .summary = "say everything that is wrong with a topology file, or what it would do",
      .about =
          "Says everything that is wrong with a topology file, each with its place, and all else "
          "for which troupe run would refuse it here: it reads the data files, which takes as long "
          "as a run's first look at them. Else prints the networks, the wiring and the bounds it "
          "would run with.",
      .example = "troupe check config/topologies/gan3d_25.yaml",
      .places = {{.name = "topology", .asked = "which topology file?", .takes = Takes::kTopology}},
      .options = {setting_option(),
                  workers_option("as in troupe run"),
                  {.name = "no-data", .about = "leaves the data files alone"},
                  {.name = "links",
                   .about = "prints every layer, actor and link by itself, where there would be "
                            "groups and counts"},
                  json_option()},
      .synonyms = {"validate", "lint"},
      .carry_out = check};
}

}  // namespace troupe

#include <iostream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "config/member_ring.h"
#include "config/topology_file.h"
#include "config/topology_identity.h"
#include "launch/judgement.h"
#include "main/command_line.h"
#include "main/commands.h"
#include "runtime/base/json_text.h"

namespace troupe {
namespace {

namespace po = boost::program_options;

std::string told(const config::ClusterSection& cluster, const launch::Placement& placement) {
  const std::uint32_t members = placement.members;
  if (members == 0) return "placement: everything in this process\n";
  const std::size_t here = placement.here.size();
  const std::string ring = config::ring_text(cluster, members);
  return fmt::format("placement: a head and {} member{}, each a process{}\n{}", members,
                     members == 1 ? "" : "s",
                     here == members ? "" : fmt::format("; {} of them on this machine", here),
                     ring.empty() ? "" : ring + "\n");
}

void print_for_people(const config::LoadedTopology& loaded, const launch::RunBounds& bounds,
                      const launch::Placement& placement) {
  const model::GanDescription& gan = loaded.topology.model.gan;
  for (const auto* network : {&gan.generator, &gan.discriminator}) {
    std::cout << model::print_network(*network, model::infer_shapes(*network)) << "\n";
  }
  std::cout << runtime::print(bounds.plan) << "\n"
            << fmt::format(
                   "bounds: {:.1f} MB of messages at most; {:.1f} MB of activations and {:.1f} MB "
                   "of state per replica; {:.1f} MB for the micro-batches of an iteration\n",
                   static_cast<double>(bounds.message_bytes) / 1e6,
                   static_cast<double>(bounds.arena_bytes) / 1e6,
                   static_cast<double>(bounds.state_bytes) / 1e6,
                   static_cast<double>(bounds.iteration_bytes) / 1e6)
            << told(loaded.topology.cluster, placement)
            << "topology hash: " << config::topology_hash(loaded.topology).text() << "\n";
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
  for (const std::string& warning : judgement.warnings) log.warning(warning);
  RETURN_IF_ERROR(opened);
  return judgement;
}

}  // namespace

int check_command(const Arguments& arguments) {
  CommandLine line(
      "check T.yaml [--workers N] [--set a.b=c]... [--no-data] [--json]",
      "Says everything that is wrong with a topology file, each with its place, and all\n"
      "else for which troupe run would refuse it here: it reads the data files, which\n"
      "takes as long as a run's first look at them. Else prints the networks, the\n"
      "wiring and the bounds it would run with.",
      "troupe check config/topologies/gan3d_25.yaml");
  line.positional("topology");
  line.add()("set", po::value<std::vector<std::string>>()->composing(),
             "a.b=c: sets one value of the topology; may be repeated")(
      "workers", po::value<std::uint32_t>(), "as in troupe run")(
      "no-data", po::bool_switch(), "leave the data files alone")("json", po::bool_switch(),
                                                                  "print one JSON object");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("topology")) return line.usage_error("which topology file?");
  std::vector<std::string> overrides;
  if (line.has("set")) overrides = line.get<std::vector<std::string>>("set");
  const auto loaded = config::load_topology(line.get<std::string>("topology"), overrides);
  if (!loaded.ok()) return report(loaded.error());
  std::optional<std::uint32_t> workers;
  if (line.has("workers")) workers = line.get<std::uint32_t>("workers");
  if (workers.value_or(0) > config::kMostMembers) {
    return line.usage_error(fmt::format("--workers: at most {}", config::kMostMembers));
  }
  const auto judged = judge(*loaded, workers, !line.get<bool>("no-data"));
  if (!judged.ok()) return report(judged.error());
  const launch::RunBounds& bounds = judged->bounds;
  if (!line.get<bool>("json")) {
    print_for_people(*loaded, bounds, judged->placement);
  } else {
    std::cout << fmt::format(
        R"({{"topology_hash":"{}","actors":{},"links":{},"message_bytes":{},"arena_bytes":{},)"
        R"("state_bytes":{},"iteration_bytes":{},"plan":{}}})"
        "\n",
        config::topology_hash(loaded->topology).text(), bounds.plan.actors.size(),
        bounds.plan.links.size(), bounds.message_bytes, bounds.arena_bytes, bounds.state_bytes,
        bounds.iteration_bytes, runtime::json_string(runtime::print(bounds.plan)));
  }
  return 0;
}

}  // namespace troupe

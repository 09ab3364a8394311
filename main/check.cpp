#include <algorithm>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "config/member_ring.h"
#include "config/topology_file.h"
#include "config/topology_identity.h"
#include "launch/memory_bounds.h"
#include "launch/placement.h"
#include "main/command_line.h"
#include "main/commands.h"
#include "main/common_options.h"
#include "runtime/base/json_text.h"
#include "runtime/plan_groups.h"

namespace troupe {
namespace {

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
void print_for_people(const config::LoadedTopology& loaded, const launch::RunBounds& bounds,
                      const launch::Placement& placement, bool all) {
  const model::GanDescription& gan = loaded.topology.model.gan;
  for (const auto* network : {&gan.generator, &gan.discriminator}) {
    const std::string text = model::print_network(*network, model::infer_shapes(*network));
    std::cout << (all ? text + "\n" : short_text(text));
  }
  std::cout << (all ? runtime::print(bounds.plan) : runtime::print_groups(bounds.plan)) << "\n"
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

std::string json(const config::LoadedTopology& loaded, const launch::RunBounds& bounds) {
  return fmt::format(
      R"("topology_hash":"{}","actors":{},"links":{},"message_bytes":{},"arena_bytes":{},)"
      R"("state_bytes":{},"iteration_bytes":{},"plan":{})",
      config::topology_hash(loaded.topology).text(), bounds.plan.actors.size(),
      bounds.plan.links.size(), bounds.message_bytes, bounds.arena_bytes, bounds.state_bytes,
      bounds.iteration_bytes, runtime::json_string(runtime::print(bounds.plan)));
}

int check(const CommandLine& line) {
  const auto path = line.get<std::string>("topology");
  tell_if_shipped(path);
  const auto loaded = config::load_topology(path, settings(line));
  if (!loaded.ok()) return report(loaded.error());
  if (const auto printed = config::check_printed(*loaded); !printed.ok()) {
    return report(printed.error());
  }
  std::optional<std::uint32_t> workers;
  if (line.has("workers")) workers = line.get<std::uint32_t>("workers");
  const auto placement = launch::place_run(*loaded, workers);
  if (!placement.ok()) return report(placement.error());
  const auto bounds = launch::run_bounds(*loaded, placement->members);
  if (!bounds.ok()) return report(bounds.error());
  // The run may be meant for another machine.
  if (placement->unresolved) {
    std::cerr << "troupe: warning: " << placement->unresolved->message << "\n";
  }
  if (placement->unheeded) std::cerr << "troupe: warning: " << *placement->unheeded << "\n";
  if (const auto fits =
          launch::check_memory(*bounds, placement->computing_here(), launch::usable_memory());
      !fits.ok()) {
    std::cerr << "troupe: warning: " << fits.error().message << "\n";
  }
  if (line.get<bool>("json")) {
    answer(json(*loaded, *bounds));
  } else {
    print_for_people(*loaded, *bounds, *placement, line.get<bool>("links"));
  }
  return 0;
}

}  // namespace

const Command& check_verb() {
  static const Command kVerb{
      .name = "check",
      .summary = "say everything that is wrong with a topology file, or what it would do",
      .about =
          "Says everything that is wrong with a topology file, each with its place; else "
          "prints the networks, the wiring and the bounds it would run with.",
      .example = "troupe check config/topologies/gan3d_25.yaml",
      .places = {{.name = "topology", .asked = "which topology file?", .takes = Takes::kTopology}},
      .options = {setting_option(),
                  workers_option("as in troupe run"),
                  {.name = "links",
                   .about = "prints every layer, actor and link by itself, where there would be "
                            "groups and counts"},
                  json_option()},
      .synonyms = {"validate", "lint"},
      .carry_out = check};
  return kVerb;
}

}  // namespace troupe

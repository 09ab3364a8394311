// The pools of the `cluster` section: where nodes come from.

#include <set>

#include <fmt/format.h>

#include "config/list_codecs.h"
#include "config/scalar_codecs.h"
#include "config/topology_fields.h"

namespace troupe::config {
namespace {

using Pools = std::vector<PoolSection>;

bool is_of_ssh(const PoolSection& pool) { return pool.launcher == LauncherKind::kSsh; }
bool is_of_kubernetes(const PoolSection& pool) {
  return pool.launcher == LauncherKind::kKubernetes;
}
bool is_of_command(const PoolSection& pool) { return pool.launcher == LauncherKind::kCommand; }

CodecOf<std::vector<std::string>> texts() {
  return list<std::string>(text("a word of a command line"), 0, 256);
}

void check_pool(const PoolSection& pool, Reader& reader) {
  const auto problem = [&](const char* field, const std::string& message) {
    reader.problem_at(fmt::format("{}.{}", reader.path(), field), message);
  };
  if (pool.nodes > pool.most) {
    problem("nodes", fmt::format("{} nodes are more than `most` ({}) has", pool.nodes, pool.most));
  }
  if (is_of_ssh(pool) && pool.hosts.empty()) {
    problem("hosts", "a pool of ssh needs the hosts that it takes its nodes from");
  }
  if (is_of_ssh(pool) && !pool.hosts.empty() && pool.nodes > pool.hosts.size()) {
    problem("nodes", fmt::format("each of {} hosts is one node at a time", pool.hosts.size()));
  }
  if (is_of_kubernetes(pool) && pool.image.empty()) {
    problem("image", "a pool of kubernetes needs the image that its nodes run");
  }
  const bool is_object_name =
      pool.name.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos &&
      !pool.name.starts_with('-') && !pool.name.ends_with('-');
  if (is_of_kubernetes(pool) && !is_object_name) {
    problem("name", "Kubernetes takes names of small letters, digits and '-' inside them");
  }
  if (is_of_command(pool) && (pool.start.empty() || pool.stop.empty())) {
    problem("start", "a pool of commands needs `start` and `stop`");
  }
}

void add_kubernetes_fields(Record<PoolSection>& record) {
  record
      .field("namespace", &PoolSection::namespace_there,
             text("a namespace of Kubernetes", R"(([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?)"),
             Scope::kFree, "Namespace of its nodes; \"\": that of kubectl's context.")
      .used_if("launcher: kubernetes", is_of_kubernetes)
      .field("image", &PoolSection::image, text("an image"), Scope::kFree,
             "Image that its nodes run, as `./dev package` makes it.")
      .used_if("launcher: kubernetes", is_of_kubernetes)
      .field("pod", &PoolSection::pod, optional(path("a file")), Scope::kFree,
             "File with a part of a pod's template, which is laid over that of its nodes; relative "
             "to this file; by default none.")
      .used_if("launcher: kubernetes", is_of_kubernetes);
}

}  // namespace

CodecOf<Pools> pools() {
  auto record = std::make_shared<Record<PoolSection>>(
      "a pool such as {name: hpc, launcher: slurm, nodes: 4}");
  record
      ->required("name", &PoolSection::name, text("a pool's name", R"([A-Za-z0-9_-]{1,40})"),
                 Scope::kFree, "Name of the pool; its nodes are called NAME.0, NAME.1 ...")
      .required("launcher", &PoolSection::launcher,
                word<LauncherKind>({{"ssh", LauncherKind::kSsh},
                                    {"slurm", LauncherKind::kSlurm},
                                    {"kubernetes", LauncherKind::kKubernetes},
                                    {"command", LauncherKind::kCommand}}),
                Scope::kFree, "How its nodes are started: docs/launching.md.")
      .field("nodes", &PoolSection::nodes, integer<std::uint32_t>(0, kMostMembers), Scope::kFree,
             "Nodes that are wanted when the run begins; `troupe burst` changes it.")
      .field("most", &PoolSection::most, integer<std::uint32_t>(1, kMostMembers), Scope::kFree,
             "The most nodes that are ever wanted.")
      .field("workers", &PoolSection::workers, integer<std::uint32_t>(1, kMostMembers),
             Scope::kFree, "Members that a node carries.")
      .field("hosts", &PoolSection::hosts,
             list<std::string>(
                 text("a host as ssh takes it", R"([A-Za-z0-9_.:@%][A-Za-z0-9_.:@%-]{0,252})"), 1,
                 kMostMembers),
             Scope::kFree, "Hosts, each of which is one node at a time.")
      .used_if("launcher: ssh", is_of_ssh)
      .field("options", &PoolSection::options, texts(), Scope::kFree,
             "Further words of the command line of ssh, sbatch or kubectl.")
      .used_if("launcher: ssh, slurm or kubernetes",
               [](const PoolSection& pool) { return !is_of_command(pool); });
  add_kubernetes_fields(*record);
  record
      ->field("program", &PoolSection::program, text("a path"), Scope::kFree,
              "Path of troupe on a node; \"\": the same as here, or that of the image.")
      .field("join", &PoolSection::join, texts(), Scope::kFree,
             "Further words of `troupe join` on a node: [--data, remote].")
      .field("start", &PoolSection::start, text("a command"), Scope::kFree,
             "Command that starts a node; its output is the node's id.")
      .used_if("launcher: command", is_of_command)
      .field("stop", &PoolSection::stop, text("a command"), Scope::kFree,
             "Command that stops a node.")
      .used_if("launcher: command", is_of_command)
      .field("list", &PoolSection::list, text("a command"), Scope::kFree,
             "Command that prints a line for each node that there is, its name first; \"\": there "
             "is none, and a node counts as gone when it was stopped.")
      .used_if("launcher: command", is_of_command)
      .field("starts_in", &PoolSection::starts_in, duration(std::chrono::seconds(1)), Scope::kFree,
             "How long a node may take from its start to its first member; then it is stopped, and "
             "another one is asked for.")
      .field("stops_in", &PoolSection::stops_in, duration(std::chrono::seconds(1)), Scope::kFree,
             "How long a node may cost something after it was to be given back. A budget has to do "
             "for this time too, and may be exceeded where nodes take longer.")
      .field("price_per_node_hour", &PoolSection::price_per_node_hour,
             number(NumberRange{0.0, 1e6, false}), Scope::kFree,
             "Price of one of its nodes for an hour, in any currency.")
      .field("price", &PoolSection::price, text("a command"), Scope::kFree,
             "Command that prints this price as it is now, and nothing before it; it is run every "
             "minute. \"\": the price does not change.")
      .field("spot", &PoolSection::spot, boolean(), Scope::kFree,
             "Whether its nodes may be taken away at any time. Until losses were measured, "
             "forecasts count one in ten hours of a node.")
      .field("speed", &PoolSection::speed, number(NumberRange{0.001, 1000.0, false}), Scope::kFree,
             "How fast its workers compute beside those that are of no pool, until it is measured: "
             "0.5 is half as fast.")
      .check([](const YamlValue&, const PoolSection& pool, Reader& reader) {
        check_pool(pool, reader);
      });
  return list<PoolSection>(CodecOf<PoolSection>(record), 0, 64);
}

CodecOf<std::optional<BurstSection>> burst() {
  auto record =
      std::make_shared<Record<BurstSection>>("limits such as {finish_within: 6h, budget: 40}");
  record
      ->field("finish_within", &BurstSection::finish_within,
              optional(duration(std::chrono::seconds(1))), Scope::kFree,
              "When the run shall have ended, from its beginning on, pauses included; by default "
              "no matter when.")
      .field("budget", &BurstSection::budget, optional(number(NumberRange{0.0, 1e9, false})),
             Scope::kFree,
             "What nodes of all pools may cost together, in the currency of their prices; by "
             "default no matter what.")
      .field("decide_every", &BurstSection::decide_every, duration(std::chrono::seconds(1)),
             Scope::kFree, "How often it is decided anew how many nodes are wanted.")
      .check([](const YamlValue&, const BurstSection& burst, Reader& reader) {
        if (burst.finish_within || burst.budget) return;
        reader.problem_at(reader.path(), "give `finish_within`, `budget` or both");
      });
  return optional(CodecOf<BurstSection>(record));
}

void check_pools(const ClusterSection& cluster, Reader& reader) {
  if (cluster.burst && cluster.pools.empty()) {
    reader.problem_at(reader.path() + ".burst", "there are no pools to take nodes from");
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    if (names.insert(cluster.pools[i].name).second) continue;
    reader.problem_at(fmt::format("{}.pools.{}.name", reader.path(), i),
                      "another pool has this name");
  }
}

}  // namespace troupe::config

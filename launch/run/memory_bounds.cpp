#include "launch/run/memory_bounds.h"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include "config/member_ring.h"
#include "config/plan.h"
#include "config/workers.h"
#include "launch/run/networks.h"
#include "launch/run/training_setup.h"
#include "pipeline/steps/micro_batch.h"
#include "pipeline/steps/step_ahead.h"
#include "runtime/base/name_list.h"

namespace troupe::launch {

std::string iteration_text(const RunBounds& bounds) {
  return fmt::format(
      "{:.1f} MB for the {}", static_cast<double>(bounds.iteration_bytes) / 1e6,
      bounds.of_workers ? "workers of an outer step" : "micro-batches of an iteration");
}

namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// Why the processes do not fit, and what helps.
Error too_large(const std::string& need, const std::string& have, const RunBounds& bounds,
                bool several) {
  return {ErrorKind::kTopology,
          fmt::format(
              "{}, and {}: {:.1f} MB of activations and {:.1f} MB of state for each of {} "
              "replicas{}, {}{}{}; lower {}train.micro_batch, train.micro_batches, {}"
              "actors.replica.count or actors.replica.threads, or make the networks smaller",
              need, have, static_cast<double>(bounds.arena_bytes) / 1e6,
              static_cast<double>(bounds.state_bytes) / 1e6, bounds.replicas,
              several ? " of a process" : "", iteration_text(bounds), several ? ", shared out" : "",
              bounds.cache_bytes > 0 ? fmt::format(", {:.1f} MB of events (data.shard_memory)",
                                                   static_cast<double>(bounds.cache_bytes) / 1e6)
                                     : "",
              several ? "the number of workers here, " : "",
              bounds.of_workers ? "train.strategy.steps, " : "")};
}

// In the order in which sites take them; empty: there is one process.
std::vector<std::uint32_t> replicas_by_site(const config::Topology& topology, const model::Gan& gan,
                                            std::uint32_t members) {
  std::vector<std::uint32_t> replicas;
  if (members < 2) return replicas;
  const auto ring = config::member_ring(topology.cluster, members);
  for (const auto member : pipeline::site_order(ring, ring_costs(topology, gan, members))) {
    for (std::uint32_t i = 0; i < topology.replica.count; ++i) {
      replicas.push_back(member * topology.replica.count + i);
    }
  }
  return replicas;
}

// "sites: member.0, member.1; member.2, member.3": who makes each worker's iterations.
std::string sites_text(const std::vector<std::uint32_t>& owners, std::uint32_t parts,
                       std::uint32_t replicas_per_member) {
  std::vector<std::string> sites;
  for (std::size_t first = 0; first < owners.size(); first += parts) {
    std::vector<std::string> members;
    for (std::size_t i = first; i < first + parts; ++i) {
      std::string name = config::member_name(owners[i] / replicas_per_member);
      if (std::ranges::find(members, name) == members.end()) members.push_back(std::move(name));
    }
    sites.push_back(runtime::name_list(members));
  }
  return fmt::format("sites: {}", fmt::join(sites, "; "));
}

// Notes who makes what when the run begins, and its bytes: `computed` for each micro-batch between
// members, and `batch` for each of its parts.
void share_out(const config::Topology& topology, const model::Gan& gan, std::uint32_t members,
               std::int64_t batch, std::int64_t computed, RunBounds& bounds) {
  const auto options = config::options_between_members(topology);
  const auto weights = config::replica_weights(topology, members);
  const std::uint32_t parts = options.parts(), replicas_per_member = topology.replica.count;
  const auto owners = pipeline::assign_micro_batches(options.all_parts(), weights, parts,
                                                     replicas_by_site(topology, gan, members));
  if (members > 1 && parts > 1) bounds.sites = sites_text(owners, parts, replicas_per_member);
  std::vector<std::int64_t> owned(weights.size());
  for (const std::uint32_t owner : owners) ++owned[owner];
  bounds.share_bytes.resize(owned.size() / replicas_per_member);
  for (std::size_t replica = 0; replica < owned.size(); ++replica) {
    const std::int64_t wholes = (owned[replica] + parts - 1) / parts;
    bounds.share_bytes[replica / replicas_per_member] += owned[replica] * batch + wholes * computed;
  }
}

// Fakes and contributions, of so many elements, of a micro-batch, and with rounds its passes.
std::int64_t computed_bytes(const model::Gan& gan, const pipeline::TrainingOptions& options,
                            std::int64_t elements) {
  const std::int64_t bytes = (gan.fake_elements() + elements) * std::int64_t{sizeof(float)};
  if (!options.has_rounds()) return bytes;
  return bytes + static_cast<std::int64_t>(model::GanStream::size_for(gan).all);
}

// The plan has slots for members that may come later: what stays is what the run begins with.
void leave_out_places(std::uint32_t members, runtime::Plan& plan) {
  if (members == 0) return;
  std::set<std::string> nodes{config::kHeadNode};
  for (std::uint32_t i = 0; i < members; ++i) nodes.insert(config::member_name(i));
  std::set<std::string> actors;
  std::erase_if(plan.actors, [&](const runtime::ActorPlan& actor) {
    const bool stays = nodes.contains(actor.node);
    if (stays) actors.insert(actor.name);
    return !stays;
  });
  std::erase_if(plan.links, [&](const runtime::LinkPlan& link) {
    return !actors.contains(link.from) || !actors.contains(link.to);
  });
  std::erase_if(plan.meshes, [&](runtime::MeshPlan& mesh) {
    std::erase_if(mesh.actors, [&](const std::string& actor) { return !actors.contains(actor); });
    return mesh.actors.size() < 2;
  });
}

// One member at a time sends snapshots, and one loader feeds a replica, although any of them may
// have to.
class AlternativeLinks {
 public:
  // False: it stands for one that was counted.
  bool operator()(const runtime::LinkPlan& link) {
    if (link.to_port == "snapshots" || link.to_port == "batches") {
      return counted_.insert(link.to).second;
    }
    return true;
  }

 private:
  std::set<std::string> counted_;
};

// Fakes and contributions of the micro-batches of a worker's iteration, as below.
std::int64_t worker_bytes(const model::Gan& gan, const pipeline::WorkerOptions& worker) {
  std::int64_t elements = 0;
  for (const model::SlotKind slot : worker.schedule) {
    elements = std::max(elements, gan.contributions(slot).size);
  }
  const std::int64_t fakes = gan.fake_elements();
  return worker.micro_batches * (fakes + elements) * std::int64_t{sizeof(float)};
}

}  // namespace

Result<RunBounds> run_bounds(const config::LoadedTopology& loaded, std::uint32_t members) {
  const config::Topology topology = config::scaled(loaded.topology, members);
  const auto options = config::options_between_members(topology);
  // A device has activations in memory of its own, which compile_networks() looks at where the
  // device is.
  const bool on_host = topology.replica.device == config::kProcessor;
  config::Topology without_device = topology;
  without_device.replica.device = config::kProcessor;
  ASSIGN_OR_RETURN(const Networks networks, compile_networks(without_device, members));
  const auto& gan = networks.gan;
  RunBounds bounds;
  AlternativeLinks first_of_its_kind;
  ASSIGN_OR_RETURN(bounds.plan, plan_of_run(loaded, *gan, size_of_run(topology, members)));
  leave_out_places(members, bounds.plan);
  if (members > 1) {
    bounds.ring = config::ring_text(topology.cluster, members, ring_costs(topology, *gan, members));
  }
  for (const runtime::LinkPlan& link : bounds.plan.links) {
    if (first_of_its_kind(link)) bounds.message_bytes += link.byte_credits;
  }
  // A reducer sends to the next of its ring, or of its row and columns what would go there.
  for (const runtime::MeshPlan& mesh : bounds.plan.meshes) {
    bounds.message_bytes += static_cast<std::int64_t>(mesh.actors.size()) * mesh.byte_credits;
  }
  for (const auto* program : {&gan->generator(), &gan->discriminator()}) {
    bounds.arena_bytes +=
        static_cast<std::int64_t>(program->arena_bytes() + program->scratch_bytes());
  }
  bounds.arena_bytes *= on_host ? topology.replica.threads : 0;
  // Both steps of two under way are kept, if two can be: a site makes steps of a worker while
  // another one has its turn.
  const bool has_two =
      pipeline::keeps_two_steps(options.schedule) || (options.has_turns() && options.parts() > 1);
  const std::int64_t steps = has_two ? 2 : 1;
  const config::NetworkSizes sizes = sizes_of(topology, *gan);
  const std::int64_t elements = sizes.contribution_elements;
  // Each step has its own part and the sum; lossy formats keep more of every slot (below).
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(std::int64_t));
  bounds.arena_bytes += 2 * steps * elements * kElement;
  // The sums of the newest step, for members that lack them when another is lost.
  if (members > 1) bounds.arena_bytes += elements * kElement;
  if (options.lossy) {
    bounds.arena_bytes += static_cast<std::int64_t>(options.schedule.size()) * elements * kElement;
  }
  // Values on their way to a device, and the sums that come from there: of all replicas together.
  if (!on_host) {
    bounds.arena_bytes += ((std::int64_t{64} << 20) + elements * kElement) / topology.replica.count;
  }
  bounds.state_bytes = state_bytes(topology, *gan);
  bounds.replicas = topology.replica.count;
  if (topology.data.dataset.cache == pipeline::CacheMode::kShard) {
    bounds.cache_bytes = static_cast<std::int64_t>(topology.data.dataset.shard_bytes);
  }
  const std::int64_t computed = on_host ? computed_bytes(*gan, options, steps * elements) : 0;
  // A worker that trains alone has a state and micro-batches of its own.
  bounds.of_workers = options.worker.has_value();
  if (options.worker) {
    config::Topology of_worker = topology;
    if (options.has_turns()) of_worker.train.options.strategy = {};
    bounds.state_bytes += state_bytes(of_worker, *gan);
    bounds.arena_bytes += on_host ? worker_bytes(*gan, *options.worker) : 0;
  }
  bounds.iteration_bytes =
      options.all_parts() * sizes.batch_bytes + options.micro_batches * computed;
  share_out(topology, *gan, members, sizes.batch_bytes, computed, bounds);
  return bounds;
}

// Each process has the arenas and the state of all its replicas, and its own share of an iteration.
// The largest must fit into what one process may use, and all together into the machine.
Result<void> check_memory(const RunBounds& bounds, const std::vector<std::uint32_t>& processes_here,
                          const UsableMemory& usable) {
  const double replicas =
      bounds.replicas * static_cast<double>(bounds.arena_bytes + bounds.state_bytes);
  double all = 0, largest = 0;
  for (const std::uint32_t process : processes_here) {
    const double bytes = replicas + static_cast<double>(bounds.cache_bytes) +
                         static_cast<double>(bounds.share_bytes.at(process));
    all += bytes;
    largest = std::max(largest, bytes);
  }
  const bool several = processes_here.size() > 1;
  if (largest > usable.process) {
    return too_large(fmt::format("a run needs {:.1f} GB of memory or more{}", largest / 1e9,
                                 several ? " in one process" : ""),
                     fmt::format("{:.1f} GB may be used here", usable.process / 1e9), bounds,
                     several);
  }
  if (all <= usable.machine) return {};
  return too_large(
      fmt::format("a run needs {:.1f} GB of memory or more on this machine, for {} processes of up "
                  "to {:.1f} GB each",
                  all / 1e9, processes_here.size(), largest / 1e9),
      fmt::format("{:.1f} GB may be used here", usable.machine / 1e9), bounds, several);
}

}  // namespace troupe::launch

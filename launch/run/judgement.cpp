#include "launch/run/judgement.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "config/workers.h"
#include "launch/meeting/invitation.h"
#include "launch/meeting/key_folder.h"
#include "launch/meeting/node_uplink.h"
#include "launch/meeting/socket_folder.h"
#include "launch/run/networks.h"
#include "launch/run/run_page.h"
#include "launch/run/trained.h"
#include "launch/run/training_data.h"
#include "pipeline/leaving/warm_start.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "telemetry/sinks/publisher.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

std::string placed(const config::LoadedTopology& loaded, const char* field,
                   const std::string& what) {
  return config::problem_of(loaded.origins, field, what).text();
}

// Why what the topology says in this field cannot be had. A command line is not at fault.
Error refusal_at(const config::LoadedTopology& loaded, const char* field, const Error& why) {
  const bool is_usage = why.kind == ErrorKind::kUsage;
  return {is_usage ? ErrorKind::kTopology : why.kind, placed(loaded, field, why.message)};
}

// In one message, as one look shall find all of it.
Error all_of(const std::vector<Error>& errors) {
  Error all = errors.front();
  for (std::size_t i = 1; i < errors.size(); ++i) all.message += "\n" + errors[i].message;
  return all;
}

// Processes of their own need keys and a topology that they can be told, besides a place to meet.
void judge_members(const config::LoadedTopology& loaded, std::vector<Error>& refusals) {
  if (const auto fits = check_topology_fits(config::print_topology(loaded)); !fits.ok()) {
    refusals.push_back(fits.error());
  }
  const std::optional<std::string>& folder = loaded.topology.cluster.keys;
  if (!folder) return;
  if (const auto keys = read_key_folder(*folder); !keys.ok()) {
    refusals.push_back(refusal_at(loaded, "cluster.keys", keys.error()));
  }
}

// Opens the place where the head will wait, and closes it again.
Result<void> try_meeting(const config::LoadedTopology& loaded, const Placement& placement,
                         const runtime::Log& log) {
  if (placement.members == 0) return {};
  const runtime::SteadyClock clock;
  runtime::UcxFabric ucx(clock);
  if (const auto opened = open_fabric(loaded.topology.cluster, ucx, runtime::Log::silent());
      !opened.ok()) {
    return refusal_at(loaded, "cluster.fabric", opened.error());
  }
  if (!placement.network) {
    RETURN_IF_ERROR(SocketFolder::make());
    return {};
  }
  const NodeCredentials credentials{loaded.topology.cluster.keys, std::nullopt};
  const auto wire = open_wire(placement.network->listen, credentials, clock, log);
  if (wire.ok()) return {};
  return refusal_at(loaded, "cluster.listen", wire.error());
}

// Whether files can be made in the folder, or the folder where it is to be.
Result<void> check_writable(const config::LoadedTopology& loaded, const char* field,
                            const std::string& folder) {
  if (folder.empty()) return {};
  std::filesystem::path nearest = folder;
  std::error_code ignored;
  while (!std::filesystem::exists(nearest, ignored) && nearest.has_relative_path()) {
    nearest = nearest.parent_path();
  }
  const bool is_folder = std::filesystem::is_directory(nearest, ignored);
  if (is_folder && ::access(nearest.c_str(), W_OK | X_OK) == 0) return {};
  return Error{ErrorKind::kData,
               placed(loaded, field,
                      fmt::format("nothing can be written to {}: {} is {}", folder,
                                  nearest.string(), is_folder ? "read-only here" : "no folder"))};
}

// The run goes on without them, so that nothing else tells of them.
std::optional<std::string> idle_members(const config::Topology& topology, std::uint32_t members,
                                        const RunBounds& bounds) {
  const auto idle = std::ranges::count(bounds.share_bytes, 0);
  if (idle == 0 || !topology.cluster.shares.empty()) return std::nullopt;
  const auto options = config::options_between_members(config::scaled(topology, members));
  const bool of_workers = options.worker && options.parts() == 1;
  return fmt::format(
      "{} of the {} members have nothing to compute, as an iteration has {} {} ({}); they wait "
      "until another one leaves or is lost",
      idle, bounds.share_bytes.size(), options.all_parts(),
      of_workers ? "workers" : "micro-batches",
      of_workers ? "train.strategy.workers" : "train.micro_batches");
}

}  // namespace

// The rest is judged by the placement and the bounds, so an error in these is told alone.
// Later ones are gathered.
Result<Judgement> judge_run(const config::LoadedTopology& loaded,
                            std::optional<std::uint32_t> workers,
                            std::optional<Placement> placement) {
  RETURN_IF_ERROR(config::check_printed(loaded));
  Judgement judgement;
  if (placement) {
    judgement.placement = *std::move(placement);
  } else {
    ASSIGN_OR_RETURN(judgement.placement, place_run(loaded, workers));
  }
  ASSIGN_OR_RETURN(judgement.bounds, run_bounds(loaded, judgement.placement.members));
  std::vector<Error> refusals;
  if (judgement.placement.members > 0) judge_members(loaded, refusals);
  if (const std::string& address = loaded.topology.monitor.publish; address != "none") {
    const auto possible = telemetry::Publisher::check_address(address);
    if (!possible.ok()) {
      refusals.push_back({ErrorKind::kTopology,
                          placed(loaded, "actors.monitor.publish", possible.error().message)});
    }
  }
  if (!refusals.empty()) return all_of(refusals);
  if (judgement.placement.unresolved) judgement.here.push_back(*judgement.placement.unresolved);
  if (judgement.placement.unheeded) judgement.warnings.push_back(*judgement.placement.unheeded);
  judgement.idle = idle_members(loaded.topology, judgement.placement.members, judgement.bounds);
  const auto fits =
      check_memory(judgement.bounds, judgement.placement.computing_here(), usable_memory());
  if (!fits.ok()) judgement.here.push_back(fits.error());
  if (loaded.topology.replica.device != config::kProcessor) {
    const std::uint32_t members = judgement.placement.members;
    const auto networks = compile_networks(config::scaled(loaded.topology, members), members);
    if (networks.ok()) {
      judgement.device = device_text(*networks->backend);
    } else {
      judgement.here.push_back(refusal_at(loaded, "actors.replica.device", networks.error()));
    }
  }
  return judgement;
}

Result<void> judge_by_opening(const config::LoadedTopology& loaded, bool with_data,
                              runtime::Log& log, Judgement& judgement) {
  const config::Topology& topology = loaded.topology;
  const auto note = [&judgement](const Result<void>& result) {
    if (!result.ok()) judgement.here.push_back(result.error());
  };
  // A name that leads nowhere has been told of.
  if (!judgement.placement.unresolved) note(try_meeting(loaded, judgement.placement, log));
  if (auto why = try_page(topology.monitor)) judgement.warnings.push_back(*std::move(why));
  if (topology.monitor.publish != "none") {
    const auto publisher = telemetry::Publisher::open({.address = topology.monitor.publish});
    if (!publisher.ok()) judgement.warnings.push_back(publisher.error().message);
  }
  if (!with_data) return {};
  if (topology.data.synthetic) {
    note(check_writable(loaded, "data.synthetic.folder", topology.data.showers.folder));
  }
  const auto index =
      check_writable(loaded, "data.index_folder", topology.data.dataset.index_folder);
  if (!index.ok()) judgement.warnings.push_back(index.error().message);
  if (topology.train.from) {
    runtime::FileDisk disk;
    pipeline::TrainingState unused;
    const auto taken =
        pipeline::take_weights(*topology.train.from, topology.model.gan, disk, unused);
    if (!taken.ok()) {
      return refusal_at(loaded, "train.from", taken.error());
    }
  }
  if (topology.validator.judge && topology.validator.validates()) {
    const auto judge = open_judge(*topology.validator.judge, topology);
    if (!judge.ok()) {
      return Error{judge.error().kind,
                   placed(loaded, "actors.validator.judge", judge.error().message)};
    }
  }
  return try_training_data(config::scaled(topology, judgement.placement.members), loaded.origins,
                           log);
}

}  // namespace troupe::launch

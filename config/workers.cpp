#include "config/workers.h"

#include <algorithm>

#include <fmt/format.h>

#include "pipeline/data/dataset_paths.h"
#include "pipeline/steps/view.h"

namespace troupe::config {
namespace {

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "": as many shares as workers, or none.
std::string shares_mismatch(const Topology& topology, std::uint32_t workers) {
  const std::size_t shares = topology.cluster.shares.size();
  if (shares == 0 || shares == workers) return "";
  return fmt::format("{} for {}; give one for each, or auto", counted(shares, "share"),
                     counted(workers, "worker"));
}

}  // namespace

std::uint32_t workers_of(const Topology& topology, std::optional<std::uint32_t> override) {
  if (override) return *override;
  std::uint32_t workers = 0;
  for (const HostSection& host : topology.cluster.hosts) workers += host.workers;
  // The first node of a pool begins the run, where nobody else does.
  if (workers == 0 && !topology.cluster.pools.empty()) return 1;
  return workers;
}

// The number of workers may come from the command, so these rules are no part of reading the file.
runtime::Result<void> check_workers(const Topology& topology, std::uint32_t workers,
                                    const Origins& origins) {
  Problems problems;
  const auto complain = [&](const std::vector<std::string>& fields, const std::string& what) {
    Problem problem = problem_of(origins, field_to_mend(fields, origins), what);
    problems.add(std::move(problem.place), std::move(problem.message));
  };
  if (workers > kMostMembers) {
    complain({"cluster.hosts"},
             fmt::format("{} workers together; a run has at most {}", workers, kMostMembers));
  }
  const std::uint64_t each = topology.train.options.micro_batches;
  const bool weak = topology.train.scaling == Scaling::kWeak;
  if (weak && each * std::max(workers, 1U) > pipeline::kMostMicroBatches) {
    complain(
        {"train.micro_batches"},
        fmt::format("scaling: weak makes {} x {} = {} of them in an iteration, which has at "
                    "most {}",
                    each, counted(workers, "worker"), each * workers, pipeline::kMostMicroBatches));
  }
  // With another scaling the number of workers changes nothing, and reading the file has told of a
  // shortage.
  if (const std::string what = event_shortage(topology, workers); weak && !what.empty()) {
    complain(event_shortage_fields(), what);
  }
  // A run in one process has no members to share with or to wait for.
  if (workers > 0) {
    if (const std::string what = shares_mismatch(topology, workers); !what.empty()) {
      complain({"cluster.assign"}, what);
    }
    const std::uint32_t least = topology.cluster.failure.min_members;
    if (least > workers) {
      complain({"cluster.failure.min_members"},
               fmt::format("{} is more than the {} that the run begins with", least,
                           counted(workers, "worker")));
    }
  }
  if (!problems.empty()) return problems.error();
  return {};
}

std::string event_shortage(const Topology& topology, std::uint32_t workers) {
  if (!topology.data.synthetic) return "";
  const std::uint64_t events = topology.data.showers.events;
  const std::uint32_t one_in = topology.data.dataset.test_one_in;
  const std::uint32_t part = topology.data.dataset.test_part;
  const pipeline::RowRange test = pipeline::part_of(events, {one_in, part < one_in ? part : 0});
  const std::uint64_t training = events - (test.end - test.first);
  const auto& options = topology.train.options;
  const bool weak = topology.train.scaling == Scaling::kWeak && workers > 1;
  const bool alone = options.strategy.has_workers();
  const std::uint64_t taken = std::uint64_t{options.micro_batch} * options.micro_batches *
                              (weak ? workers : 1) * (alone ? options.strategy.steps : 1);
  if (training >= taken) return "";
  return fmt::format(
      "{} generated events with test_one_in {} leave {} for training, but an iteration takes "
      "micro_batch x micro_batches{}{} = {}",
      events, one_in, training, weak ? " x workers" : "", alone ? " x strategy.steps" : "", taken);
}

const std::vector<std::string>& event_shortage_fields() {
  static const std::vector<std::string> kFields{"data.synthetic.events", "data.test_one_in",
                                                "train.micro_batches",   "train.micro_batch",
                                                "train.strategy.steps",  "train.scaling"};
  return kFields;
}

Topology scaled(const Topology& topology, std::uint32_t members) {
  Topology result = topology;
  if (result.train.scaling == Scaling::kWeak) {
    result.train.options.micro_batches *= std::max(members, 1U);
  }
  result.train.scaling = Scaling::kStrong;
  return result;
}

pipeline::TrainingOptions options_between_members(const Topology& topology) {
  return pipeline::options_between_members(topology.train.options, topology.model.gan);
}

}  // namespace troupe::config

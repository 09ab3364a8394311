#include "config/workers.h"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::config {
namespace {

runtime::Error error_at(const Origins& origins, const std::string& field, const std::string& what) {
  const auto origin = origins.find(field);
  const Problem problem{origin == origins.end() ? Place{} : origin->second, field + ": " + what};
  return {runtime::ErrorKind::kTopology, problem.text()};
}

}  // namespace

std::uint32_t workers_of(const Topology& topology, std::optional<std::uint32_t> override) {
  if (override) return *override;
  std::uint32_t workers = 0;
  for (const HostSection& host : topology.cluster.hosts) workers += host.workers;
  return workers;
}

runtime::Result<std::vector<std::uint64_t>> member_shares(const Topology& topology,
                                                          std::uint32_t workers,
                                                          const Origins& origins) {
  const std::vector<std::uint64_t>& shares = topology.cluster.shares;
  if (shares.empty() || shares.size() == workers) return shares;
  return error_at(origins, "cluster.assign", shares_mismatch(shares.size(), workers));
}

runtime::Result<void> enough_members(const Topology& topology, std::uint32_t workers,
                                     const Origins& origins) {
  const std::uint32_t least = topology.cluster.failure.min_members;
  if (least <= workers) return {};
  return error_at(origins, "cluster.failure.min_members",
                  fmt::format("{} is more than the {} worker{} that the run begins with", least,
                              workers, workers == 1 ? "" : "s"));
}

Topology scaled(const Topology& topology, std::uint32_t members) {
  Topology result = topology;
  if (result.train.scaling == Scaling::kWeak) {
    result.train.options.micro_batches *= std::max(members, 1U);
  }
  result.train.scaling = Scaling::kStrong;
  return result;
}

std::string shares_mismatch(std::size_t shares, std::uint64_t members) {
  return fmt::format("{} share{} for {} worker{}; give one for each, or auto", shares,
                     shares == 1 ? "" : "s", members, members == 1 ? "" : "s");
}

}  // namespace troupe::config

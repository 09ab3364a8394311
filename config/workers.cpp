#include "config/workers.h"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::config {

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
  const auto origin = origins.find("cluster.assign");
  const Problem problem{origin == origins.end() ? Place{} : origin->second,
                        fmt::format("cluster.assign: {}", shares_mismatch(shares.size(), workers))};
  return runtime::Error{runtime::ErrorKind::kTopology, problem.text()};
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

#include "config/member_ring.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "config/units.h"
#include "pipeline/steps/ring_order.h"

namespace troupe::config {
namespace {

struct Hosts {
  std::vector<std::string> names;           // each once, in the order of the file
  std::vector<std::uint32_t> of_member;     // indices of these
  pipeline::HostBandwidths bandwidths;      // between these, bits per second, or
                                            // pipeline::kUnnamedBandwidth
  std::vector<std::vector<double>> delays;  // seconds

  // The rank of the line between two hosts, the slowest first: by its rate, then by its delay.
  pipeline::HostBandwidths ranks() const;
};

pipeline::HostBandwidths Hosts::ranks() const {
  std::map<std::pair<std::uint64_t, double>, std::uint64_t> rank_of;
  const auto line = [&](std::size_t a, std::size_t b) {
    return std::pair(bandwidths[a][b], -delays[a][b]);
  };
  for (std::size_t a = 0; a < names.size(); ++a) {
    for (std::size_t b = 0; b < names.size(); ++b) rank_of[line(a, b)] = 0;
  }
  std::uint64_t next = 0;
  for (auto& [key, rank] : rank_of) rank = next++;
  pipeline::HostBandwidths ranks = bandwidths;
  for (std::size_t a = 0; a < names.size(); ++a) {
    for (std::size_t b = 0; b < names.size(); ++b) ranks[a][b] = rank_of[line(a, b)];
  }
  return ranks;
}

// Members are numbered entry by entry, in the order of the file. A host with several entries is one
// host of the ring. check_bandwidth() has refused names that are no hosts.
Hosts hosts_of(const ClusterSection& cluster) {
  Hosts hosts;
  std::map<std::string_view, std::uint32_t> index;
  for (const HostSection& host : cluster.hosts) {
    const auto next = static_cast<std::uint32_t>(hosts.names.size());
    const auto [known, fresh] = index.try_emplace(host.address, next);
    if (fresh) hosts.names.push_back(host.address);
    hosts.of_member.insert(hosts.of_member.end(), host.workers, known->second);
  }
  hosts.bandwidths.assign(hosts.names.size(), std::vector<std::uint64_t>(
                                                  hosts.names.size(), pipeline::kUnnamedBandwidth));
  hosts.delays.assign(hosts.names.size(), std::vector<double>(hosts.names.size(), 0.0));
  for (const BandwidthSection& bandwidth : cluster.bandwidth) {
    const auto rate = static_cast<std::uint64_t>(bandwidth.bits_per_second);
    for (const std::string& one : bandwidth.between[0]) {
      for (const std::string& other : bandwidth.between[1]) {
        const std::uint32_t a = index.at(one), b = index.at(other);
        hosts.bandwidths[a][b] = hosts.bandwidths[b][a] = rate;
        hosts.delays[a][b] = hosts.delays[b][a] = runtime::seconds(bandwidth.delay);
      }
    }
  }
  return hosts;
}

// Each host once: members of one stand next to each other.
std::vector<std::uint32_t> hosts_in_order(const Hosts& hosts,
                                          const std::vector<std::uint32_t>& ring) {
  std::vector<std::uint32_t> order;
  for (const std::uint32_t member : ring) order.push_back(hosts.of_member[member]);
  order.erase(std::unique(order.begin(), order.end()), order.end());
  return order;
}

std::string slowest_edge(const Hosts& hosts, const std::vector<std::uint32_t>& order) {
  const auto ranks = hosts.ranks();
  const auto rank = [&](std::size_t i) { return ranks[order[i]][order[(i + 1) % order.size()]]; };
  std::size_t slowest = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (rank(i) < rank(slowest)) slowest = i;
  }
  const std::uint32_t from = order[slowest], to = order[(slowest + 1) % order.size()];
  const std::uint64_t rate = hosts.bandwidths[from][to];
  if (rate == pipeline::kUnnamedBandwidth) return "cluster.bandwidth says nothing of its edges";
  const auto delay = runtime::Duration(std::llround(hosts.delays[from][to] * 1e9));
  return fmt::format("slowest edge {} -> {}, {}{}", hosts.names[from], hosts.names[to],
                     print_rate(static_cast<std::int64_t>(rate)),
                     delay > runtime::Duration(0) ? " and " + print_duration(delay) : "");
}

// "a (member.0, member.1) -> b (member.2) -> a; slowest edge a -> b, 100Mbit"
std::string hosts_text(const Hosts& hosts, const std::vector<std::uint32_t>& ring) {
  const auto order = hosts_in_order(hosts, ring);
  std::string text;
  for (const std::uint32_t host : order) {
    std::vector<std::string> there;
    for (const std::uint32_t member : ring) {
      if (hosts.of_member[member] == host) there.push_back(member_name(member));
    }
    text += fmt::format("{} ({}) -> ", hosts.names[host], fmt::join(there, ", "));
  }
  return text + fmt::format("{}; {}", hosts.names[order.front()], slowest_edge(hosts, order));
}

}  // namespace

std::vector<std::uint32_t> member_ring(const ClusterSection& cluster, std::uint32_t members) {
  const Hosts hosts = hosts_of(cluster);
  if (hosts.of_member.size() == members) {
    return pipeline::ring_order(hosts.of_member, hosts.ranks());
  }
  std::vector<std::uint32_t> numbers(members);
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

pipeline::RingCosts ring_costs(const ClusterSection& cluster, std::uint32_t members) {
  Hosts hosts = hosts_of(cluster);
  if (hosts.of_member.size() != members) return {};
  return {.hosts = std::move(hosts.of_member),
          .bandwidths = std::move(hosts.bandwidths),
          .delays = std::move(hosts.delays)};
}

std::string ring_text(const ClusterSection& cluster, std::uint32_t members,
                      const pipeline::RingCosts& costs) {
  const Hosts hosts = hosts_of(cluster);
  const auto ring = member_ring(cluster, members);
  std::vector<std::string> parts;
  if (hosts.of_member.size() == members && hosts.names.size() > 1) {
    parts.push_back(hosts_text(hosts, ring));
  }
  const std::vector<std::uint32_t> rows = pipeline::ring_rows(ring, costs);
  if (!rows.empty()) {
    std::vector<std::string> firsts;
    for (const std::uint32_t row : rows) firsts.push_back(member_name(ring[row]));
    parts.push_back(fmt::format("{} rows, each a ring of its own, begin with {}", rows.size(),
                                fmt::join(firsts, ", ")));
  }
  return parts.empty() ? "" : fmt::format("ring: {}", fmt::join(parts, "; "));
}

}  // namespace troupe::config

#pragma once

// The order of the members in the ring of an all-reduce. Every edge of the ring carries the same
// bytes and all of them at the same time, so the ring is as fast as its slowest edge. Members of
// one host stand next to each other: a host's connection then carries the ring once in and once
// out, however many members it has, and the edges within it are memory.
//
// So what is left to choose is the order of the hosts: a cycle through all of them whose slowest
// edge is as fast as possible (a bottleneck travelling salesman), among those one whose
// second-slowest edge is, and so on to the fastest. The later edges matter where slow edges share a
// line: between two sites every cycle has slow edges, and this one has two and no more.
//
// A pure function of integers: every member finds the same. Exact sums do not depend on the order
// it gives; sums in a lossy format do, as they do on the number of members. Any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::pipeline {

// Up to so many hosts the order is the best there is. The search (dynamic programming over sets of
// hosts) more than doubles with each: 12 take milliseconds and 1.5 MB meanwhile.
inline constexpr std::size_t kExactRingHosts = 12;

// Bandwidths between hosts, configured or measured, all in one unit: [a][b] from host a to host b,
// 0 for unknown, which counts as slowest. The slower of the two directions counts; [a][a] is not
// read. Numbers that mean the same must be the same: noise in the last digits of a measurement
// decides over the order as a real difference would, so round measured ones first.
using HostBandwidths = std::vector<std::vector<std::uint64_t>>;

// The members, 0 to hosts.size() - 1, in the order of the ring, which begins with member 0 and in
// which the last one sends to the first. hosts[m]: the host of member m, an index of `bandwidths`;
// hosts without members are passed over. Members of one host are in ascending order. Among equally
// good orders of hosts the first one is taken, with hosts numbered by their first member. So with
// equal bandwidths, and hosts that begin where the one before ends, the order is 0, 1, 2...
//
// Beyond kExactRingHosts hosts the order is good, not best: the fastest edges are joined first, and
// pairs of edges are exchanged for as long as that makes the slower of the two faster, or the
// faster one at an equal slower one. 64 hosts take milliseconds, 1,024 a second.
//
// CHECKs that `bandwidths` is square and every member's host is in it.
std::vector<std::uint32_t> ring_order(std::span<const std::uint32_t> hosts,
                                      const HostBandwidths& bandwidths);

}  // namespace troupe::pipeline

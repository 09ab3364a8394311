#include "pipeline/steps/ring_order.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

using Order = std::vector<std::uint32_t>;  // of places, hosts numbered by their first member

// The class of each edge: 0 for the slowest bandwidth there is, counted upwards.
class Edges {
 public:
  Edges(const Order& host_of_place, const HostBandwidths& bandwidths)
      : places_(host_of_place.size()), classes_(places_ * places_) {
    std::vector<std::uint64_t> speeds(classes_.size());
    std::vector<std::uint64_t> distinct;
    for (std::size_t a = 0; a < places_; ++a) {
      for (std::size_t b = 0; b < places_; ++b) {
        if (a == b) continue;
        const std::uint32_t from = host_of_place[a], to = host_of_place[b];
        speeds[a * places_ + b] = std::min(bandwidths[from][to], bandwidths[to][from]);
        distinct.push_back(speeds[a * places_ + b]);
      }
    }
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      const auto found = std::lower_bound(distinct.begin(), distinct.end(), speeds[i]);
      classes_[i] = static_cast<std::uint32_t>(found - distinct.begin());
    }
  }

  std::size_t places() const { return places_; }
  std::uint32_t between(std::uint32_t a, std::uint32_t b) const {
    return classes_[a * places_ + b];
  }

 private:
  const std::size_t places_;
  std::vector<std::uint32_t> classes_;
};

// The number of a path's edges in each class, slowest first. The lexicographically smaller of two
// paths is better. Adding an edge to both keeps their order, so that the best path to a place is
// part of a best longer one.
constexpr std::size_t kMostClasses = kExactRingHosts * (kExactRingHosts - 1) / 2;
using Cost = std::array<std::uint8_t, kMostClasses>;
constexpr Cost kNoPath = {UINT8_MAX};

Cost with_edge(Cost cost, std::uint32_t edge) {
  ++cost[edge];
  return cost;
}

// Held and Karp's dynamic programme. Place 0 is where all paths begin; the other places are the
// bits of a set: place p is bit p - 1.
class BestCycle {
 public:
  explicit BestCycle(const Edges& edges)
      : edges_(edges), others_(edges.places() - 1), costs_(others_ << others_, kNoPath) {
    for (std::uint32_t set = 1; set < 1u << others_; ++set) {
      for (std::uint32_t last = 1; last <= others_; ++last) {
        if (contains(set, last)) cost(set, last) = best_through(set, last);
      }
    }
  }

  // Paths are read from their end to place 0, the least place first where several are best. As
  // edges have no direction, that is a cycle's order from its beginning.
  Order order() {
    Order order{0};
    std::uint32_t set = (1u << others_) - 1;
    while (set != 0) {
      std::uint32_t best = 0;
      for (std::uint32_t next = 1; next <= others_; ++next) {
        if (!contains(set, next)) continue;
        if (best == 0 || onward(set, next, order.back()) < onward(set, best, order.back())) {
          best = next;
        }
      }
      order.push_back(best);
      set &= ~(1u << (best - 1));
    }
    return order;
  }

 private:
  static bool contains(std::uint32_t set, std::uint32_t place) {
    return (set >> (place - 1) & 1) != 0;
  }
  // The counts of the best path from place 0 through all of `set` that ends at `last`.
  Cost& cost(std::uint32_t set, std::uint32_t last) { return costs_[set * others_ + last - 1]; }
  // The same path, one edge longer.
  Cost onward(std::uint32_t set, std::uint32_t last, std::uint32_t next) {
    return with_edge(cost(set, last), edges_.between(last, next));
  }

  Cost best_through(std::uint32_t set, std::uint32_t last) {
    const std::uint32_t before = set & ~(1u << (last - 1));
    if (before == 0) return with_edge(Cost{}, edges_.between(0, last));
    Cost best = kNoPath;
    for (std::uint32_t from = 1; from <= others_; ++from) {
      if (contains(before, from)) best = std::min(best, onward(before, from, last));
    }
    return best;
  }

  const Edges& edges_;
  const std::size_t others_;
  std::vector<Cost> costs_;
};

// Takes edges fastest first, each if it joins the ends of two paths. Equally fast edges come in
// order of the distance between their place numbers, so that equal edges give 0, 1, 2...
Order joined_paths(const Edges& edges) {
  const auto places = static_cast<std::uint32_t>(edges.places());
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> sorted;
  for (std::uint32_t distance = 1; distance < places; ++distance) {
    for (std::uint32_t a = 0; a + distance < places; ++a) {
      sorted.emplace_back(edges.between(a, a + distance), a, a + distance);
    }
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& x, const auto& y) { return std::get<0>(x) > std::get<0>(y); });
  std::vector<Order> paths(places);  // of place p: paths[path_of[p]]
  Order path_of(places);
  for (std::uint32_t p = 0; p < places; ++p) {
    paths[p] = {p};
    path_of[p] = p;
  }
  for (const auto& [edge, a, b] : sorted) {
    Order &left = paths[path_of[a]], &right = paths[path_of[b]];
    if (&left == &right) continue;
    if (left.front() == a) std::reverse(left.begin(), left.end());
    if (right.back() == b) std::reverse(right.begin(), right.end());
    if (left.back() != a || right.front() != b) continue;
    for (const std::uint32_t place : right) {
      left.push_back(place);
      path_of[place] = path_of[a];
    }
    right.clear();
  }
  return paths[path_of[0]];
}

// Exchanges pairs of edges (2-opt: the part between them is turned round). Each exchange makes the
// cycle better in the order of its edges from the slowest, so none is ever undone; sweeps are
// bounded nevertheless.
void exchange_edges(const Edges& edges, Order& order) {
  const std::size_t places = order.size();
  bool better = true;
  for (std::size_t sweep = 0; better && sweep < places; ++sweep) {
    better = false;
    for (std::size_t i = 0; i + 2 < places; ++i) {
      for (std::size_t j = i + 2; j < places; ++j) {
        const std::uint32_t a = order[i], b = order[i + 1], c = order[j],
                            d = order[(j + 1) % places];
        const auto before = std::minmax({edges.between(a, b), edges.between(c, d)});
        const auto after = std::minmax({edges.between(a, c), edges.between(b, d)});
        if (after <= before) continue;
        std::reverse(order.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     order.begin() + static_cast<std::ptrdiff_t>(j) + 1);
        better = true;
      }
    }
  }
}

Order good_cycle(const Edges& edges) {
  Order order = joined_paths(edges);
  exchange_edges(edges, order);
  std::rotate(order.begin(), std::find(order.begin(), order.end(), 0u), order.end());
  if (order[1] > order.back()) std::reverse(order.begin() + 1, order.end());
  return order;
}

}  // namespace

std::vector<std::uint32_t> ring_order(std::span<const std::uint32_t> hosts,
                                      const HostBandwidths& bandwidths) {
  for (const auto& row : bandwidths) CHECK(row.size() == bandwidths.size(), "rows of other hosts");
  std::vector<Order> members(bandwidths.size());  // by host
  Order host_of_place;
  for (std::uint32_t member = 0; member < hosts.size(); ++member) {
    CHECK(hosts[member] < bandwidths.size(), "a member on a host without bandwidths");
    Order& there = members[hosts[member]];
    if (there.empty()) host_of_place.push_back(hosts[member]);
    there.push_back(member);
  }
  Order places(host_of_place.size());
  std::iota(places.begin(), places.end(), 0u);
  if (places.size() > 3) {
    const Edges edges(host_of_place, bandwidths);
    places = places.size() <= kExactRingHosts ? BestCycle(edges).order() : good_cycle(edges);
  }
  Order order;
  for (const std::uint32_t place : places) {
    const Order& there = members[host_of_place[place]];
    order.insert(order.end(), there.begin(), there.end());
  }
  return order;
}

}  // namespace troupe::pipeline

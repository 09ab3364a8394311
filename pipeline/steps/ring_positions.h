#pragma once

// Where members stand in the rings of a run's Views. The first members have the order that the
// lines between their hosts make best (ring_order.h). A newcomer stands behind those that are, or
// were, nearest to it, and its lines count as theirs. Bits of exact sums do not depend on it. One
// thread.

#include <cstdint>
#include <set>
#include <vector>

#include "pipeline/steps/ring_rows.h"

namespace troupe::pipeline {

class RingPositions {
 public:
  // `first`: the ring of the first View.
  RingPositions(std::vector<std::uint32_t> first, RingCosts costs);

  // The newcomer stands behind the last of `nearest`, or of all where it is not known who is near.
  // A member of the first ring stays where it is.
  void put(std::uint32_t newcomer, const std::vector<std::uint32_t>& nearest);

  // These members in the order of their ring. Those that were not put are last, ascending.
  std::vector<std::uint32_t> ring_of(std::set<std::uint32_t> members) const;
  // See View::rows.
  std::vector<std::uint32_t> rows_of(const std::vector<std::uint32_t>& ring) const {
    return ring_rows(ring, costs_);
  }
  // These members in an order in which those that are near stand together; see site_order().
  std::vector<std::uint32_t> by_site(const std::set<std::uint32_t>& members) const {
    return site_order(ring_of(members), costs_);
  }

 private:
  std::set<std::uint32_t> first_;
  std::vector<std::uint32_t> order_;  // of all that were put, lost ones too
  RingCosts costs_;
};

}  // namespace troupe::pipeline
